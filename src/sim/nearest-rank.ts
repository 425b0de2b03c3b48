/** The one rule by which latencies are told: a percentile is a sample, never a mean of two. */
import type { Ratio } from '../core/units.ts'

/** The smallest sample that at least `share` of the sorted samples do not exceed; undefined without samples. */
export function nearestRank(sorted: ArrayLike<number>, share: Ratio): number | undefined {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
}
