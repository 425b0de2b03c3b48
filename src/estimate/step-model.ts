/** How long an engine step takes: one parameter vector per replica group, learnt from two kinds of observation. */
import { attentionPairs } from '../core/attention.ts'
import type { Ms, Tokens } from '../core/units.ts'
import { deviation, type LinearEstimate, linearEstimate, observe, predict } from './kalman.ts'

/**
 * What is believed before anything is seen. The formula is that of a chunked-prefill engine (decision notes, C1):
 * a step with B sequences over K context tokens takes base + perSequence*B + perContextToken*K; each prefill chunk
 * of n tokens adds perChunk + perPrefillToken*n to its step, and never less than nothing, and each pair of a prompt
 * token and one that it attends to adds perPair.
 */
export interface StepPrior {
  readonly baseMs: Ms
  readonly perSequenceMs: Ms
  readonly perContextTokenMs: Ms
  readonly perChunkMs: Ms
  readonly perPrefillTokenMs: Ms
  /** Attention: see `attentionPairs`. */
  readonly perPairMs: Ms
  /** Time of a request outside of steps: parsing, tokenising, the way there and back. */
  readonly requestOverheadMs: Ms
  /** How sure the prior is: standard deviation as a share of each value. */
  readonly uncertaintyRatio: number
}

/**
 * What a pair costs in prompt tokens as long as nobody knows. A layer of width d does 24*d^2 operations for a token and
 * 4*d for a pair (Kaplan et al., Scaling Laws for Neural Language Models, 2020), so 1 / (6*d); here of an 8B model. The
 * fitted profiles have 0.4 to 2.6 times that, while what a pair costs in ms differs by a factor of 90 among them.
 */
const PAIR_TOKENS = 1 / (6 * 4096)

/** A prior for an engine of which nothing is known: the order of an 8B model on one current GPU, very unsure. */
export const UNKNOWN_ENGINE: StepPrior = {
  baseMs: 12,
  perSequenceMs: 0.1,
  perContextTokenMs: 0.0001,
  perChunkMs: 0,
  perPrefillTokenMs: 0.08,
  perPairMs: PAIR_TOKENS * 0.08,
  requestOverheadMs: 10,
  uncertaintyRatio: 10,
}

/**
 * The learnt parameters: base, sequence, context, request overhead, chunk, prefill, pairs; contexts and prefill tokens
 * count in thousands, pairs in millions. Those of a decode step come first. Prefill counts a pair as `PAIR_TOKENS`, and
 * the last parameter is what it costs beyond that (or below 0): where only short prompts are seen it stays what it was,
 * and long ones are believed to be slower or faster as short ones are.
 */
export interface StepModel {
  readonly prior: StepPrior
  readonly estimate: LinearEstimate
  /**
   * Engines that compute prompts only, while others make the answers: then no prompt shares a step with a stream. 0: one
   * engine does both.
   */
  readonly prefillEngines: number
  /** Every time is that of the parameters times this: 1 for a group, its own for each of its replicas. */
  slownessRatio: number
}

/** How far one observation was from what was believed before it. */
export interface StepResidual {
  /** Observed over predicted, above 0. */
  readonly ratio: number
  /** What was to be expected of that ratio: noise and what the model does not know yet, as a standard deviation. */
  readonly sigmaRatio: number
  /** How far it was off, in those standard deviations. */
  readonly sigmas: number
}

/** Most that caution adds to a decode step, as a share of it. */
const MAX_CAUTION_RATIO = 0.5
/** Relative noise of an interval. */
const DECODE_NOISE_RATIO = 0.1
const PREFILL_NOISE_RATIO = 0.15
/** An interval begins or ends within a step, so its count is off by about this many. */
const COUNT_NOISE_STEPS = 0.4
/** Clocks and event loops blur any interval by about this much, in ms. */
const CLOCK_NOISE_MS: Ms = 1
/** What is left of a running step on average, in steps. */
export const HALF_STEP = 0.5
/** A prior that is unsure by more of all else is unsure by this part of what a pair costs. */
const MAX_PAIR_UNCERTAINTY_RATIO = 1
/**
 * An interval tells of attention when its prompt tokens attended to so many on average, so that it took about a seventh
 * of their time. From shorter prompts whatever else sets one of them apart from many would be taken for it.
 */
const LEAST_CONTEXT_TOKENS: Tokens = 4096
/** A chunk can be cheaper than its tokens' share of a step, by about one decode step at most. */
const CHUNK_STD_MS: Ms = 5

export function stepModel(prior: StepPrior = UNKNOWN_ENGINE, prefillEngines = 0): StepModel {
  const mean = [
    prior.baseMs,
    prior.perSequenceMs,
    prior.perContextTokenMs * 1000,
    prior.requestOverheadMs,
    // A step that computes nothing but prompts has a base of its own.
    prior.perChunkMs + (prefillEngines > 0 ? prior.baseMs : 0),
    prior.perPrefillTokenMs * 1000,
    (prior.perPairMs - PAIR_TOKENS * prior.perPrefillTokenMs) * 1e6,
  ]
  const std = mean.map((value) => Math.max(1e-3, Math.abs(value)) * prior.uncertaintyRatio)
  std[4] = Math.max(CHUNK_STD_MS, std[4] ?? 0)
  const pairRatio = Math.min(MAX_PAIR_UNCERTAINTY_RATIO, prior.uncertaintyRatio)
  std[6] = Math.max(1e-3, prior.perPairMs * 1e6 * pairRatio)
  return { prior, estimate: linearEstimate(mean, std), prefillEngines, slownessRatio: 1 }
}

/** The same parameters, learnt together, as one replica sees them. */
export function sharedModel(model: StepModel): StepModel {
  return { ...model }
}

/** A decode step of `sequences` sequences over `contextTokens`, in ms; above 0. Negative terms are read as 0. */
export function decodeStepMs(model: StepModel, sequences: number, contextTokens: Tokens): Ms {
  // By index: this and the next are asked more often than anything else, and a pattern walks an iterator.
  const { mean } = model.estimate
  const perSequence = Math.max(0, mean[1] ?? 0)
  const perContext = Math.max(0, mean[2] ?? 0)
  const ms = (mean[0] ?? 0) + perSequence * sequences + (perContext * contextTokens) / 1000
  return Math.max(0.1, ms * model.slownessRatio)
}

/**
 * The same with what is not known yet on top: one standard deviation, at most half the step. A batch larger than any
 * that was seen costs what its growth has been seen to cost, and not less because it was never seen.
 */
export function cautiousDecodeStepMs(model: StepModel, sequences: number, contextTokens: Tokens): Ms {
  const stepMs = decodeStepMs(model, sequences, contextTokens)
  const unsureMs = deviation(model.estimate, [1, sequences, contextTokens / 1000]) * model.slownessRatio
  return stepMs + Math.min(unsureMs, MAX_CAUTION_RATIO * stepMs)
}

/** What a million pairs cost, in ms; at least 0. */
export function perMillionPairsMs({ estimate: { mean } }: StepModel): Ms {
  return Math.max(0, 1000 * PAIR_TOKENS * Math.max(0, mean[5] ?? 0) + (mean[6] ?? 0))
}

/**
 * What prefilling `tokens` in chunks of `chunkTokens` adds to the decode steps meanwhile, in ms; at least 0. `pairs` are
 * their `attentionPairs`, here and below by default those of one prompt of which nothing is cached.
 */
export function prefillStallMs(model: StepModel, tokens: Tokens, chunkTokens: Tokens, pairs?: number): Ms {
  return model.prefillEngines > 0 ? 0 : chunksMs(model, tokens, chunkTokens, pairs)
}

/** What `tokens` in chunks of `chunkTokens` take beyond plain decode steps, whoever computes them, in ms; at least 0. */
export function chunksMs(
  model: StepModel,
  tokens: Tokens,
  chunkTokens: Tokens,
  pairs: number = attentionPairs(tokens),
): Ms {
  if (tokens <= 0) return 0
  const { mean } = model.estimate
  const perChunk = mean[4] ?? 0
  const per1k = Math.max(0, mean[5] ?? 0)
  // A chunk may be learnt as cheaper than its tokens' share; floored one by one, so that more is never cheaper.
  const whole = Math.floor(tokens / chunkTokens)
  const rest = whole > 0 ? tokens % chunkTokens : tokens
  const wholeMs = whole > 0 ? whole * Math.max(0, perChunk + (per1k * chunkTokens) / 1000) : 0
  const stallMs = wholeMs + (rest > 0 ? Math.max(0, perChunk + (per1k * rest) / 1000) : 0)
  return (stallMs + (perMillionPairsMs(model) * pairs) / 1e6) * model.slownessRatio
}

/**
 * What checking so many guessed tokens adds to a decode step, in ms: they are computed as prompt tokens are, and their
 * attention is that of the step.
 */
export function guessesMs(model: StepModel, guesses: Tokens): Ms {
  if (model.prefillEngines === 0) return chunksMs(model, guesses, guesses, 0)
  // A chunk of an engine for prompts alone pays for a step of its own; guesses are checked in a step that is there.
  return (Math.max(0, model.estimate.mean[5] ?? 0) * guesses * model.slownessRatio) / 1000
}

/** Prefill of `tokens` from its first step to its first token with `sequences` decoding beside it, in ms. */
export function prefillMs(
  model: StepModel,
  tokens: Tokens,
  chunkTokens: Tokens,
  sequences: number,
  contextTokens: Tokens,
  pairs?: number,
): Ms {
  if (model.prefillEngines > 0) return chunksMs(model, tokens, chunkTokens, pairs)
  const chunks = Math.max(1, Math.ceil(tokens / chunkTokens))
  return (
    prefillStallMs(model, tokens, chunkTokens, pairs) + chunks * decodeStepMs(model, sequences, contextTokens)
  )
}

/**
 * What a request that finds no prefill going on takes besides its steps, in ms. It may be learnt as negative, by up to
 * the decode step that its first token shares.
 */
export function requestOverheadMs(model: StepModel): Ms {
  const { mean } = model.estimate
  return Math.max(-Math.max(0, mean[0] ?? 0), mean[3] ?? 0) * model.slownessRatio
}

/**
 * Steps of the engine that makes the answer from the arrival of a prompt's KV to its first token: its own, after what is
 * left of one that runs. 0 where the prompt's last step makes it.
 */
export function joiningSteps({ prefillEngines }: StepModel, sequences: number): number {
  if (prefillEngines === 0) return 0
  return sequences > 0 ? 1 + HALF_STEP : 1
}

/** From the end of a prompt's last chunk to its first token where another engine makes that, in ms: KV and joining. */
export function leavingMs(model: StepModel, sequences: number, contextTokens: Tokens): Ms {
  const joinMs = joiningSteps(model, sequences) * decodeStepMs(model, sequences, contextTokens)
  return Math.max(0, requestOverheadMs(model) + joinMs)
}

/** First kind: `steps` decode steps took `elapsedMs` while nothing prefilled. */
export function observeDecode(
  model: StepModel,
  steps: number,
  elapsedMs: Ms,
  sequences: number,
  contextTokens: Tokens,
): StepResidual | undefined {
  if (!(steps > 0)) return undefined
  const x = [steps, steps * sequences, (steps * contextTokens) / 1000, 0, 0, 0, 0]
  return learn(model, x, elapsedMs, DECODE_NOISE_RATIO + COUNT_NOISE_STEPS / steps)
}

/** Second kind: an interval that ended with first tokens, in which the engine prefilled all the time. */
export interface PrefillInterval {
  readonly elapsedMs: Ms
  /** Requests whose whole overhead lies in it: those that found no prefill going on. */
  readonly starts: number
  readonly prefillTokens: Tokens
  /** Their `attentionPairs`. */
  readonly pairs: number
  readonly chunks: number
  /** Steps in it, and what was decoding meanwhile. */
  readonly steps: number
  readonly sequences: number
  readonly contextTokens: Tokens
}

export function observePrefill(model: StepModel, interval: PrefillInterval): StepResidual | undefined {
  const { elapsedMs, starts, prefillTokens, pairs, chunks, steps, sequences, contextTokens } = interval
  if (!(elapsedMs > 0)) return undefined
  const worthTokens = prefillTokens + PAIR_TOKENS * pairs
  const x = [steps, steps * sequences, (steps * contextTokens) / 1000, starts, chunks, worthTokens / 1000, 0]
  const tells = pairs >= LEAST_CONTEXT_TOKENS * prefillTokens
  if (tells) x[6] = pairs / 1e6
  const knownMs = tells ? 0 : ((model.estimate.mean[6] ?? 0) * pairs) / 1e6
  const noiseRatio = PREFILL_NOISE_RATIO + COUNT_NOISE_STEPS / Math.max(1, steps)
  return learn(model, x, elapsedMs, noiseRatio, knownMs)
}

/**
 * Takes what one replica shows as its group would have. Noise is a share of what was seen: a stall counts little. Of it
 * `knownMs`, as the group would have taken, is not to be learnt from.
 */
function learn(
  { estimate, slownessRatio }: StepModel,
  x: readonly number[],
  elapsedMs: Ms,
  noiseRatio: number,
  knownMs: Ms = 0,
): StepResidual | undefined {
  const believedMs = Math.max(CLOCK_NOISE_MS, predict(estimate, x) + knownMs)
  const alikeMs = elapsedMs / slownessRatio
  const surprise = observe(estimate, x, alikeMs - knownMs, noiseRatio * alikeMs + CLOCK_NOISE_MS)
  if (surprise === undefined) return undefined
  const { off, sigma } = surprise
  return { ratio: alikeMs / believedMs, sigmaRatio: sigma / believedMs, sigmas: off / sigma }
}
