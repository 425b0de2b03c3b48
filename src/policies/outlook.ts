/** One replica as a decision sees it now: what is queued there, how fast it is, what its streams can still bear. */
import type { ReplicaLedger } from '../core/ledger.ts'
import type { Ms, Tokens } from '../core/units.ts'
import type { EngineGroup } from '../estimate/engine-group.ts'
import { decodeStepMs, prefillStallMs, type StepModel } from '../estimate/step-model.ts'
import {
  type EngineLoad,
  isHeadOverdue,
  loadClass,
  loadOf,
  promptClass,
  queueMs,
  rawTtftMs,
} from '../estimate/ttft.ts'
import type { Learnt } from './learnt.ts'
import { residentsOf } from './residents.ts'

export interface Outlook {
  readonly ledger: ReplicaLedger
  readonly group: EngineGroup
  readonly model: StepModel
  readonly load: EngineLoad
  readonly chunkTokens: Tokens
  readonly nowMs: Ms
  /** By class of prompt, once asked for: what a raw TTFT there must be multiplied by to be the median. */
  readonly medianFactors: number[]
  /** Uncached tokens there that are not prefilled yet, as dead-reckoned. */
  readonly backlogTokens: Tokens
  readonly backlogMs: Ms
  /** It has a prompt that it does not begin: see `isHeadOverdue`. */
  readonly headOverdue: boolean
  readonly decodeStepMs: Ms
  /** Prefill stall that its running streams can bear beyond the backlog's own, in ms; Infinity with none. */
  readonly bearableStallMs: Ms
  /** Tightest TPOT target among its running streams, in ms; Infinity with none. */
  readonly tightestTpotMs: Ms
  /** Prefill that renews the batch, per running sequence and step, in ms: see `Residents`. */
  readonly renewalMs: Ms
  /** Sequences that it may run at once for us; Infinity when nobody knows. */
  readonly slots: number
}

/** Reads one replica; what its running streams allow may be `residentsMs` old. Costs O(streams there) when it is read. */
export function outlook(
  ledger: ReplicaLedger,
  learnt: Learnt,
  instances: number,
  nowMs: Ms,
  residentsMs: Ms = 0,
): Outlook {
  const group = learnt.groupOf(ledger)
  const model = group.modelOf(ledger.replicaId)
  const load = loadOf(model, ledger, nowMs)
  learnt.readGauges(ledger, instances, nowMs)
  const stepMs = decodeStepMs(model, ledger.inFlightSequences, ledger.contextTokens)
  const residents = residentsOf({ ledger, learnt, model, stepMs, nowMs }, residentsMs)
  return {
    ledger,
    group,
    model,
    load,
    chunkTokens: load.chunkTokens,
    nowMs,
    medianFactors: [],
    backlogTokens: load.backlogTokens,
    backlogMs: queueMs(model, load),
    headOverdue: isHeadOverdue(ledger, nowMs),
    decodeStepMs: stepMs,
    bearableStallMs: residents.slackMs - backlogStallMs(model, load),
    tightestTpotMs: residents.tpotMs,
    renewalMs: residents.renewalMs,
    slots: learnt.slots(ledger) / instances,
  }
}

function backlogStallMs(model: StepModel, { backlogTokens, backlogPairs, chunkTokens }: EngineLoad): Ms {
  return prefillStallMs(model, backlogTokens, chunkTokens, backlogPairs)
}

/**
 * Engine's own part of TTFT if `uncachedTokens` were sent there now: median, in ms. `pairs` are their `attentionPairs`,
 * here and below by default those of a prompt of which nothing is cached.
 */
export function engineTtftMs(view: Outlook, uncachedTokens: Tokens, pairs?: number): Ms {
  return rawTtftMs(view.model, view.load, uncachedTokens, pairs) * medianFactor(view, uncachedTokens)
}

/** The same so that four in five come sooner, in ms. */
export function boundTtftMs(view: Outlook, uncachedTokens: Tokens, nowMs: Ms, pairs?: number): Ms {
  const ofLoad = loadClass(view.load, promptClass(uncachedTokens))
  const rawMs = rawTtftMs(view.model, view.load, uncachedTokens, pairs)
  return rawMs * view.group.ttftFactor(ofLoad, 'p80', nowMs)
}

/** What plans stretch raw times by: never less than the model says, and a bit more than the median. */
export function riskFactor(view: Outlook, uncachedTokens: Tokens): number {
  return Math.max(1, medianFactor(view, uncachedTokens) * 1.05)
}

function medianFactor({ medianFactors, group, load, nowMs }: Outlook, uncachedTokens: Tokens): number {
  const ofPrompt = promptClass(uncachedTokens)
  const known = medianFactors[ofPrompt]
  if (known !== undefined) return known
  const factor = group.ttftFactor(loadClass(load, ofPrompt), 'p50', nowMs)
  medianFactors[ofPrompt] = factor
  return factor
}

/** What the request's prefill adds to the steps of those who stream there, in ms. */
export function stallMs(view: Outlook, uncachedTokens: Tokens, pairs?: number): Ms {
  return prefillStallMs(view.model, uncachedTokens, view.chunkTokens, pairs)
}

/** True when nothing of ours is in flight there. */
export function isIdle(view: Outlook): boolean {
  return view.ledger.inFlightRequests === 0
}
