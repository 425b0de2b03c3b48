/** A small linear estimator that forgets slowly: recursive least squares in Kalman form, with numerics that last. */
import { clamp } from '../core/units.ts'

/** Serialisable state: mean, covariance (row-major), and the prior that it is pulled to. */
export interface LinearEstimate {
  readonly mean: number[]
  readonly covariance: number[]
  readonly priorMean: readonly number[]
  readonly priorVariance: readonly number[]
  samples: number
}

/** How far an observation was from the estimate before it, and the standard deviation that was to be expected. */
export interface Surprise {
  readonly off: number
  readonly sigma: number
}

/**
 * Drift of the truth per sample as a share of the prior variance. The gain settles at priorStd * sqrt(DRIFT_RATIO) /
 * noiseStd, both deviations of the observed value, so what counts is the last noiseStd / priorStd * 316 samples: of
 * decode windows of ten steps some 200 with a prior unsure by 0.3 of itself, and some 6 with one unsure by 10.
 */
const DRIFT_RATIO = 1e-5
/** Pull of the mean towards the prior per sample, so that unexcited directions don't wander for ever. */
const PULL_RATIO = 1e-5
/** A residual beyond so many standard deviations is cut down to that (Huber). */
const CLIP_SIGMAS = 4

/** An estimate that knows only its prior. Variances must be above 0. */
export function linearEstimate(priorMean: readonly number[], priorStd: readonly number[]): LinearEstimate {
  const n = priorMean.length
  const priorVariance = priorStd.map((std) => std * std)
  const covariance = new Array<number>(n * n).fill(0)
  for (let i = 0; i < n; i++) covariance[i * n + i] = at(priorVariance, i)
  return { mean: [...priorMean], covariance, priorMean, priorVariance, samples: 0 }
}

/** Value at `x`. */
export function predict(estimate: LinearEstimate, x: readonly number[]): number {
  let sum = 0
  for (let i = 0; i < x.length; i++) sum += at(estimate.mean, i) * at(x, i)
  return sum
}

/** How unsure that value is: its standard deviation. */
export function deviation(estimate: LinearEstimate, x: readonly number[]): number {
  const n = estimate.mean.length
  let variance = 0
  for (let i = 0; i < x.length; i++) {
    for (let j = 0; j < x.length; j++) variance += at(x, i) * at(estimate.covariance, i * n + j) * at(x, j)
  }
  return Math.sqrt(Math.max(0, variance))
}

/**
 * Takes one observation `y` at `x` with a noise of standard deviation `noiseStd` (> 0). Non-finite input is ignored.
 * The update is symmetric; a direction that gets no evidence grows back to its prior variance and no further.
 * Returns how far off the estimate was; undefined when the observation was ignored.
 */
export function observe(
  estimate: LinearEstimate,
  x: readonly number[],
  y: number,
  noiseStd: number,
): Surprise | undefined {
  if (!Number.isFinite(y) || !(noiseStd > 0) || !x.every(Number.isFinite)) return undefined
  const { mean, covariance } = estimate
  const n = mean.length
  const px = new Array<number>(n).fill(0)
  let spread = noiseStd * noiseStd
  for (let i = 0; i < n; i++) {
    let sum = 0
    for (let j = 0; j < n; j++) sum += at(covariance, i * n + j) * at(x, j)
    px[i] = sum
    spread += sum * at(x, i)
  }
  // An observation of nothing with a noise too small to square.
  if (!(spread > 0)) return undefined
  const sigma = Math.sqrt(spread)
  const off = y - predict(estimate, x)
  const residual = clamp(off, -CLIP_SIGMAS * sigma, CLIP_SIGMAS * sigma)
  for (let i = 0; i < n; i++) {
    mean[i] = at(mean, i) + (at(px, i) * residual) / spread
    for (let j = i; j < n; j++) {
      const value = at(covariance, i * n + j) - (at(px, i) * at(px, j)) / spread
      covariance[i * n + j] = value
      covariance[j * n + i] = value
    }
  }
  estimate.samples++
  drift(estimate)
  return { off, sigma }
}

/** Keeps what is believed and forgets how sure it was: what was learnt may not be true any more. */
export function unsettle(estimate: LinearEstimate): void {
  const { covariance, priorVariance } = estimate
  covariance.fill(0)
  priorVariance.forEach((variance, i) => {
    covariance[i * priorVariance.length + i] = variance
  })
}

/** Lets variances grow by the drift, never above the prior nor below a floor, and pulls the mean to the prior. */
function drift(estimate: LinearEstimate): void {
  const { mean, covariance, priorMean, priorVariance } = estimate
  const n = mean.length
  for (let i = 0; i < n; i++) {
    const prior = at(priorVariance, i)
    const grown = Math.max(at(covariance, i * n + i), prior * 1e-9) + DRIFT_RATIO * prior
    covariance[i * n + i] = grown
    if (grown > prior) scale(covariance, n, i, Math.sqrt(prior / grown))
    mean[i] = at(mean, i) + PULL_RATIO * (at(priorMean, i) - at(mean, i))
  }
}

/** Scales one row and column, which keeps the matrix positive semidefinite. */
function scale(covariance: number[], n: number, row: number, factor: number): void {
  for (let j = 0; j < n; j++) {
    covariance[row * n + j] = at(covariance, row * n + j) * factor
    covariance[j * n + row] = at(covariance, j * n + row) * factor
  }
}

function at(values: readonly number[], index: number): number {
  return values[index] ?? 0
}
