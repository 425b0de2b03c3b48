/** Predicts the engine's own part of TTFT from the step model and from what the engine has to do first. */
import { attentionPairs } from '../core/attention.ts'
import { pairsOf, type ReplicaLedger } from '../core/ledger.ts'
import type { Ms, Tokens } from '../core/units.ts'
import {
  chunksMs,
  decodeStepMs,
  HALF_STEP,
  leavingMs,
  prefillMs,
  requestOverheadMs,
  type StepModel,
} from './step-model.ts'
import { chunkTokens } from './step-windows.ts'

/** What an engine has to do when a prompt reaches it. */
export interface EngineLoad {
  /** Prompt tokens ahead of it that are not computed yet. */
  readonly backlogTokens: Tokens
  /** Their `attentionPairs`, of each prompt by itself. */
  readonly backlogPairs: number
  /** Sequences that decode meanwhile, and their context. */
  readonly sequences: number
  readonly contextTokens: Tokens
  /** Prompt tokens of one full chunk. */
  readonly chunkTokens: Tokens
}

/** The load as the ledger shows it: the backlog less what the engine must have computed since its last first token. */
export function loadOf(model: StepModel, ledger: ReplicaLedger, nowMs: Ms): EngineLoad {
  const { head, backlogTokens, backlogPairs, decodingSequences: sequences, contextTokens } = ledger
  const load = { backlogTokens, backlogPairs, sequences, contextTokens, chunkTokens: chunkTokens(ledger) }
  if (head === undefined) return load
  if (model.prefillEngines > 0) Object.assign(load, queued(model, ledger, load, nowMs))
  else {
    const sinceMs =
      nowMs - Math.max(head.dispatchedAtMs + requestOverheadMs(model), ledger.lastFirstTokenAtMs)
    const headPairs = pairsOf(head)
    const headMs = prefillTimeMs(model, load, head.uncachedTokens, headPairs)
    // Never all of it: it is there as long as its first token has not come.
    const doneRatio = Math.max(0, Math.min(0.9, sinceMs / Math.max(1, headMs)))
    load.backlogTokens -= doneRatio * head.uncachedTokens
    load.backlogPairs -= doneRatio * headPairs
  }
  return load
}

/**
 * Prompt tokens that engines for prompts alone still have to compute, dead-reckoned: they take one prompt after the
 * other, the next as soon as the last one's KV has left, which is long before its first token is seen.
 */
function queued(model: StepModel, ledger: ReplicaLedger, load: EngineLoad, nowMs: Ms) {
  let freeAtMs = ledger.lastFirstTokenAtMs - leavingMs(model, load.sequences, load.contextTokens)
  let backlogTokens = 0
  let backlogPairs = 0
  for (const inFlight of ledger.prefilling.values()) {
    const { dispatchedAtMs, uncachedTokens } = inFlight
    const pairs = pairsOf(inFlight)
    const ownMs = Math.max(1e-6, prefillTimeMs(model, load, uncachedTokens, pairs) / model.prefillEngines)
    freeAtMs = Math.max(freeAtMs, dispatchedAtMs) + ownMs
    const leftRatio = Math.max(0, Math.min(1, (freeAtMs - nowMs) / ownMs))
    backlogTokens += leftRatio * uncachedTokens
    backlogPairs += leftRatio * pairs
  }
  return { backlogTokens, backlogPairs }
}

/** Time until what waits there is prefilled, in ms. */
export function queueMs(model: StepModel, load: EngineLoad): Ms {
  const { backlogTokens, backlogPairs } = load
  return prefillTimeMs(model, load, backlogTokens, backlogPairs) / Math.max(1, model.prefillEngines)
}

/** A prompt that takes so many times what was predicted when it was sent, and so long beyond it, waits for a slot. */
const OVERDUE_RATIO = 2
const OVERDUE_BY_MS: Ms = 50

/**
 * True when the first prompt there should have been done long ago while streams go on: the engine does not begin what
 * it is sent, most likely for want of a slot. Prompts of answers that don't stream are never seen to be done.
 */
export function isHeadOverdue(ledger: ReplicaLedger, nowMs: Ms): boolean {
  return ledger.decoding.size > 0 && isHeadLate(ledger, nowMs)
}

/** True when the first prompt there should have been done long ago, whatever the reason. */
export function isHeadLate({ head }: ReplicaLedger, nowMs: Ms): boolean {
  if (head?.predictedTtftMs === undefined || !head.offer.streamed) return false
  const predictedMs = head.offer.receivedAtMs + head.predictedTtftMs - head.dispatchedAtMs
  return nowMs - head.dispatchedAtMs > OVERDUE_RATIO * predictedMs + OVERDUE_BY_MS
}

/** Prefill of that many tokens with so many `attentionPairs` beside what decodes there, in ms; 0 for none. */
export function prefillTimeMs(model: StepModel, load: EngineLoad, tokens: Tokens, pairs: number): Ms {
  const { chunkTokens: chunk, sequences, contextTokens } = load
  return tokens > 0 ? prefillMs(model, tokens, chunk, sequences, contextTokens, pairs) : 0
}

/**
 * From dispatch to the first token of a prompt of `uncachedTokens`, in ms, at least 1: overhead, the rest of the running
 * step, the backlog and its own prefill (decision notes, C4). Raw: `calibration` says how it errs. `pairs` are its
 * `attentionPairs`, by default those of a prompt of which nothing is cached.
 */
export function rawTtftMs(
  model: StepModel,
  load: EngineLoad,
  uncachedTokens: Tokens,
  pairs: number = attentionPairs(uncachedTokens),
): Ms {
  const { backlogTokens, backlogPairs, sequences, contextTokens } = load
  if (model.prefillEngines > 0) {
    const workTokens = backlogTokens / model.prefillEngines + uncachedTokens
    const workPairs = backlogPairs / model.prefillEngines + pairs
    const workMs = chunksMs(model, workTokens, load.chunkTokens, workPairs)
    return Math.max(1, workMs + leavingMs(model, sequences, contextTokens))
  }
  const runningMs =
    backlogTokens > 0 || sequences === 0 ? 0 : HALF_STEP * decodeStepMs(model, sequences, contextTokens)
  const workMs = prefillTimeMs(model, load, backlogTokens + uncachedTokens, backlogPairs + pairs)
  return Math.max(1, requestOverheadMs(model) + runningMs + workMs)
}

/** Bounds of the classes of load: chunks of backlog, and tokens of the prompt (decision notes, C5). */
const BACKLOG_CHUNKS = [1, 4]
const PROMPT_TOKENS = [512, 4096]

/** Classes of prompt size, from 0. */
export const PROMPT_CLASSES = PROMPT_TOKENS.length + 1

export function promptClass(uncachedTokens: Tokens): number {
  return reached(PROMPT_TOKENS, uncachedTokens)
}

/** The class of load in which errors are kept apart, a small index: an idle engine, a decoding one, its backlog. */
export function loadClass(load: EngineLoad, ofPrompt: number): number {
  const { backlogTokens, sequences } = load
  const busy = sequences > 0 ? 1 : 0
  const queue = backlogTokens > 0 ? 2 + reached(BACKLOG_CHUNKS, backlogTokens / load.chunkTokens) : busy
  return queue * PROMPT_CLASSES + ofPrompt
}

function reached(bounds: readonly number[], value: number): number {
  let count = 0
  for (const bound of bounds) if (value >= bound) count++
  return count
}
