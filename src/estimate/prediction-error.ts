/** Tracks how far first tokens come from their prediction, and turns a prediction into a quantile. */
import { clamp, type Ratio } from '../core/units.ts'

/** Observed over predicted, tracked at three quantiles by stochastic pinball steps (online conformal). */
export interface PredictionError {
  readonly quantiles: Record<'p50' | 'p80' | 'p95', number>
  /** Decayed mean of |ln(observed / predicted)|. */
  absLogError: number
  samples: number
}

const LEVELS = { p50: 0.5, p80: 0.8, p95: 0.95 } as const satisfies Record<string, Ratio>
/** Step of the tracker as a share of the value; larger at the start. */
const STEP_RATIO = 0.04
const EARLY_STEP_RATIO = 0.2
const EARLY_SAMPLES = 20
/** Share of a new sample in the mean error. */
const ERROR_SHARE = 0.05
const MIN_FACTOR = 0.3
const MAX_FACTOR = 5

export function predictionError(): PredictionError {
  return { quantiles: { p50: 1, p80: 1.25, p95: 1.6 }, absLogError: 0, samples: 0 }
}

/** Takes one pair, both in ms, finite and above 0; others are ignored. */
export function learnError(error: PredictionError, observedMs: number, predictedMs: number): void {
  if (!(observedMs > 0) || !(predictedMs > 0) || !Number.isFinite(observedMs + predictedMs)) return
  const ratio = clamp(observedMs / predictedMs, 0.01, 100)
  const step = error.samples < EARLY_SAMPLES ? EARLY_STEP_RATIO : STEP_RATIO
  for (const level of ['p50', 'p80', 'p95'] as const) {
    const value = error.quantiles[level]
    const tau = LEVELS[level]
    error.quantiles[level] = clamp(
      value * (1 + step * (tau - (ratio <= value ? 1 : 0))),
      MIN_FACTOR,
      MAX_FACTOR,
    )
  }
  const { quantiles } = error
  quantiles.p80 = Math.max(quantiles.p80, quantiles.p50)
  quantiles.p95 = Math.max(quantiles.p95, quantiles.p80)
  const share = Math.max(ERROR_SHARE, 1 / (error.samples + 1))
  error.absLogError += share * (Math.abs(Math.log(ratio)) - error.absLogError)
  error.samples++
}
