/** What a replica's batch holds and how long each part of it will stay: for the KV peak and for slots coming free. */
import type { ReplicaLedger } from '../core/ledger.ts'
import type { Offer, PoolId } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { keptBy } from './kept.ts'
import type { Learnt } from './learnt.ts'

/** Quantile of remaining lengths: a little more than half, since a stream that stays longer than thought hurts. */
const LENGTH_QUANTILE: Ratio = 0.6

export interface Holding {
  /** Tokens in the KV cache now. */
  readonly used: Tokens
  /** Tokens that each of its sequences still makes. */
  readonly left: Tokens
  readonly sequences: number
}

interface Kept {
  readonly version: number
  readonly lastTokenAtMs: Ms
  readonly readAtMs: Ms
  readonly holdings: readonly Holding[]
}

const kept = keptBy<ReplicaLedger, Kept>()

/** Everything in flight there, longest rest first; kept until a permit or a token of it moves, or for `keptMs`. */
export function holdingsOf(ledger: ReplicaLedger, learnt: Learnt, nowMs: Ms, keptMs: Ms): readonly Holding[] {
  const { version, lastTokenAtMs } = ledger
  const known = kept(learnt).get(ledger)
  if (known !== undefined) {
    if (known.version === version && known.lastTokenAtMs === lastTokenAtMs) return known.holdings
    if (nowMs - known.readAtMs < keptMs) return known.holdings
  }
  const holdings: Holding[] = []
  for (const { offer } of ledger.prefilling.values()) holdings.push(holdingOf(offer, 0, learnt))
  let pool: PoolId | undefined
  let tokensPerEvent = 1
  for (const { offer, contentEvents } of ledger.decoding.values()) {
    if (offer.pool !== pool) tokensPerEvent = learnt.tokensPerEvent(offer.pool)
    pool = offer.pool
    holdings.push(holdingOf(offer, contentEvents * tokensPerEvent, learnt))
  }
  holdings.sort(longestFirst)
  kept(learnt).set(ledger, { version, lastTokenAtMs, readAtMs: nowMs, holdings })
  return holdings
}

function longestFirst(a: Holding, b: Holding): number {
  return b.left - a.left
}

/** One request after `made` tokens over all its sequences. */
export function holdingOf(offer: Offer, made: Tokens, learnt: Learnt): Holding {
  const left = learnt.remaining(offer, made / offer.sequences, LENGTH_QUANTILE)
  return { used: offer.promptTokens + made, left, sequences: offer.sequences }
}
