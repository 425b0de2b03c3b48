/** Means over seeds with their 95 % confidence intervals, quantiles, and Jain's index. */

/** Student's t at 97.5 % for 1 to 9 degrees of freedom. */
const T_975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]

/** Mean and half width of its interval; NaN for the width of a single value. */
export function meanOf(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  if (values.length < 2) return { mean, halfWidth: Number.NaN }
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1)
  const t = T_975[Math.min(values.length - 1, T_975.length) - 1]
  return { mean, halfWidth: t * Math.sqrt(variance / values.length) }
}

/** The mean difference of pairs of the same seed. */
export function pairedDifference(ours, theirs) {
  return meanOf(ours.map((value, index) => value - theirs[index]))
}

/** The nearest-rank quantile of the finite values; undefined without any. */
export function quantile(values, share) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]
}

/** (sum x)^2 / (n sum x^2): 1 when all have the same, 1/n when one has everything (Jain, DEC-TR-301, 1984). */
export function jainIndex(values) {
  const sum = values.reduce((total, value) => total + value, 0)
  const squares = values.reduce((total, value) => total + value ** 2, 0)
  return squares === 0 ? 1 : sum ** 2 / (values.length * squares)
}
