/** Orders replicas for one request: soonest predicted first token, then the smaller batch. */
import type { Candidate } from '../admission/gate.ts'

/** A candidate with its prediction. */
export interface Route {
  readonly candidate: Candidate
  /** Engine's part of TTFT there, median, in ms. */
  readonly engineTtftMs: number
}

/** Differences below this share don't decide; then the replica with fewer sequences is taken. */
const TIE_RATIO = 0.02

/**
 * All within the share of the soonest are a tie, and of the others again all within it of their soonest. Compared pair
 * by pair, a tie would not carry over from one to the next, and what comes out would hang on the order of the fleet.
 */
export function soonestFirstToken(routes: readonly Route[]): readonly Route[] {
  const left = [...routes].sort((a, b) => a.engineTtftMs - b.engineTtftMs)
  const ordered: Route[] = []
  for (let soonest = left[0]; soonest !== undefined; soonest = left[ordered.length]) {
    const tiedUpToMs = soonest.engineTtftMs / (1 - TIE_RATIO)
    const from = ordered.length
    let end = from + 1
    while (end < left.length && (left[end]?.engineTtftMs ?? 0) <= tiedUpToMs) end++
    ordered.push(...left.slice(from, end).sort((a, b) => batchOf(a) - batchOf(b)))
  }
  return ordered
}

function batchOf({ candidate }: Route): number {
  return candidate.view.ledger.inFlightSequences
}
