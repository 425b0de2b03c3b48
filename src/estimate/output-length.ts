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
/** Less weight than this is that of answers long forgotten. */
const MIN_WEIGHT = 1e-6
/** In place of a quantile in hundredths. */
const MEAN_KEY = 127
/** Sums of weights are exact to about this. */
const ROUNDING = 1e-9
/** Assumed length of an answer of which nothing is known. */
export const PRIOR_OUTPUT_TOKENS: Tokens = 256

/** A decayed histogram over log-spaced buckets. */
interface Histogram {
  /** Answers that ended with that length. */
  readonly ended: number[]
  /** Answers that were cut off there, so that only this is known: they were at least so long. */
  readonly cutOff: number[]
  samples: number
  /** Decayed moments of log2(value), to tell which of two views is the sharper. */
  logMean: number
  logVariance: number
  /** What was read since the last sample, by first bucket and figure. */
  memo: Map<number, number>
}

export interface OutputLengths {
  readonly tokens: Histogram
  /** Length as a share of the client's cap, in 1/10 000, for answers that had one. */
  readonly ofCap: Histogram
}

/** What is asked of a distribution: a quantile of it, or its mean. */
export type Figure = Ratio | 'mean'

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
  addEnded(lengths.tokens, outputTokens)
  const share = shareOfCap(outputTokens, limits)
  if (share !== undefined) addEnded(lengths.ofCap, share)
}

/** Takes an answer that was cut off after so many tokens: it would have been longer, or long answers look rare. */
export function learnCutOff(lengths: OutputLengths, outputTokens: Tokens, limits: LengthLimits): void {
  if (!(outputTokens > 0)) return
  addCutOff(lengths.tokens, outputTokens)
  const share = shareOfCap(outputTokens, limits)
  if (share !== undefined) addCutOff(lengths.ofCap, share)
}

/** In 1/10 000 of the cap. */
function shareOfCap(outputTokens: Tokens, { maxOutputTokens }: LengthLimits): number | undefined {
  if (maxOutputTokens === undefined || !(maxOutputTokens > 0)) return undefined
  return clamp(outputTokens / maxOutputTokens, 0, 1) * 10_000
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
  const { maxOutputTokens = Number.POSITIVE_INFINITY, minOutputTokens = 0 } = limits
  return remainingWithin(lengths, soFar, maxOutputTokens, minOutputTokens, quantile)
}

/** The same of one that makes at most `cap` tokens, Infinity for no bound, and at least `floor`. */
export function remainingWithin(
  lengths: OutputLengths,
  soFar: Tokens,
  cap: Tokens,
  floor: Tokens,
  figure: Figure,
): Tokens {
  const left = Math.max(1, cap - soFar)
  // A cap of 0 has no shares.
  if (left <= 1) return 1
  const least = clamp(Math.max(0, floor - soFar), 1, left)
  return clamp(learntRemaining(lengths, soFar, cap, figure), least, left)
}

function learntRemaining(lengths: OutputLengths, soFar: Tokens, cap: Tokens, figure: Figure): Tokens {
  const { tokens, ofCap } = lengths
  const followsCap = ofCap.logVariance <= tokens.logVariance + TIE_VARIANCE
  if (Number.isFinite(cap) && ofCap.samples >= MIN_SAMPLES && followsCap) {
    const share = conditional(ofCap, (soFar / cap) * 10_000, figure)
    return (share / 10_000) * cap - soFar
  }
  if (tokens.samples < MIN_SAMPLES) return Math.max(PRIOR_OUTPUT_TOKENS - soFar, PRIOR_OUTPUT_TOKENS / 4)
  return conditional(tokens, soFar, figure) - soFar
}

/** That figure of the values above `given`; a quarter more than `given` when none was ever so large. */
function conditional(histogram: Histogram, given: number, figure: Figure): number {
  const first = bucketOf(given)
  const key = first * 128 + (figure === 'mean' ? MEAN_KEY : Math.round(figure * 100))
  const known = histogram.memo.get(key)
  const value = known ?? readFigure(histogram, first, figure)
  if (known === undefined) histogram.memo.set(key, value)
  return Number.isFinite(value) ? Math.max(given + 1, value) : given * 1.25 + 1
}

/**
 * Of the answers that got to `first`: the middle of the bucket by which that quantile of them have ended, or of the last
 * that any got to; or the mean of these middles. Infinity when none got to `first`. Those that were cut off count up to
 * there (Kaplan and Meier 1958).
 */
function readFigure({ ended, cutOff }: Histogram, first: number, figure: Figure): number {
  let running = 0
  for (let i = first; i < BUCKETS; i++) running += (ended[i] ?? 0) + (cutOff[i] ?? 0)
  if (running < MIN_WEIGHT) return Number.POSITIVE_INFINITY
  const leastSurviving = figure === 'mean' ? Number.NEGATIVE_INFINITY : 1 - figure + ROUNDING
  let surviving = 1
  let sum = 0
  let i = first
  for (; i < BUCKETS - 1; i++) {
    const before = surviving
    surviving *= Math.max(0, 1 - (ended[i] ?? 0) / running)
    sum += (before - surviving) * middleOf(i)
    running -= (ended[i] ?? 0) + (cutOff[i] ?? 0)
    if (surviving <= leastSurviving || running < MIN_WEIGHT) break
  }
  return figure === 'mean' ? sum + surviving * middleOf(i) : middleOf(i)
}

function histogram(): Histogram {
  return {
    ended: new Array<number>(BUCKETS).fill(0),
    cutOff: new Array<number>(BUCKETS).fill(0),
    samples: 0,
    logMean: 0,
    logVariance: 0,
    memo: new Map(),
  }
}

function addEnded(into: Histogram, value: number): void {
  bump(into, into.ended, value)
  into.samples++
  const share = Math.max(1 - KEEP_RATIO, 1 / into.samples)
  const off = Math.log2(Math.max(1, value)) - into.logMean
  into.logMean += share * off
  into.logVariance = (1 - share) * (into.logVariance + share * off * off)
}

function addCutOff(into: Histogram, value: number): void {
  bump(into, into.cutOff, value)
}

function bump(into: Histogram, weights: number[], value: number): void {
  into.memo = new Map()
  for (let i = 0; i < BUCKETS; i++) {
    into.ended[i] = (into.ended[i] ?? 0) * KEEP_RATIO
    into.cutOff[i] = (into.cutOff[i] ?? 0) * KEEP_RATIO
  }
  const bucket = bucketOf(value)
  weights[bucket] = (weights[bucket] ?? 0) + 1
}

function bucketOf(value: number): number {
  return clamp(Math.floor(BUCKETS_PER_OCTAVE * Math.log2(Math.max(1, value))), 0, BUCKETS - 1)
}

/** Geometric middles of the buckets, made once: a power costs more than all else that is done for a bucket. */
const MIDDLES = Float64Array.from(
  { length: BUCKETS },
  (_, bucket) => 2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE),
)

function middleOf(bucket: number): number {
  return MIDDLES[bucket] ?? 0
}
