/** How long an engine step takes: one parameter vector per replica group, learnt from two kinds of observation. */
import type { Ms, Tokens } from '../core/units.ts'
import { deviation, type LinearEstimate, linearEstimate, observe, predict } from './kalman.ts'

/**
 * What is believed before anything is seen. The formula is that of a chunked-prefill engine (decision notes, C1):
 * a step with B sequences over K context tokens takes base + perSequence*B + perContextToken*K; each prefill chunk
 * of n tokens adds perChunk + perPrefillToken*n to its step, and never less than nothing.
 */
export interface StepPrior {
  readonly baseMs: Ms
  readonly perSequenceMs: Ms
  readonly perContextTokenMs: Ms
  readonly perChunkMs: Ms
  readonly perPrefillTokenMs: Ms
  /** Time of a request outside of steps: parsing, tokenising, the way there and back. */
  readonly requestOverheadMs: Ms
  /** How sure the prior is: standard deviation as a share of each value. */
  readonly uncertaintyRatio: number
}

/** A prior for an engine of which nothing is known: the order of an 8B model on one current GPU, very unsure. */
export const UNKNOWN_ENGINE: StepPrior = {
  baseMs: 12,
  perSequenceMs: 0.1,
  perContextTokenMs: 0.0001,
  perChunkMs: 0,
  perPrefillTokenMs: 0.08,
  requestOverheadMs: 10,
  uncertaintyRatio: 10,
}

/**
 * The learnt parameters: base, sequence, context, request overhead, chunk, prefill; contexts and prefill tokens count in
 * thousands. Those of a decode step come first.
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
  ]
  const std = mean.map((value) => Math.max(1e-3, Math.abs(value)) * prior.uncertaintyRatio)
  std[4] = Math.max(CHUNK_STD_MS, std[4] ?? 0)
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

/** What prefilling `tokens` in chunks of `chunkTokens` adds to the decode steps meanwhile, in ms; at least 0. */
export function prefillStallMs(model: StepModel, tokens: Tokens, chunkTokens: Tokens): Ms {
  return model.prefillEngines > 0 ? 0 : chunksMs(model, tokens, chunkTokens)
}

/** What `tokens` in chunks of `chunkTokens` take beyond plain decode steps, whoever computes them, in ms; at least 0. */
export function chunksMs(model: StepModel, tokens: Tokens, chunkTokens: Tokens): Ms {
  if (tokens <= 0) return 0
  const { mean } = model.estimate
  const perChunk = mean[4] ?? 0
  const per1k = Math.max(0, mean[5] ?? 0)
  // A chunk may be learnt as cheaper than its tokens' share; floored one by one, so that more is never cheaper.
  const whole = Math.floor(tokens / chunkTokens)
  const rest = whole > 0 ? tokens % chunkTokens : tokens
  const wholeMs = whole > 0 ? whole * Math.max(0, perChunk + (per1k * chunkTokens) / 1000) : 0
  const stallMs = wholeMs + (rest > 0 ? Math.max(0, perChunk + (per1k * rest) / 1000) : 0)
  return stallMs * model.slownessRatio
}

/** What checking so many guessed tokens adds to a decode step: they are computed as prompt tokens are, in ms. */
export function guessesMs(model: StepModel, guesses: Tokens): Ms {
  if (model.prefillEngines === 0) return chunksMs(model, guesses, guesses)
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
): Ms {
  if (model.prefillEngines > 0) return chunksMs(model, tokens, chunkTokens)
  const chunks = Math.max(1, Math.ceil(tokens / chunkTokens))
  return prefillStallMs(model, tokens, chunkTokens) + chunks * decodeStepMs(model, sequences, contextTokens)
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
  const x = [steps, steps * sequences, (steps * contextTokens) / 1000, 0, 0, 0]
  return learn(model, x, elapsedMs, DECODE_NOISE_RATIO + COUNT_NOISE_STEPS / steps)
}

/** Second kind: an interval that ended with first tokens, in which the engine prefilled all the time. */
export interface PrefillInterval {
  readonly elapsedMs: Ms
  /** Requests whose whole overhead lies in it: those that found no prefill going on. */
  readonly starts: number
  readonly prefillTokens: Tokens
  readonly chunks: number
  /** Steps in it, and what was decoding meanwhile. */
  readonly steps: number
  readonly sequences: number
  readonly contextTokens: Tokens
}

export function observePrefill(model: StepModel, interval: PrefillInterval): StepResidual | undefined {
  const { elapsedMs, starts, prefillTokens, chunks, steps, sequences, contextTokens } = interval
  if (!(elapsedMs > 0)) return undefined
  const x = [steps, steps * sequences, (steps * contextTokens) / 1000, starts, chunks, prefillTokens / 1000]
  return learn(model, x, elapsedMs, PREFILL_NOISE_RATIO + COUNT_NOISE_STEPS / Math.max(1, steps))
}

/** Takes what one replica shows as its group would have. Noise is a share of what was seen: a stall counts little. */
function learn(
  { estimate, slownessRatio }: StepModel,
  x: readonly number[],
  elapsedMs: Ms,
  noiseRatio: number,
): StepResidual | undefined {
  const believedMs = Math.max(CLOCK_NOISE_MS, predict(estimate, x))
  const alikeMs = elapsedMs / slownessRatio
  const surprise = observe(estimate, x, alikeMs, noiseRatio * alikeMs + CLOCK_NOISE_MS)
  if (surprise === undefined) return undefined
  const { off, sigma } = surprise
  return { ratio: alikeMs / believedMs, sigmaRatio: sigma / believedMs, sigmas: off / sigma }
}
