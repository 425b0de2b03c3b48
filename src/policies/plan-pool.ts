/** Decides for the waiting requests of one pool: who goes where now, who goes away, and when to look again. */
import type { GateName } from '../core/records.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Intent, Plan } from '../core/scheduler.ts'
import type { Ms } from '../core/units.ts'
import type { Waiter } from '../core/waiting-room.ts'
import { refusingGate } from './admission/gates.ts'
import { type Job, jobOf } from './job.ts'
import { leastSlackFirst } from './ordering/least-slack.ts'
import { type JobPlan, mooreHodgson, type Placed, type PlanJob } from './ordering/moore-hodgson.ts'
import { isIdle, type Outlook, outlook } from './outlook.ts'
import { plannedWork, usableSlots, virtualStart } from './plan-state.ts'
import { isClosed, isHopeless, type PoolQuestion, type Round, recorded, routeOf, shed } from './round.ts'
import { soonestFirstToken } from './routing/soonest-first-token.ts'

/** Work without a promise may use this part of each room, so that promised work still finds some. */
const LEFTOVER_ROOM_RATIO = 0.8
/** A predicted first token this much beyond its deadline, as a share of the time to it, is a sure miss. */
const SURE_MISS_RATIO = 1.25
/** Leftovers looked at in one plan, oldest first; more would only cost time. */
const LEFTOVERS_TRIED = 4
/** When a gate that opens with time (SLACK, STEADY) holds work back, look again after this, in ms. */
const LOOK_AGAIN_MS: Ms = 20
/** An outage is assumed to last this long, in ms. */
const OUTAGE_RETRY_MS: Ms = 5000
/** Returns at most one admission, or all sheds that are due; the gate asks again until nothing is left to do. */
export function planPool(question: PoolQuestion): Plan {
  const waiters = [...question.state.waiting].filter(({ offer }) => offer.pool === question.pool)
  const views = liveViews(question)
  if (views.length === 0) return outage(waiters)
  const round = openRound(question, waiters, views)
  const typicalStepMs = Math.min(...views.map((view) => view.decodeStepMs))
  const jobs = waiters.map((waiter) => jobOf(waiter, question.learnt, typicalStepMs, question.nowMs))
  const tooLate = jobs.filter((job) => job.late && job.waiter.offer.slo.overload === 'shed')
  if (tooLate.length > 0) return { intents: tooLate.map((job) => shed(round, job, question.nowMs)) }
  const plan = planPromised(round, jobs)
  const sheds = plan.dropped.filter((placed) => mayShed(round, placed))
  if (sheds.length > 0)
    return { intents: sheds.map(({ job, firstTokenAtMs }) => shed(round, job, firstTokenAtMs)) }
  const blocked = new Set<ReplicaId>(
    views.filter((view) => isClosed(round, view)).map(({ ledger }) => ledger.replicaId),
  )
  const promised = [
    ...plan.kept,
    ...plan.dropped.filter(({ job }) => job.waiter.offer.slo.overload === 'shed'),
  ]
  for (const { job, replica } of promised) {
    const intent = tryAdmit(round, job, blocked, 1, views[replica]?.ledger.replicaId)
    if (intent !== undefined) return { intents: [intent] }
  }
  const given = new Set(promised.map(({ job }) => job))
  for (const job of jobs.filter((one) => !given.has(one)).slice(0, LEFTOVERS_TRIED)) {
    const intent = tryAdmit(round, job, blocked, LEFTOVER_ROOM_RATIO, undefined)
    if (intent !== undefined) return { intents: [intent] }
  }
  return { intents: [], ...wake(round, jobs) }
}

/**
 * Predictions shed only while they are trusted, only what misses its deadline by a margin, and never beside an idle
 * replica that could still make it. What is dropped by less waits for a plan that goes better.
 */
function mayShed(round: Round, { job, firstTokenAtMs }: Placed<Job>): boolean {
  if (!round.trusted || job.waiter.offer.slo.overload !== 'shed' || job.deadlineAtMs === undefined)
    return false
  if (isHopeless(round, job)) return true
  const sureMs = (firstTokenAtMs - round.nowMs) / SURE_MISS_RATIO
  return round.nowMs + sureMs > job.deadlineAtMs && !round.views.some(isIdle)
}

function liveViews({ state, pool, learnt, nowMs }: PoolQuestion): readonly Outlook[] {
  const views: Outlook[] = []
  for (const ledger of state.replicas.values()) {
    const { report } = ledger
    if (!report.pools.includes(pool) || (report.state !== 'live' && report.state !== 'ramping')) continue
    views.push(outlook(ledger, learnt, state.instances, nowMs))
  }
  return views
}

/** Nobody takes work: promises are refused at once, the rest may wait for a replica to come back. */
function outage(waiters: readonly Waiter[]): Plan {
  const intents = waiters
    .filter(({ offer }) => offer.slo.overload === 'shed')
    .map(({ offer }): Intent => {
      const { requestId } = offer
      return { kind: 'shed', requestId, reason: 'no_replica', retryAfterMs: OUTAGE_RETRY_MS, candidates: [] }
    })
  return { intents }
}

function openRound(question: PoolQuestion, waiters: readonly Waiter[], views: readonly Outlook[]): Round {
  let tightestTpotMs = Number.POSITIVE_INFINITY
  let tightestTtftMs: Ms | undefined
  for (const { offer } of waiters) {
    tightestTpotMs = Math.min(tightestTpotMs, offer.steerTpotMs ?? offer.slo.tpotMs ?? tightestTpotMs)
    const ttftMs = offer.steerTtftMs ?? offer.slo.ttftMs
    if (ttftMs !== undefined) tightestTtftMs = Math.min(tightestTtftMs ?? ttftMs, ttftMs)
  }
  for (const view of views) tightestTpotMs = Math.min(tightestTpotMs, view.tightestTpotMs)
  const trusted = views.some((view) => question.learnt.trusted(view.ledger.report.groupId))
  return { ...question, views, trusted, tightestTpotMs, tightestTtftMs, heldByTime: false }
}

/** Orders what has a deadline and finds out what can be kept. */
function planPromised(round: Round, jobs: readonly Job[]): JobPlan<Job> {
  const { views, learnt, nowMs, tightestTpotMs } = round
  const withDeadline = jobs.flatMap((job) =>
    job.deadlineAtMs === undefined ? [] : [{ job, deadlineAtMs: job.deadlineAtMs }],
  )
  if (withDeadline.length === 0) return { kept: [], dropped: [] }
  const waitingSequences = withDeadline.reduce((sum, { job }) => sum + job.waiter.offer.sequences, 0)
  const starts = views.map((view) =>
    virtualStart(view, learnt, usableSlots(view, tightestTpotMs), waitingSequences, nowMs),
  )
  const planned = withDeadline.map(({ job, deadlineAtMs }) => {
    const work = views.map((view) =>
      job.waiter.excluded.includes(view.ledger.replicaId)
        ? undefined
        : plannedWork(job, view, tightestTpotMs),
    )
    const soonestMs = Math.min(
      ...work.map((one) => (one === undefined ? Number.POSITIVE_INFINITY : one.prefillMs + one.latencyMs)),
    )
    const planJob: PlanJob<Job> = { job, deadlineAtMs, value: job.value, work }
    return { planJob, startByAtMs: deadlineAtMs - soonestMs, enteredAtMs: job.waiter.enteredAtMs }
  })
  return mooreHodgson(
    leastSlackFirst(planned).map(({ planJob }) => planJob),
    starts,
  )
}

/** Admits the job where its first token comes soonest among the replicas that every gate lets it pass to. */
function tryAdmit(
  round: Round,
  job: Job,
  blocked: Set<ReplicaId>,
  roomRatio: number,
  plannedId: ReplicaId | undefined,
): Intent | undefined {
  if (blocked.size === round.views.length) return undefined
  const routes = round.views
    .filter((view) => !blocked.has(view.ledger.replicaId))
    .map((view) => routeOf(round, job, view, roomRatio))
  let plannedGate: GateName | undefined
  for (const route of soonestFirstToken(routes)) {
    const gate = refusingGate(route.candidate)
    const { replicaId } = route.candidate.view.ledger
    if (gate === undefined) {
      const { requestId } = job.waiter.offer
      return { kind: 'admit', requestId, replicaId, candidates: recorded(round, routes) }
    }
    if (gate === 'slack' || gate === 'steady' || gate === 'kv') round.heldByTime = true
    if (replicaId === plannedId) plannedGate = gate
  }
  // Its own replica will have room as soon as its backlog or a slot frees: nobody behind it may take that.
  if (plannedId !== undefined && (plannedGate === 'depth' || plannedGate === 'slots')) blocked.add(plannedId)
  return undefined
}

/** When time alone changes the plan: a deadline passes, or a gate that opens with time may let someone through. */
function wake({ heldByTime, views, nowMs }: Round, jobs: readonly Job[]): { wakeAtMs?: Ms } {
  let atMs = heldByTime ? nowMs + LOOK_AGAIN_MS : Number.POSITIVE_INFINITY
  for (const { deadlineAtMs } of jobs) if (deadlineAtMs !== undefined) atMs = Math.min(atMs, deadlineAtMs)
  for (const { ledger } of views)
    if (ledger.fullUntilAtMs > nowMs) atMs = Math.min(atMs, ledger.fullUntilAtMs)
  return Number.isFinite(atMs) ? { wakeAtMs: atMs } : {}
}
