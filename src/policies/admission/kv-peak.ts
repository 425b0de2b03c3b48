/** KV: the batch's future peak of cache use, this request included, must stay below the capacity. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { Offer } from '../../core/request.ts'
import type { Ms, Ratio, Tokens } from '../../core/units.ts'
import type { Learnt } from '../learnt.ts'
import type { AdmissionGate } from './gates.ts'

/** Share of the KV cache that plans may fill (decision notes, F3). */
const KV_USE_RATIO: Ratio = 0.95
/** Quantile of remaining lengths: short ones free their cache before the peak. */
const KV_LENGTH_QUANTILE: Ratio = 0.6
/** A gauge above this refuses, whatever the ledger says: foreign traffic fills the cache too. */
const KV_GAUGE_RATIO: Ratio = 0.97

export const kvPeak: AdmissionGate = {
  name: 'kv',
  passes({ view, kvPeakRatio: predictedPeak, roomRatio }) {
    if (view.ledger.inFlightRequests === 0) return true
    const seen = view.ledger.report.gauges?.kvUsageRatio
    if (seen !== undefined && seen > KV_GAUGE_RATIO) return false
    const peak = predictedPeak()
    return peak === undefined || peak <= KV_USE_RATIO * roomRatio
  },
}

interface Holding {
  readonly used: Tokens
  readonly left: Tokens
  readonly sequences: number
}

/** A replica's holdings, longest rest first, kept until a permit or a token of it moves. */
interface Profile {
  readonly version: number
  readonly lastTokenAtMs: Ms
  readonly holdings: readonly Holding[]
}

const profiles = new WeakMap<ReplicaLedger, Profile>()

/**
 * The largest KV use that the batch with `offer` will reach, as a share of the capacity; undefined when the capacity
 * is unknown. Sorted by what is left, longest first, the peak is max_i(sum of used up to i + left_i * sequences up to
 * i): each stream frees its cache when it ends (Past-Future scheduler, ASPLOS 2025). O(n) on a kept profile.
 */
export function kvPeakRatio(
  ledger: ReplicaLedger,
  offer: Offer,
  learnt: Learnt,
  instances: number,
): Ratio | undefined {
  const capacity = ledger.report.limits.kvCapacityTokens
  if (capacity === undefined) return undefined
  const mine = holding(offer, 0, learnt)
  let used = 0
  let sequences = 0
  let peak = 0
  let placed = false
  const add = (row: Holding): void => {
    used += row.used
    sequences += row.sequences
    peak = Math.max(peak, used + row.left * sequences)
  }
  for (const row of profileOf(ledger, learnt)) {
    if (!placed && row.left <= mine.left) {
      add(mine)
      placed = true
    }
    add(row)
  }
  if (!placed) add(mine)
  return (peak * instances) / capacity
}

function profileOf(ledger: ReplicaLedger, learnt: Learnt): readonly Holding[] {
  const { version, lastTokenAtMs } = ledger
  const kept = profiles.get(ledger)
  if (kept?.version === version && kept.lastTokenAtMs === lastTokenAtMs) return kept.holdings
  const holdings: Holding[] = []
  for (const { offer } of ledger.prefilling.values()) holdings.push(holding(offer, 0, learnt))
  for (const { offer, contentEvents } of ledger.decoding.values()) {
    holdings.push(holding(offer, contentEvents * learnt.tokensPerEvent(offer.pool), learnt))
  }
  holdings.sort((a, b) => b.left - a.left)
  profiles.set(ledger, { version, lastTokenAtMs, holdings })
  return holdings
}

function holding(offer: Offer, made: Tokens, learnt: Learnt): Holding {
  const left = learnt.remaining(offer, made / offer.sequences, KV_LENGTH_QUANTILE)
  return { used: offer.promptTokens + made, left, sequences: offer.sequences }
}
