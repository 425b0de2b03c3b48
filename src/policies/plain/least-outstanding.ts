/** The plain balancer: every request at once to the replica with the fewest in flight. Shadow, off and a worker alone run it. */
import type { Scheduler } from '../../core/scheduler.ts'
import { passive } from './passive.ts'
import { lowest, planQueue } from './queue.ts'

export function createLeastOutstanding(): Scheduler {
  return passive('least-outstanding', (state, nowMs) =>
    planQueue(state, nowMs, {
      queueMs: 0,
      choose: (_, ledgers) => lowest(ledgers, (ledger) => ledger.inFlightSequences),
    }),
  )
}
