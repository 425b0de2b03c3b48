/** Every scheduler by name: ours and its rivals; contract tests and the simulator go by this list. */
import type { Scheduler } from '../core/scheduler.ts'
import { createConcurrencyLimit } from './rivals/concurrency-limit.ts'
import { createLeastOutstanding } from './rivals/least-outstanding.ts'
import { createRoundRobin } from './rivals/round-robin.ts'
import { createSluice, type SluiceOptions } from './sluice.ts'

export interface SchedulerEntry {
  readonly describe: string
  create(options?: SluiceOptions): Scheduler
}

export const schedulers: ReadonlyMap<string, SchedulerEntry> = new Map<string, SchedulerEntry>([
  ['sluice', { describe: 'predicts, orders by slack, sheds early', create: createSluice }],
  ['round-robin', { describe: 'the bare fleet behind a plain balancer', create: createRoundRobin }],
  ['least-outstanding', { describe: 'fewest in flight, no limit', create: createLeastOutstanding }],
  [
    'limit-16',
    {
      describe: '16 in flight a replica, FIFO of 0.5 s',
      create: () => createConcurrencyLimit({ maxInFlight: 16, queueMs: 500 }),
    },
  ],
  [
    'limit-64',
    {
      describe: '64 in flight a replica, FIFO of 0.5 s',
      create: () => createConcurrencyLimit({ maxInFlight: 64, queueMs: 500 }),
    },
  ],
])
