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

export function soonestFirstToken(routes: readonly Route[]): readonly Route[] {
  return [...routes].sort((a, b) => {
    const gapMs = a.engineTtftMs - b.engineTtftMs
    if (Math.abs(gapMs) > TIE_RATIO * Math.max(a.engineTtftMs, b.engineTtftMs)) return gapMs
    const batch = a.candidate.view.ledger.inFlightSequences - b.candidate.view.ledger.inFlightSequences
    return batch !== 0 ? batch : gapMs
  })
}
