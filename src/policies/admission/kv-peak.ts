/** KV: the batch's future peak of cache use, this request included, must stay below the capacity. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { Offer } from '../../core/request.ts'
import type { Ms, Ratio } from '../../core/units.ts'
import { KV_USE_RATIO } from '../../estimate/margins.ts'
import { holdingOf, holdingsOf } from '../holdings.ts'
import type { Learnt } from '../learnt.ts'
import type { AdmissionGate } from './gate.ts'

/** A gauge above this refuses, whatever the ledger says: foreign traffic fills the cache too. */
const KV_GAUGE_RATIO: Ratio = 0.97
/**
 * A gauge older than this says nothing: a page that hangs must not close its replica for ever. More than the longest
 * span between two looks at a page that works.
 */
const GAUGE_KEPT_MS: Ms = 10_000

export const kvPeak: AdmissionGate = {
  name: 'kv',
  passes({ view, kvPeakRatio: predictedPeak, roomRatio, nowMs }) {
    if (view.ledger.inFlightRequests === 0) return true
    const { gauges } = view.ledger.report
    const fresh = gauges !== undefined && nowMs - gauges.seenAtMs <= GAUGE_KEPT_MS
    if (fresh && (gauges.kvUsageRatio ?? 0) > KV_GAUGE_RATIO) return false
    const peak = predictedPeak()
    return peak === undefined || peak <= KV_USE_RATIO * roomRatio
  },
}

/**
 * The largest KV use that the batch with `offer` will reach, as a share of the capacity; undefined when the capacity
 * is unknown. What is in flight may be `keptMs` old. Sorted by what is left, longest first, the peak is max_i(sum of used
 * up to i + left_i * sequences up to i): each stream frees its cache when it ends (Past-Future scheduler, ASPLOS 2025). O(n) on a kept profile.
 */
export function kvPeakRatio(
  ledger: ReplicaLedger,
  offer: Offer,
  learnt: Learnt,
  instances: number,
  nowMs: Ms,
  keptMs: Ms,
): Ratio | undefined {
  const capacity = ledger.report.limits.kvCapacityTokens
  if (capacity === undefined) return undefined
  const mine = holdingOf(offer, 0, learnt)
  let used = 0
  let sequences = 0
  let peak = 0
  let placed = false
  const batch = holdingsOf(ledger, learnt, nowMs, keptMs)
  for (let i = 0; i < batch.count; i++) {
    const left = batch.left[i] ?? 0
    if (!placed && left <= mine.left) {
      used += mine.used
      sequences += mine.sequences
      peak = Math.max(peak, used + mine.left * sequences)
      placed = true
    }
    used += batch.used[i] ?? 0
    sequences += batch.sequences[i] ?? 0
    peak = Math.max(peak, used + left * sequences)
  }
  if (!placed) peak = Math.max(peak, used + mine.used + mine.left * (sequences + mine.sequences))
  return (peak * instances) / capacity
}
