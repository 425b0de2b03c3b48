/** The refusal of a request while no replica of its pool takes work. */
import { OUTAGE_RETRY_MS } from '../core/retry-advice.ts'
import type { Intent } from '../core/scheduler.ts'
import type { Waiter } from '../core/waiting-room.ts'

/** Nobody knows when a replica comes back, so the client is told how long an outage usually lasts. */
export function noReplica({ offer }: Waiter): Intent {
  const { requestId } = offer
  return { kind: 'shed', requestId, reason: 'no_replica', retryAfterMs: OUTAGE_RETRY_MS, candidates: [] }
}
