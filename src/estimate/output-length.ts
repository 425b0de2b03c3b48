/** Learns how long answers are, per model and route, and how much is left of one that has run for a while. */
import { clamp, type Ratio, type Tokens } from '../core/units.ts'

/** Buckets grow by 2^(1/4): 19 % wide, 1 to about 65 000 tokens. */
const BUCKETS = 64
const BUCKETS_PER_OCTAVE = 4
/** Weight kept of the past at each sample: about the last 500 answers count. */
const KEEP_RATIO = 0.998
/** Answers needed before what was learnt is preferred to the prior. */
const MIN_SAMPLES = 10
/** Variances of log2(length) closer than this tie; then the cap is followed, since answers may end at it exactly. */
const TIE_VARIANCE = 1e-6
/** Assumed length of an answer of which nothing is known. */
export const PRIOR_OUTPUT_TOKENS: Tokens = 256

/** A decayed histogram over log-spaced buckets. */
interface Histogram {
  readonly weights: number[]
  total: number
  samples: number
  /** Decayed moments of log2(value), to tell which of two views is the sharper. */
  logMean: number
  logVariance: number
  /** Quantiles read since the last sample, by first bucket and quantile. */
  readonly memo: Map<number, number>
}

export interface OutputLengths {
  readonly tokens: Histogram
  /** Length as a share of the client's cap, in 1/10 000, for answers that had one. */
  readonly ofCap: Histogram
}

export interface LengthLimits {
  readonly maxOutputTokens?: Tokens | undefined
  readonly minOutputTokens?: Tokens | undefined
}

export function outputLengths(): OutputLengths {
  return { tokens: histogram(), ofCap: histogram() }
}

/** Takes the length of one finished answer of one sequence. */
export function learnLength(lengths: OutputLengths, outputTokens: Tokens, limits: LengthLimits): void {
  if (!(outputTokens > 0)) return
  add(lengths.tokens, outputTokens)
  const cap = limits.maxOutputTokens
  if (cap !== undefined && cap > 0) add(lengths.ofCap, clamp(outputTokens / cap, 0, 1) * 10_000)
}

/**
 * Tokens still to come of one sequence that has made `soFar`, at that quantile of what is left; at least 1 while it
 * runs. Uses the share of the cap when answers follow their caps more closely than they follow each other.
 */
export function remainingTokens(
  lengths: OutputLengths,
  soFar: Tokens,
  limits: LengthLimits,
  quantile: Ratio,
): Tokens {
  const cap = limits.maxOutputTokens ?? Number.POSITIVE_INFINITY
  const floor = Math.max(0, (limits.minOutputTokens ?? 0) - soFar)
  const left = Math.max(1, cap - soFar)
  return clamp(learntRemaining(lengths, soFar, cap, quantile), clamp(floor, 1, left), left)
}

function learntRemaining(lengths: OutputLengths, soFar: Tokens, cap: Tokens, quantile: Ratio): Tokens {
  const { tokens, ofCap } = lengths
  const followsCap = ofCap.logVariance <= tokens.logVariance + TIE_VARIANCE
  if (Number.isFinite(cap) && ofCap.samples >= MIN_SAMPLES && followsCap) {
    const share = conditionalQuantile(ofCap, (soFar / cap) * 10_000, quantile)
    return (share / 10_000) * cap - soFar
  }
  if (tokens.samples < MIN_SAMPLES) return Math.max(PRIOR_OUTPUT_TOKENS - soFar, PRIOR_OUTPUT_TOKENS / 4)
  return conditionalQuantile(tokens, soFar, quantile) - soFar
}

/** The quantile of the values above `given`; twice `given` when none was ever so large. */
function conditionalQuantile(histogram: Histogram, given: number, quantile: Ratio): number {
  const first = bucketOf(given)
  const key = first * 128 + Math.round(quantile * 100)
  const known = histogram.memo.get(key)
  const value = known ?? readQuantile(histogram, first, quantile)
  if (known === undefined) histogram.memo.set(key, value)
  return Number.isFinite(value) ? Math.max(given + 1, value) : given * 1.25 + 1
}

/** The middle of the bucket with that quantile of the weight from `first` on; Infinity when there is none. */
function readQuantile(histogram: Histogram, first: number, quantile: Ratio): number {
  let above = 0
  for (let i = first; i < BUCKETS; i++) above += histogram.weights[i] ?? 0
  if (above < 1e-6 * Math.max(1, histogram.total)) return Number.POSITIVE_INFINITY
  let wanted = quantile * above
  for (let i = first; i < BUCKETS; i++) {
    wanted -= histogram.weights[i] ?? 0
    if (wanted <= 0) return middleOf(i)
  }
  return middleOf(BUCKETS - 1)
}

function histogram(): Histogram {
  return {
    weights: new Array<number>(BUCKETS).fill(0),
    total: 0,
    samples: 0,
    logMean: 0,
    logVariance: 0,
    memo: new Map(),
  }
}

function add(into: Histogram, value: number): void {
  into.memo.clear()
  for (let i = 0; i < BUCKETS; i++) into.weights[i] = (into.weights[i] ?? 0) * KEEP_RATIO
  const bucket = bucketOf(value)
  into.weights[bucket] = (into.weights[bucket] ?? 0) + 1
  into.total = into.total * KEEP_RATIO + 1
  into.samples++
  const share = Math.max(1 - KEEP_RATIO, 1 / into.samples)
  const off = Math.log2(Math.max(1, value)) - into.logMean
  into.logMean += share * off
  into.logVariance = (1 - share) * (into.logVariance + share * off * off)
}

function bucketOf(value: number): number {
  return clamp(Math.floor(BUCKETS_PER_OCTAVE * Math.log2(Math.max(1, value))), 0, BUCKETS - 1)
}

/** The geometric middle of a bucket. */
function middleOf(bucket: number): number {
  return 2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE)
}
