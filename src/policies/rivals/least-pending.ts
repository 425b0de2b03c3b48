/** Every request at once to the replica with the fewest prompt tokens still to prefill; the engine's own caps refuse. */
import type { Scheduler } from '../../core/scheduler.ts'
import { passive } from '../plain/passive.ts'
import { lowest, planQueue } from '../plain/queue.ts'

/**
 * The balancer to put before engines that cap their own queue (vLLM's `--max-num-queued-tokens`, `-reqs`): what such a
 * cap counts is what this one evens out. A refusal of the engine comes back as a bounce, and the gate tries once more.
 */
export function createLeastPending(): Scheduler {
  return passive('least-pending', (state, nowMs) =>
    planQueue(state, nowMs, {
      queueMs: 0,
      choose: (_, ledgers) => lowest(ledgers, (ledger) => ledger.backlogTokens),
    }),
  )
}
