/** The few statistics that the benches share. */

/** Nearest-rank percentiles of samples, in their unit. */
export function percentiles(samples) {
  const sorted = Float64Array.from(samples).sort()
  const rank = (ratio) =>
    sorted.length === 0 ? null : sorted[Math.max(0, Math.ceil(ratio * sorted.length) - 1)]
  return { p50: rank(0.5), p99: rank(0.99), count: sorted.length }
}

export function median(values) {
  const sorted = values.filter((value) => value !== null && Number.isFinite(value)).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
