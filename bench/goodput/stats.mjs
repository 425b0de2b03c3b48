/** Means over seeds with their 95 % confidence intervals. */

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
