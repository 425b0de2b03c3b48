/** What a refused client is told of when to come back. */
import type { Ms, Ratio } from './units.ts'

/** SDKs ignore a retry-after above 60 s and hammer below 1 s. */
export const MIN_RETRY_MS: Ms = 1000
export const MAX_RETRY_MS: Ms = 60_000
/** An outage is assumed to last this long, in ms. */
export const OUTAGE_RETRY_MS: Ms = 5000
/** Clients that were shed together must not come back together: up to a quarter is added. */
const JITTER_RATIO = 0.25

/** The computed time within bounds and jittered, a whole number of ms; `chance` is random in [0, 1). */
export function toldRetryMs(computedMs: Ms, chance: Ratio): Ms {
  const baseMs = Math.min(Math.max(computedMs, MIN_RETRY_MS), MAX_RETRY_MS / (1 + JITTER_RATIO))
  return Math.round(baseMs * (1 + JITTER_RATIO * chance))
}
