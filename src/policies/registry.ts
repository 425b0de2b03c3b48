/** Every scheduler by name: ours, plain balancers and rivals; contract tests and the simulator go by this list. */
import type { Scheduler } from '../core/scheduler.ts'
import { createLeastOutstanding } from './plain/least-outstanding.ts'
import { createRoundRobin } from './plain/round-robin.ts'
import { createAimd } from './rivals/aimd.ts'
import { createConcurrencyLimit } from './rivals/concurrency-limit.ts'
import { createGradient2 } from './rivals/gradient2.ts'
import { createLeastPending } from './rivals/least-pending.ts'
import { createLMetric } from './rivals/lmetric.ts'
import { createProbabilisticAdmitter } from './rivals/probabilistic-admitter.ts'
import { createSaturationGate } from './rivals/saturation-gate.ts'
import { createScorpio } from './rivals/scorpio.ts'
import { createSluice, type SluiceOptions } from './sluice.ts'

export interface SchedulerEntry {
  readonly describe: string
  create(options?: SluiceOptions): Scheduler
}

export const schedulers: ReadonlyMap<string, SchedulerEntry> = new Map<string, SchedulerEntry>([
  ['sluice', { describe: 'predicts, orders by slack, sheds early', create: createSluice }],
  ['round-robin', { describe: 'the bare fleet behind a plain balancer', create: createRoundRobin }],
  ['least-outstanding', { describe: 'fewest in flight, no limit', create: createLeastOutstanding }],
  ['least-pending', { describe: 'fewest prompt tokens to prefill, no limit', create: createLeastPending }],
  ['limit-16', limit(16)],
  ['limit-64', limit(64)],
  [
    'saturation-gate',
    {
      describe: "waits while llm-d's detector says saturated, by deadline, at most 0.5 s",
      create: () => createSaturationGate({ queueMs: 500 }),
    },
  ],
  [
    'probabilistic-admitter',
    {
      describe: 'refuses the likelier the fuller engines say they are',
      create: () => createProbabilisticAdmitter(),
    },
  ],
  ['lmetric', { describe: 'least product of prefill and batch, no limit', create: () => createLMetric() }],
  [
    'gradient2',
    {
      describe: 'limit by latency gradient, FIFO of 0.5 s',
      create: () => createGradient2({ queueMs: 500 }),
    },
  ],
  ['aimd', { describe: 'limit by late requests, FIFO of 0.5 s', create: () => createAimd({ queueMs: 500 }) }],
  ['scorpio', { describe: 'deadline order with TTFT and TPOT guards', create: createScorpio }],
])

function limit(maxInFlight: number): SchedulerEntry {
  return {
    describe: `${maxInFlight} in flight a replica, FIFO of 0.5 s`,
    create: () => createConcurrencyLimit({ maxInFlight, queueMs: 500 }),
  }
}
