/** Quantiles of a span of time over the last minutes, hours and the period, in logarithmic buckets. */
import type { Ms } from '../core/units.ts'
import { RollingSums } from './rolling-sums.ts'
import { HOUR_MS, MINUTE_MS } from './windows.ts'

/** A told quantile is within this share of a true one, between `LEAST_MS` and `MOST_MS`. */
export const QUANTILE_ERROR_RATIO = 0.05

const LEAST_MS: Ms = 0.1
const MOST_MS: Ms = 3_600_000
/** Bucket i ends at LEAST x GROWTH^i: the midpoint 2 x end / (1 + GROWTH) is off by the error at either side. */
const GROWTH = (1 + QUANTILE_ERROR_RATIO) / (1 - QUANTILE_ERROR_RATIO)
const LOG_GROWTH = Math.log(GROWTH)
const BUCKETS = Math.ceil(Math.log(MOST_MS / LEAST_MS) / LOG_GROWTH) + 1

/** Those of the other windows lie between; each costs some kilobytes a series. */
export const QUANTILE_WINDOWS = ['5m', '1h', '6h', 'period'] as const
export type QuantileWindow = (typeof QUANTILE_WINDOWS)[number]

export interface Quantiles {
  readonly samples: number
  readonly p50Ms: Ms
  readonly p90Ms: Ms
  readonly p99Ms: Ms
}

export class RollingQuantiles {
  readonly #rings: Readonly<Record<QuantileWindow, RollingSums>>
  readonly #all: readonly RollingSums[]

  constructor(periodMs: Ms, nowMs: Ms) {
    const ring = (spanMs: Ms, slices: number) =>
      new RollingSums(BUCKETS, Math.min(spanMs, periodMs), slices, false, nowMs)
    this.#rings = {
      '5m': ring(5 * MINUTE_MS, 10),
      '1h': ring(HOUR_MS, 12),
      '6h': ring(6 * HOUR_MS, 12),
      period: ring(periodMs, 12),
    }
    this.#all = Object.values(this.#rings)
  }

  /** Takes a sample in ms; what is no finite number is left out. */
  add(sampleMs: Ms, nowMs: Ms): void {
    if (!Number.isFinite(sampleMs)) return
    const bucket = bucketOf(sampleMs)
    for (const ring of this.#all) ring.add(bucket, 1, nowMs)
  }

  /** Undefined while the window holds no sample. */
  over(window: QuantileWindow, nowMs: Ms): Quantiles | undefined {
    const counts = this.#rings[window].at(nowMs)
    const samples = counts.reduce((sum, count) => sum + count, 0)
    if (samples === 0) return undefined
    const [p50Ms, p90Ms, p99Ms] = [0.5, 0.9, 0.99].map((quantile) => quantileOf(counts, samples, quantile))
    return { samples, p50Ms: p50Ms ?? 0, p90Ms: p90Ms ?? 0, p99Ms: p99Ms ?? 0 }
  }
}

function bucketOf(sampleMs: Ms): number {
  if (sampleMs <= LEAST_MS) return 0
  return Math.min(BUCKETS - 1, Math.ceil(Math.log(sampleMs / LEAST_MS) / LOG_GROWTH))
}

/** The value of the sample of that rank (nearest rank: the smallest value that enough samples don't exceed). */
function quantileOf(counts: Float64Array, samples: number, quantile: number): Ms {
  const rank = Math.max(1, Math.ceil(quantile * samples))
  let seen = 0
  for (let bucket = 0; bucket < counts.length; bucket++) {
    seen += counts[bucket] ?? 0
    if (seen >= rank) return (2 * LEAST_MS * GROWTH ** bucket) / (1 + GROWTH)
  }
  return MOST_MS
}
