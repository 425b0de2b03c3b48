/** Translates replicas and waiting jobs into the terms of the plan: machines with free instants, work in ms. */
import type { Ms, Tokens } from '../core/units.ts'
import { clamp } from '../core/units.ts'
import { TPOT_USE_RATIO } from '../estimate/margins.ts'
import {
  decodeStepMs,
  joiningSteps,
  prefillMs,
  prefillStallMs,
  requestOverheadMs,
} from '../estimate/step-model.ts'
import { holdingsOf } from './holdings.ts'
import { type Job, pairsOfJob, uncachedTokens } from './job.ts'
import type { Learnt } from './learnt.ts'
import type { PlannedOption } from './ordering/moore-hodgson.ts'
import type { VirtualStart } from './ordering/virtual-replica.ts'
import { type Outlook, riskFactor } from './outlook.ts'

/** Most slots that a plan keeps apart; beyond it they don't bind. */
const MAX_PLANNED_SLOTS = 512
/** Depth bounds in tokens, and the part of the tightest TTFT that it may take (decision notes, F4). */
const MIN_DEPTH_TOKENS = 128
const DEPTH_TTFT_DIVISOR = 6
/** At least this much prefill may lie there, in ms, however small a chunk is: an engine must not run dry between prompts. */
const MIN_MOST_MS: Ms = 70
/** Tightest TTFT assumed when no class of the pool has one, in ms. */
const LOOSE_TTFT_MS: Ms = 3000

/** Backlog that is kept in the engine, in tokens: a sixth of the tightest TTFT's worth of prefill, at most a chunk or 70 ms. */
export function depthTokens(view: Outlook, tightestTtftMs: Ms | undefined, instances: number): Tokens {
  const chunk = view.chunkTokens * Math.max(1, view.model.prefillEngines)
  // Without attention: a backlog of that size has little, while a whole chunk as one prompt would have much.
  const chunkMs = prefillMs(view.model, view.chunkTokens, view.chunkTokens, 0, 0, 0)
  const msPerToken = Math.max(1e-6, chunkMs / chunk)
  const most = Math.max(chunk, MIN_MOST_MS / msPerToken)
  const wanted = (tightestTtftMs ?? LOOSE_TTFT_MS) / DEPTH_TTFT_DIVISOR / msPerToken
  return clamp(wanted, Math.min(MIN_DEPTH_TOKENS, view.chunkTokens), most) / instances
}

/**
 * Sequences that a replica can decode at once: its slots, or fewer where the tightest TPOT target binds first.
 * Contexts are assumed to stay as long as they are now.
 */
export function usableSlots(view: Outlook, tightestTpotMs: Ms): number {
  if (!Number.isFinite(tightestTpotMs)) return view.slots
  const { ledger, model } = view
  const running = Math.max(1, ledger.inFlightSequences)
  const contextEach = ledger.contextTokens / running
  const one = decodeStepMs(model, 1, contextEach)
  const perSequence = decodeStepMs(model, 2, 2 * contextEach) - one + view.renewalMs
  if (perSequence <= 0) return view.slots
  const fits = 1 + Math.floor((tightestTpotMs * TPOT_USE_RATIO - one) / perSequence)
  return Math.max(1, Math.min(view.slots, fits))
}

/** A decode step with its share of the prefills that renew the batch: what a token takes while the load lasts, in ms. */
function loadedStepMs({ decodeStepMs: stepMs, renewalMs, ledger }: Outlook): Ms {
  return stepMs + renewalMs * ledger.inFlightSequences
}

/** Where a replica stands before the plan. Slots are listed only where the waiting work could run out of them. */
export function virtualStart(
  view: Outlook,
  learnt: Learnt,
  slots: number,
  waitingSequences: number,
  nowMs: Ms,
  keptMs: Ms,
): VirtualStart {
  const { ledger, decodeStepMs: stepMs } = view
  const prefillFreeAtMs = nowMs + view.backlogMs
  const running = ledger.inFlightSequences
  if (running + waitingSequences <= slots || slots > MAX_PLANNED_SLOTS) {
    return { prefillFreeAtMs, slotsFreeAtMs: undefined }
  }
  const whole = Math.max(1, Math.floor(slots))
  const busy: Ms[] = []
  const holdings = holdingsOf(ledger, learnt, nowMs, keptMs, keptMs)
  for (let i = holdings.count - 1; i >= 0; i--) {
    const left = holdings.left[i] ?? 0
    for (let n = Math.min(whole, holdings.sequences[i] ?? 0); n > 0; n--)
      busy.push(prefillFreeAtMs + left * stepMs)
  }
  // More in flight than slots: the first to end make no room yet.
  const late = busy.slice(Math.max(0, busy.length - whole))
  const free = new Array<Ms>(Math.max(0, whole - late.length)).fill(nowMs)
  return { prefillFreeAtMs, slotsFreeAtMs: [...free, ...late] }
}

/** What a job takes on a replica, `replica` by index. `tightestTpotMs` stretches prefill to the duty that running streams can bear. */
export function plannedOption(job: Job, view: Outlook, replica: number, tightestTpotMs: Ms): PlannedOption {
  const { ledger, model, chunkTokens: chunk } = view
  const uncached = uncachedTokens(job, ledger.replicaId)
  const risk = riskFactor(view, uncached)
  const pairs = pairsOfJob(job, uncached)
  const ownMs = prefillMs(model, uncached, chunk, ledger.decodingSequences, ledger.contextTokens, pairs)
  const chunks = Math.max(1, Math.ceil(uncached / chunk))
  // Of several engines for prompts it takes one: the others go on.
  const takenMs = ownMs / Math.max(1, model.prefillEngines)
  const joinMs = joiningSteps(model, ledger.decodingSequences) * view.decodeStepMs
  return {
    replica,
    prefillMs: takenMs * risk,
    pauseMs: chunks * pauseMs(view, uncached / chunks, pairs / chunks, tightestTpotMs) * risk,
    residenceMs: job.outputTokens * loadedStepMs(view),
    sequences: job.waiter.offer.sequences,
    latencyMs: (requestOverheadMs(model) + joinMs + (ownMs - takenMs)) * risk,
  }
}

/**
 * Plain decode time that must follow a chunk so that the mean gap stays at the target:
 * (tMix + k*tDec)/(1 + k) = TPOT gives k = (tMix - TPOT)/(TPOT - tDec) steps (decision notes, C3). In ms.
 */
function pauseMs(view: Outlook, tokens: Tokens, pairs: number, tightestTpotMs: Ms): Ms {
  const stepMs = view.decodeStepMs
  const target = tightestTpotMs * TPOT_USE_RATIO
  if (view.ledger.decodingSequences === 0 || !Number.isFinite(target) || target <= stepMs) return 0
  const mixedMs = stepMs + prefillStallMs(view.model, tokens, view.chunkTokens, pairs)
  const steps = Math.max(0, (mixedMs - target) / (target - stepMs))
  return Math.min(10, steps) * stepMs
}
