/** Takes a settlement for what its line in the log would tell. */
import type { Settlement } from '../core/records.ts'
import type { LoggedRequest } from './logged-request.ts'
import { present } from './present.ts'
import { HASHED_BLOCKS } from './shared-prefixes.ts'

/** Instants stay on the clock of the records. */
export function loggedFrom(settlement: Settlement): LoggedRequest {
  const { offer, verdict, cachedTokens, promptTokens } = settlement
  return {
    id: settlement.requestId,
    arrivedAtMs: offer.receivedAtMs,
    model: offer.pool,
    className: offer.slo.name,
    product: offer.product,
    tenant: offer.tenant,
    route: offer.route,
    kind: offer.kind,
    streamed: offer.streamed,
    sequences: offer.sequences,
    retryCount: offer.retryCount,
    promptTokens,
    estimatedTokens: offer.promptTokens,
    uncachedTokens: Math.max(0, promptTokens - (cachedTokens ?? 0)),
    outputTokens: settlement.outputTokens,
    bodyBytes: offer.bodyBytes,
    prefixHashes: offer.prefixHashes.slice(0, HASHED_BLOCKS),
    prefixBlockTokens: offer.prefixHashes.length === 0 ? 0 : offer.prefixBlockTokens,
    outcome: settlement.outcome,
    queueMs: settlement.queueMs,
    e2eMs: settlement.e2eMs,
    verdict: verdict.kind,
    ...present('cachedTokens', cachedTokens),
    ...present('maxOutputTokens', offer.maxOutputTokens),
    ...present('minOutputTokens', offer.minOutputTokens),
    ...present('steerTtftMs', offer.steerTtftMs),
    ...present('steerTpotMs', offer.steerTpotMs),
    ...present('shedReason', settlement.shedReason),
    ...present('replica', settlement.replicaId),
    ...present('ttftMs', settlement.ttftMs),
    ...present('tpotMs', settlement.tpotMs),
    ...present('cause', verdict.cause),
  }
}
