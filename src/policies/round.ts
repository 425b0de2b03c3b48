/** The pool while one plan is made: its replicas, and what a request would meet on each of them. */
import type { ReplicaLedger } from '../core/ledger.ts'
import type { CandidateView } from '../core/records.ts'
import type { PoolId } from '../core/request.ts'
import type { GateState, Intent, TrustState } from '../core/scheduler.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { prefillMs, requestOverheadMs } from '../estimate/step-model.ts'
import { leastTrusted, sureMissRatio } from '../estimate/trust.ts'
import type { Candidate } from './admission/gate.ts'
import { refusingGate } from './admission/gates.ts'
import { kvPeakRatio } from './admission/kv-peak.ts'
import { type Job, pairsOfJob, uncachedTokens } from './job.ts'
import type { Learnt } from './learnt.ts'
import { boundTtftMs, engineTtftMs, type Outlook } from './outlook.ts'
import type { SluicePart } from './parts.ts'
import { depthTokens } from './plan-state.ts'
import type { Route } from './routing/soonest-first-token.ts'
import { keepingOf } from './wide.ts'

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
export const MAX_RECORDED = 8
/** So old may be what only a record shows, in ms. */
const SHOWN_KEPT_MS: Ms = 100

export function routeOf(
  round: Round,
  job: Job,
  view: Outlook,
  roomRatio = 1,
  depth = depthTokens(view, round.tightestTtftMs, round.state.instances),
): Route {
  const { state, learnt, nowMs } = round
  const uncached = uncachedTokens(job, view.ledger.replicaId)
  let peak: Ratio | undefined
  const candidate: Candidate = {
    view,
    job,
    uncachedTokens: uncached,
    kvPeakRatio(keptMs = keepingOf(round.views.length).residentsMs) {
      peak ??= kvPeakRatio(view.ledger, job.waiter.offer, learnt, state.instances, nowMs, keptMs)
      return peak
    },
    depthTokens: depth,
    roomRatio,
    nowMs,
  }
  return { candidate, engineTtftMs: engineTtftMs(view, uncached, pairsOfJob(job, uncached)) }
}

/** `infeasible` when not even an idle replica would do, else `slo_unreachable` with the time that is missing. */
export function shed(round: Round, job: Job, firstTokenAtMs: Ms): Intent {
  const routes = round.views.slice(0, MAX_RECORDED).map((view) => routeOf(round, job, view))
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
    const uncached = uncachedTokens(job, ledger.replicaId)
    const ownMs = prefillMs(model, uncached, chunk, 0, 0, pairsOfJob(job, uncached))
    return requestOverheadMs(model) + ownMs > spanMs
  })
}

/** The numbers that a record keeps of each replica; peaks of KV that no gate asked for are a little older. */
export function recorded(round: Round, routes: readonly Route[]): readonly CandidateView[] {
  return routes.slice(0, MAX_RECORDED).map(({ candidate, engineTtftMs: engineMs }) => {
    const { view, job, uncachedTokens: uncached } = candidate
    const boundMs = boundTtftMs(view, uncached, round.nowMs, pairsOfJob(job, uncached))
    const peak = candidate.kvPeakRatio(SHOWN_KEPT_MS)
    const waitedMs = round.nowMs - job.waiter.offer.receivedAtMs
    return {
      replicaId: view.ledger.replicaId,
      predictedTtftMs: waitedMs + engineMs,
      boundTtftMs: waitedMs + boundMs,
      uncachedTokens: uncached,
      backlogTokens: view.backlogTokens,
      runningSequences: view.ledger.decodingSequences,
      ...(peak === undefined ? {} : { kvPeakRatio: peak }),
      ...(Number.isFinite(view.bearableStallMs) ? { bearableStallMs: view.bearableStallMs } : {}),
      decodeStepMs: view.decodeStepMs,
      gate: refusingGate(candidate, round.without) ?? 'ok',
    }
  })
}

/** Reads what holds for the whole plan. */
export function openRound(question: PoolQuestion, jobs: readonly Job[], views: readonly Outlook[]): Round {
  let tightestTpotMs = Number.POSITIVE_INFINITY
  let tightestTtftMs: Ms | undefined
  for (const {
    waiter: { offer },
  } of jobs) {
    tightestTpotMs = Math.min(tightestTpotMs, offer.steerTpotMs ?? offer.slo.tpotMs ?? tightestTpotMs)
    const ttftMs = offer.steerTtftMs ?? offer.slo.ttftMs
    if (ttftMs !== undefined) tightestTtftMs = Math.min(tightestTtftMs ?? ttftMs, ttftMs)
  }
  for (const view of views) tightestTpotMs = Math.min(tightestTpotMs, view.tightestTpotMs)
  const ledgers = views.map(({ ledger }) => ledger)
  const trust = trustIn(question, ledgers, question.nowMs)
  const { pool, state, learnt, without, nowMs } = question
  const asked = { pool, state, learnt, without, nowMs }
  return { views, trust, tightestTpotMs, tightestTtftMs, heldByTime: false, ...asked }
}

/** That of the least trusted among them, `fallback` without any; as of the last that was learnt unless told when. */
export function trustIn(
  { learnt, without }: Pick<PoolQuestion, 'learnt' | 'without'>,
  ledgers: readonly ReplicaLedger[],
  nowMs?: Ms,
): TrustState {
  if (ledgers.length === 0 || without.has('trust')) return 'fallback'
  const groupIds = new Set(ledgers.map(({ report }) => report.groupId))
  return leastTrusted([...groupIds].map((groupId) => learnt.trust(groupId, nowMs)))
}
