/** Advises on an engine's settings by its step model: token budget, batch, prefill duty, speculation, hopeless promises. */
import type { AdvisedState, ClassAdvice, EngineAdvice } from '../core/engine-advice.ts'
import { type SloClass, ttftTargetMs } from '../core/request.ts'
import { clamp, type Ms, type Tokens } from '../core/units.ts'
import { TPOT_USE_RATIO } from './margins.ts'
import {
  decodeStepMs,
  guessesMs,
  prefillMs,
  prefillStallMs,
  requestOverheadMs,
  type StepModel,
} from './step-model.ts'

/** A class whose promises are looked at, with the prompt that is typical of it where one is known, in tokens. */
export interface AdvisedClass {
  readonly slo: SloClass
  readonly typicalPromptTokens?: Tokens
}

export interface AdvisedEngine extends AdvisedState {
  /** Most sequences at once; Infinity where nobody knows. */
  readonly slots: number
  readonly kvCapacityTokens: Tokens
  /** From dispatch to the first token of a prompt on an idle replica; default: by the step model. */
  readonly idleTtftMs?: (promptTokens: Tokens) => Ms
}

/** Guessing as it is usually set up: tokens guessed a step, share of right ones, cost of a guess in decode steps. */
export const USUAL_SPECULATION = { draftTokens: 4, acceptanceRatio: 0.7, draftCostRatio: 0.05 } as const

/** Prompts, budgets and batches are looked for up to here. */
const MOST_TOKENS: Tokens = 1_000_000
const MOST_SEQUENCES = 4096
/** A chunk of fewer tokens is none. */
const LEAST_CHUNK_TOKENS: Tokens = 16

/** Advice for replicas that run as the model says. */
export function adviseOn(
  model: StepModel,
  classes: readonly AdvisedClass[],
  engine: AdvisedEngine,
): EngineAdvice {
  const { budgetTokens, sequences, contextTokens } = engine
  return {
    state: { budgetTokens, sequences, contextTokens },
    loneStepMs: decodeStepMs(model, 1, contextTokens),
    classes: classes.map((asked) => ({
      className: asked.slo.name,
      ...firstTokenAdvice(model, asked, engine),
      ...paceAdvice(model, asked.slo, engine),
      unmet: unmetBy(model, asked, engine),
    })),
    speculationCostsFrom: speculationCostsFrom(model, engine),
  }
}

function unmetBy(model: StepModel, asked: AdvisedClass, engine: AdvisedEngine): ClassAdvice['unmet'] {
  const { slo, typicalPromptTokens = 1 } = asked
  const ttft = isInTime(model, slo, typicalPromptTokens, engine) ? [] : (['ttft'] as const)
  const tpot = decodeStepMs(model, 1, engine.contextTokens) <= (slo.tpotMs ?? Number.POSITIVE_INFINITY)
  return tpot ? ttft : [...ttft, 'tpot']
}

function firstTokenAdvice(
  model: StepModel,
  { slo, typicalPromptTokens }: AdvisedClass,
  engine: AdvisedEngine,
) {
  const longest = largest(MOST_TOKENS, (tokens) => isInTime(model, slo, tokens, engine))
  return {
    ...(typicalPromptTokens === undefined ? {} : { typicalPromptTokens }),
    ...(longest === MOST_TOKENS ? {} : { longestPromptTokens: longest }),
  }
}

/** Whether an idle replica has the first token of such a prompt within the target. */
function isInTime(
  model: StepModel,
  slo: SloClass,
  promptTokens: Tokens,
  { budgetTokens, idleTtftMs }: AdvisedEngine,
): boolean {
  const targetMs = ttftTargetMs(slo, promptTokens)
  if (targetMs === undefined) return true
  const idleMs =
    idleTtftMs?.(promptTokens) ??
    requestOverheadMs(model) + prefillMs(model, promptTokens, budgetTokens, 0, 0)
  return idleMs <= targetMs
}

/**
 * The batch that a TPOT target allows when nothing prefills; the largest chunk n for which the step that carries it
 * keeps the target, t_dec + stall(n) <= TPOT, so that decodes never stall (Agrawal et al., Sarathi-Serve, OSDI 2024);
 * and for a larger one the share phi of steps that may carry it: (1 - phi) * t_dec + phi * t_mix <= TPOT.
 */
function paceAdvice(model: StepModel, { tpotMs }: SloClass, engine: AdvisedEngine) {
  if (tpotMs === undefined) return {}
  const { contextTokens, budgetTokens } = engine
  const targetMs = TPOT_USE_RATIO * tpotMs
  const room = Math.min(MOST_SEQUENCES, engine.slots, engine.kvCapacityTokens / Math.max(1, contextTokens))
  const stepOf = (batch: number): Ms => decodeStepMs(model, batch, batch * contextTokens)
  const largestBatch = largest(Math.floor(room), (batch) => stepOf(batch) <= targetMs)
  const batch = Math.min(engine.sequences, largestBatch)
  if (batch === 0) return { largestBatch, largestBudgetTokens: 0, prefillDutyRatio: 0 }
  if (model.prefillEngines > 0) return { largestBatch }
  const spareMs = targetMs - stepOf(batch)
  const chunk = largest(MOST_TOKENS, (tokens) => prefillStallMs(model, tokens, tokens) <= spareMs)
  const stallMs = prefillStallMs(model, budgetTokens - batch, budgetTokens)
  return {
    largestBatch,
    largestBudgetTokens: chunk < LEAST_CHUNK_TOKENS ? 0 : chunk + batch,
    prefillDutyRatio: stallMs <= spareMs ? 1 : clamp(spareMs / stallMs, 0, 1),
  }
}

/**
 * Each step checks k guesses of each sequence as it would compute prompt tokens, and yields (1 - a^(k+1)) / (1 - a)
 * tokens (Leviathan et al., 2023). With few sequences a step costs hardly more for it; with many it pays for each token.
 */
function speculationCostsFrom(model: StepModel, { slots, contextTokens }: AdvisedEngine): number {
  const { draftTokens, acceptanceRatio, draftCostRatio } = USUAL_SPECULATION
  const yielded = (1 - acceptanceRatio ** (draftTokens + 1)) / (1 - acceptanceRatio)
  const room = Math.min(MOST_SEQUENCES, slots)
  const pays = largest(room, (batch) => {
    const plainMs = decodeStepMs(model, batch, batch * contextTokens)
    const guesses = draftTokens * batch
    const guessingMs = plainMs * (1 + draftTokens * draftCostRatio) + guessesMs(model, guesses)
    return guessingMs / yielded <= plainMs
  })
  return pays === room ? Number.POSITIVE_INFINITY : pays + 1
}

/** The largest whole number up to `most` that holds, when all below it do; 0 when 1 does not. */
function largest(most: number, holds: (count: number) => boolean): number {
  if (most >= 1 && holds(most)) return most
  let low = 0
  let high = most
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (holds(middle)) low = middle
    else high = middle
  }
  return low
}
