/** Distributions of lengths and times as plain values: how they are drawn and what their mean is. */
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import type { Rng } from './rng.ts'

type Points = readonly (readonly [share: Ratio, tokens: Tokens])[]

/** How many tokens a prompt or an answer has. */
export type LengthLaw =
  /** Log-normal with that mean; `sigma` is the deviation of its logarithm. */
  | { readonly kind: 'logNormal'; readonly meanTokens: Tokens; readonly sigma: number }
  /**
   * Goes through published quantiles: pairs of a share (first 0, last 1, rising) and tokens (not falling); between two
   * of them the logarithm of the length is uniform.
   */
  | { readonly kind: 'quantiles'; readonly points: Points }
  | { readonly kind: 'fixed'; readonly tokens: Tokens }

/** A log-normal time; with `sigma` 0 always the mean. */
export interface TimeLaw {
  readonly meanMs: Ms
  readonly sigma: number
}

export function logNormal(meanTokens: Tokens, sigma: number): LengthLaw {
  return { kind: 'logNormal', meanTokens, sigma }
}

export function quantiles(...points: Points): LengthLaw {
  return { kind: 'quantiles', points }
}

/** The 90th percentile of a standard normal variable. */
const NORMAL_P90 = 1.2816

/** The log-normal law with that median and 90th percentile. */
export function logNormalOf(medianTokens: Tokens, p90Tokens: Tokens): LengthLaw {
  const sigma = Math.log(p90Tokens / medianTokens) / NORMAL_P90
  return logNormal(medianTokens * Math.exp(sigma ** 2 / 2), sigma)
}

/** A length, not rounded and not bounded. */
export function drawTokens(law: LengthLaw, rng: Rng): Tokens {
  switch (law.kind) {
    case 'logNormal':
      return rng.logNormal(law.meanTokens, law.sigma)
    case 'quantiles':
      return tokensAt(law.points, rng.uniform())
    case 'fixed':
      return law.tokens
    default:
      return law satisfies never
  }
}

export function drawMs({ meanMs, sigma }: TimeLaw, rng: Rng): Ms {
  return sigma === 0 ? meanMs : rng.logNormal(meanMs, sigma)
}

export function meanTokensOf(law: LengthLaw): Tokens {
  switch (law.kind) {
    case 'logNormal':
      return law.meanTokens
    case 'quantiles':
      return meanOfQuantiles(law.points)
    case 'fixed':
      return law.tokens
    default:
      return law satisfies never
  }
}

function tokensAt(points: Points, share: Ratio): Tokens {
  for (let at = 1; at < points.length; at++) {
    const [fromShare, fromTokens] = points[at - 1] ?? [0, 1]
    const [toShare, toTokens] = points[at] ?? [1, 1]
    if (share > toShare && at < points.length - 1) continue
    const inside = (share - fromShare) / (toShare - fromShare)
    return fromTokens * (toTokens / fromTokens) ** inside
  }
  throw new RangeError('a law of quantiles needs at least two points')
}

/** Between two points the mean of a length whose logarithm is uniform: (b - a) / ln(b / a). */
function meanOfQuantiles(points: Points): Tokens {
  let mean = 0
  for (const [at, [toShare, toTokens]] of points.entries()) {
    const [fromShare, fromTokens] = points[at - 1] ?? [toShare, toTokens]
    const isFlat = toTokens === fromTokens
    const inside = isFlat ? toTokens : (toTokens - fromTokens) / Math.log(toTokens / fromTokens)
    mean += (toShare - fromShare) * inside
  }
  return mean
}
