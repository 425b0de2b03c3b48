/** Picks the few requests that no prediction may shed, so that predictions are tested where they refuse. */
import type { RequestId } from '../core/request.ts'

/** One request in so many (decision notes, C5: 1 to 2 %). */
const ONE_IN = 64

/**
 * Whether the request is a probe. What is shed is never observed, so a prediction that is too dark would hold for ever.
 * A probe waits like any other and is served only where the gates leave room: where the prediction is right it costs
 * nothing but a late refusal. The choice is a hash of the id (FNV-1a), so that it is the same at every look.
 */
export function isProbe(requestId: RequestId): boolean {
  let hash = 0x811c9dc5
  for (let i = 0; i < requestId.length; i++) hash = Math.imul(hash ^ requestId.charCodeAt(i), 0x01000193)
  // The low bits of FNV-1a mix least.
  return (hash >>> 16) % ONE_IN === 0
}
