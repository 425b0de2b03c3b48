/** How much of a demand one replica carries within its targets, by its step model: the basis of scaling out. */
import { attentionPairs } from '../core/attention.ts'
import type { OfferedStream } from '../core/demand.ts'
import { hasTargets, ttftTargetMs } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { KV_USE_RATIO, TPOT_USE_RATIO } from './margins.ts'
import { chunksMs, decodeStepMs, joiningSteps, requestOverheadMs, type StepModel } from './step-model.ts'

/** What the engine allows; Infinity where nobody knows. */
export interface ReplicaRoom {
  readonly slots: number
  readonly kvCapacityTokens: Tokens
  readonly chunkTokens: Tokens
}

/** Standard deviations of a batch above its mean that must still find a slot; its size varies as a Poisson number. */
const SLOT_DEVIATIONS = 2
/** A first token waits for the step that runs, half of it on average, and then for its own. */
const STEPS_TO_FIRST_TOKEN = 1.5
/** A share of the demand below which a class does not tighten the promises of the whole. */
const NEGLIGIBLE_RATIO: Ratio = 0.01
const HALVINGS = 40

/**
 * Share of `demand` that one such replica carries while each class keeps its objective: 0.5 means that two are needed.
 * 0 when no share is small enough, Infinity when nothing is asked. Random arrivals and no bursts are assumed.
 */
export function carriedShare(model: StepModel, demand: readonly OfferedStream[], room: ReplicaRoom): number {
  const asked = demand.filter(({ requestsPerSec }) => requestsPerSec > 0)
  if (asked.length === 0) return Number.POSITIVE_INFINITY
  let low = 0
  let high = 1
  while (holds(model, asked, high, room) && high < 1e9) high *= 2
  for (let halving = 0; halving < HALVINGS; halving++) {
    const middle = (low + high) / 2
    if (holds(model, asked, middle, room)) low = middle
    else high = middle
  }
  return low
}

/** Whether every class keeps its objective at that share of the demand. Monotone: what holds at more holds at less. */
function holds(
  model: StepModel,
  demand: readonly OfferedStream[],
  share: number,
  room: ReplicaRoom,
): boolean {
  const steady = steadyState(model, demand, share, room)
  if (steady === undefined) return false
  const { batch, contextTokens, stepMs } = steady
  if (batch + SLOT_DEVIATIONS * Math.sqrt(batch) > room.slots) return false
  if (contextTokens > KV_USE_RATIO * room.kvCapacityTokens) return false
  const total = demand.reduce((sum, stream) => sum + stream.requestsPerSec, 0)
  return demand.every((stream) => {
    if (!hasTargets(stream.slo) || stream.requestsPerSec < NEGLIGIBLE_RATIO * total) return true
    const { slo, promptTokens, outputTokens, sequences } = stream
    const ttftMs = firstTokenMs(model, stream, steady, room)
    const wholeMs = ttftMs + stepMs * Math.max(0, outputTokens / sequences - 1)
    return (
      ttftMs <= (ttftTargetMs(slo, promptTokens) ?? Number.POSITIVE_INFINITY) &&
      stepMs <= TPOT_USE_RATIO * (slo.tpotMs ?? Number.POSITIVE_INFINITY) &&
      wholeMs <= (slo.e2eMs ?? Number.POSITIVE_INFINITY)
    )
  })
}

interface SteadyState {
  /** Sequences running, by Little's law. */
  readonly batch: number
  readonly contextTokens: Tokens
  /** From one token of a stream to its next, prefill in between included. */
  readonly stepMs: Ms
  /** Share of time that prefill takes, and how long one prefill takes on average. */
  readonly prefillRatio: Ratio
  readonly prefillMs: Ms
}

/**
 * The steady batch at that share. With rate r, output L, cost a of a token in the batch, decode base d and prefill share
 * p, a step lasts T = (d + a*B) / (1 - p) and B = r*L*T, so T = d / (1 - p - r*L*a). Undefined when that has no positive
 * answer: the batch would grow without end.
 */
function steadyState(
  model: StepModel,
  demand: readonly OfferedStream[],
  share: number,
  { chunkTokens }: ReplicaRoom,
): SteadyState | undefined {
  const apart = model.prefillEngines > 0
  const engines = Math.max(1, model.prefillEngines)
  let perMs = 0
  let prefillRatio = 0
  let tokensPerMs = 0
  let contextPerMs = 0
  for (const { requestsPerSec, promptTokens, uncachedTokens, outputTokens, sequences } of demand) {
    const rate = (share * requestsPerSec) / 1000
    perMs += rate
    // Of a mean prompt: a little less than the mean, since attention grows faster than prompts.
    const pairs = attentionPairs(promptTokens, uncachedTokens)
    prefillRatio += (rate * chunksMs(model, uncachedTokens, chunkTokens, pairs)) / engines
    tokensPerMs += rate * outputTokens
    contextPerMs += rate * outputTokens * (promptTokens + outputTokens / sequences / 2)
  }
  const meanContext = tokensPerMs === 0 ? 0 : contextPerMs / tokensPerMs
  const baseMs = decodeStepMs(model, 0, 0)
  const perTokenMs = decodeStepMs(model, 1, meanContext) - baseMs
  const left = 1 - (apart ? 0 : prefillRatio) - tokensPerMs * perTokenMs
  if (left <= 0 || prefillRatio >= 1) return undefined
  const stepMs = baseMs / left
  const batch = tokensPerMs * stepMs
  const prefillMs = perMs === 0 ? 0 : prefillRatio / perMs
  return { batch, contextTokens: batch * meanContext, stepMs, prefillRatio, prefillMs }
}

/**
 * The first token at the quantile of the objective: overhead, the steps it waits for, its own prefill, and the queue of
 * an M/M/1 server whose work is prefill, P(wait > t) = p * exp(-(1 - p) * t / s).
 */
function firstTokenMs(
  model: StepModel,
  { slo, promptTokens, uncachedTokens }: OfferedStream,
  { stepMs, prefillRatio, prefillMs }: SteadyState,
  { chunkTokens }: ReplicaRoom,
): Ms {
  const missRatio = 1 - (slo.objectiveRatio ?? 0.99)
  const logged = Math.log(Math.max(1, prefillRatio / missRatio))
  const queueMs = (prefillMs * logged) / (1 - prefillRatio)
  const steps = STEPS_TO_FIRST_TOKEN + Math.max(1, Math.ceil(uncachedTokens / chunkTokens)) - 1
  const joins = model.prefillEngines > 0 ? joiningSteps(model, 1) : steps
  const ownMs = chunksMs(model, uncachedTokens, chunkTokens, attentionPairs(promptTokens, uncachedTokens))
  return requestOverheadMs(model) + joins * stepMs + ownMs + queueMs
}
