/** KV: the batch's future peak of cache use, this request included, must stay below the capacity. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { Offer } from '../../core/request.ts'
import type { Ratio, Tokens } from '../../core/units.ts'
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
  passes({ view, kvPeakRatio, roomRatio }) {
    if (view.ledger.inFlightRequests === 0) return true
    const seen = view.ledger.report.gauges?.kvUsageRatio
    if (seen !== undefined && seen > KV_GAUGE_RATIO) return false
    return kvPeakRatio === undefined || kvPeakRatio <= KV_USE_RATIO * roomRatio
  },
}

interface Holding {
  readonly used: Tokens
  readonly left: Tokens
  readonly sequences: number
}

/**
 * The largest KV use that the batch with `offer` will reach, as a share of the capacity; undefined when the capacity
 * is unknown. Sorted by what is left, longest first, the peak is max_i(sum of used up to i + left_i * sequences up to
 * i): each stream frees its cache when it ends (Past-Future scheduler, ASPLOS 2025). O(n log n).
 */
export function kvPeakRatio(
  ledger: ReplicaLedger,
  offer: Offer,
  learnt: Learnt,
  instances: number,
): Ratio | undefined {
  const capacity = ledger.report.limits.kvCapacityTokens
  if (capacity === undefined) return undefined
  const all = 0.5 * capacity
  if (ledger.contextTokens + offer.promptTokens < all && quickBound(ledger, offer) < all)
    return quickBound(ledger, offer) / capacity
  const holdings: Holding[] = [holding(offer, 0, learnt)]
  const perEvent = learnt.tokensPerEvent(offer.pool)
  for (const inFlight of ledger.prefilling.values()) holdings.push(holding(inFlight.offer, 0, learnt))
  for (const inFlight of ledger.decoding.values()) {
    holdings.push(holding(inFlight.offer, inFlight.contentEvents * perEvent, learnt))
  }
  holdings.sort((a, b) => b.left - a.left)
  let used = 0
  let sequences = 0
  let peak = 0
  for (const row of holdings) {
    used += row.used
    sequences += row.sequences
    peak = Math.max(peak, used + row.left * sequences)
  }
  return (peak * instances) / capacity
}

function holding(offer: Offer, made: Tokens, learnt: Learnt): Holding {
  const left = learnt.remaining(offer, made / offer.sequences, KV_LENGTH_QUANTILE)
  return { used: offer.promptTokens + made, left, sequences: offer.sequences }
}

/** What can never be exceeded: everything held now plus 1024 more tokens for each sequence. */
function quickBound(ledger: ReplicaLedger, offer: Offer): Tokens {
  return ledger.contextTokens + offer.promptTokens + 1024 * (ledger.inFlightSequences + offer.sequences)
}
