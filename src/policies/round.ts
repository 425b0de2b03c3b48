/** The pool while one plan is made: its replicas, and what a request would meet on each of them. */
import type { CandidateView } from '../core/records.ts'
import type { PoolId } from '../core/request.ts'
import type { GateState, Intent, TrustState } from '../core/scheduler.ts'
import type { Ms } from '../core/units.ts'
import { prefillMs, requestOverheadMs } from '../estimate/step-model.ts'
import { sureMissRatio } from '../estimate/trust.ts'
import type { Candidate } from './admission/gate.ts'
import { refusingGate } from './admission/gates.ts'
import { kvPeakRatio } from './admission/kv-peak.ts'
import { spareSlots } from './admission/slots.ts'
import { type Job, uncachedTokens } from './job.ts'
import type { Learnt } from './learnt.ts'
import { boundTtftMs, engineTtftMs, type Outlook } from './outlook.ts'
import type { SluicePart } from './parts.ts'
import { depthTokens } from './plan-state.ts'
import type { Route } from './routing/soonest-first-token.ts'

/** What is asked of a plan. */
export interface PoolQuestion {
  readonly pool: PoolId
  readonly state: GateState
  readonly learnt: Learnt
  /** Parts that this scheduler does without. */
  readonly without: ReadonlySet<SluicePart>
  readonly nowMs: Ms
}

export interface Round extends PoolQuestion {
  readonly views: readonly Outlook[]
  /** Of the replicas the one whose predictions are believed least: any of them might have served what is shed. */
  readonly trust: TrustState
  /** Tightest targets among what waits and what runs; TPOT is Infinity when nobody has one. */
  readonly tightestTpotMs: Ms
  readonly tightestTtftMs: Ms | undefined
  /** Set when a gate that opens by time alone held work back. */
  heldByTime: boolean
}

/** Most replicas whose numbers a record keeps. */
const MAX_RECORDED = 8

/** True when the replica takes nobody now, however small: it is full, or its slots or its backlog are. */
export function isClosed({ state, nowMs, tightestTtftMs, without }: Round, view: Outlook): boolean {
  const { ledger, slots, backlogTokens } = view
  if (ledger.fullUntilAtMs > nowMs) return true
  if (ledger.inFlightRequests === 0) return false
  if (!without.has('slots') && ledger.inFlightSequences + 1 > slots + spareSlots(ledger)) return true
  if (without.has('depth')) return false
  return ledger.prefilling.size > 0 && backlogTokens >= depthTokens(view, tightestTtftMs, state.instances)
}

export function routeOf(round: Round, job: Job, view: Outlook, roomRatio: number): Route {
  const { state, learnt, nowMs } = round
  const uncached = uncachedTokens(job, view.ledger.replicaId)
  const candidate: Candidate = {
    view,
    job,
    uncachedTokens: uncached,
    kvPeakRatio: () => kvPeakRatio(view.ledger, job.waiter.offer, learnt, state.instances),
    depthTokens: depthTokens(view, round.tightestTtftMs, state.instances),
    roomRatio,
    nowMs,
  }
  return { candidate, engineTtftMs: engineTtftMs(view, uncached) }
}

/** `infeasible` when not even an idle replica would do, else `slo_unreachable` with the time that is missing. */
export function shed(round: Round, job: Job, firstTokenAtMs: Ms): Intent {
  const routes = round.views.map((view) => routeOf(round, job, view, 1))
  const { requestId } = job.waiter.offer
  const candidates = recorded(round, routes)
  if (isHopeless(round, job)) return { kind: 'shed', requestId, reason: 'infeasible', candidates }
  const retryAfterMs = Math.max(0, firstTokenAtMs - (job.deadlineAtMs ?? round.nowMs))
  return { kind: 'shed', requestId, reason: 'slo_unreachable', retryAfterMs, candidates }
}

/** True when the prediction says that no replica could make it even if it were idle, by a margin unless trusted. */
export function isHopeless(round: Round, job: Job): boolean {
  if (round.trust === 'fallback' || job.deadlineAtMs === undefined) return false
  const marginRatio = sureMissRatio(round.trust) / sureMissRatio('trusted')
  const spanMs = (job.deadlineAtMs - job.waiter.offer.receivedAtMs) * marginRatio
  return round.views.every(({ model, ledger }) => {
    const chunk = ledger.report.limits.maxNumBatchedTokens ?? Number.POSITIVE_INFINITY
    const ownMs = prefillMs(model, uncachedTokens(job, ledger.replicaId), chunk, 0, 0)
    return requestOverheadMs(model) + ownMs > spanMs
  })
}

/** The numbers that a record keeps of each replica. */
export function recorded(round: Round, routes: readonly Route[]): readonly CandidateView[] {
  return routes.slice(0, MAX_RECORDED).map(({ candidate, engineTtftMs: engineMs }) => {
    const { view, job } = candidate
    const peak = candidate.kvPeakRatio()
    const waitedMs = round.nowMs - job.waiter.offer.receivedAtMs
    return {
      replicaId: view.ledger.replicaId,
      predictedTtftMs: waitedMs + engineMs,
      boundTtftMs: waitedMs + boundTtftMs(view, candidate.uncachedTokens, round.nowMs),
      uncachedTokens: candidate.uncachedTokens,
      backlogTokens: view.backlogTokens,
      runningSequences: view.ledger.decodingSequences,
      ...(peak === undefined ? {} : { kvPeakRatio: peak }),
      ...(Number.isFinite(view.bearableStallMs) ? { bearableStallMs: view.bearableStallMs } : {}),
      decodeStepMs: view.decodeStepMs,
      gate: refusingGate(candidate, round.without) ?? 'ok',
    }
  })
}
