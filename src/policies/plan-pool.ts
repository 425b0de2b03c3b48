/** Decides for the waiting requests of one pool: who goes where now, who goes away, and when to look again. */
import { mayServe, takesWork } from '../core/eligible.ts'
import type { ReplicaLedger } from '../core/ledger.ts'
import type { CandidateView, GateName } from '../core/records.ts'
import type { PoolId, ReplicaId } from '../core/request.ts'
import type { GateState, Intent, Plan } from '../core/scheduler.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { Waiter } from '../core/waiting-room.ts'
import { isProbe } from '../estimate/probe.ts'
import { leastTrusted, sureMissRatio } from '../estimate/trust.ts'
import { refusingGate } from './admission/gates.ts'
import type { Demand } from './demand-price.ts'
import { leavesRoom, outpricedJobs, readDemands } from './early-shed.ts'
import { type Job, jobOf } from './job.ts'
import type { Learnt } from './learnt.ts'
import { leastSlackFirst } from './ordering/least-slack.ts'
import { type JobPlan, mooreHodgson, type Placed, type PlanJob } from './ordering/moore-hodgson.ts'
import { isIdle, type Outlook, outlook } from './outlook.ts'
import { plannedWork, usableSlots, virtualStart } from './plan-state.ts'
import { isClosed, isHopeless, type PoolQuestion, type Round, recorded, routeOf, shed } from './round.ts'
import { soonestFirstToken } from './routing/soonest-first-token.ts'
import { LEFTOVERS_TRIED, readWaiters } from './waiting-jobs.ts'

/** Work without a promise may use this part of each room, so that promised work still finds some. */
const LEFTOVER_ROOM_RATIO = 0.8
/** Part of the time to its deadline that a plan may use up for a request; the rest covers what predictions miss. */
const TTFT_USE_RATIO = 0.9
/** A request whose tenant or class has had so much too little, in times of its weight, is ordered as if by this part. */
const HASTY_WORTH = 10
const HASTY_USE_RATIO = 0.5
/** How long a plan stands while nobody new waits, in ms: less than an engine step. */
const PLAN_KEPT_MS: Ms = 5
/** When a gate that opens with time (SLACK, STEADY) holds work back, look again after this, in ms. */
const LOOK_AGAIN_MS: Ms = 20
/** An outage is assumed to last this long, in ms. */
const OUTAGE_RETRY_MS: Ms = 5000
/** Returns at most one admission, or all sheds that are due; the gate asks again until nothing is left to do. */
export function planPool(question: PoolQuestion): Plan {
  const views = liveViews(question)
  if (views.length === 0) return outage(question)
  const { jobs, leftovers, plan, demands, round } = recall(question, views) ?? planAnew(question, views)
  const tooLate = jobs.filter((job) => job.late && job.waiter.offer.slo.overload === 'shed')
  if (tooLate.length > 0) return { intents: tooLate.map((job) => shed(round, job, question.nowMs)) }
  const sheds = plan.dropped.filter((placed) => mayShed(round, placed))
  if (sheds.length > 0) {
    return { intents: sheds.map(({ job, firstTokenAtMs }) => shed(round, job, firstTokenAtMs)) }
  }
  const blocked = new Set(views.filter((view) => isClosed(round, view)).map(({ ledger }) => ledger.replicaId))
  const mayBeLate = plan.dropped.filter(({ job }) => job.waiter.offer.slo.overload !== 'shed')
  const unsure = plan.dropped.filter(({ job }) => job.waiter.offer.slo.overload === 'shed')
  const owed = leftovers.filter((job) => job.owed)
  for (const job of owed) {
    const intent = tryAdmit(round, job, blocked, 1, undefined)
    if (intent !== undefined) return { intents: [intent] }
  }
  for (const { job, replica } of [...plan.kept, ...unsure]) {
    const intent = tryAdmit(round, job, blocked, 1, views[replica]?.ledger.replicaId)
    if (intent !== undefined) {
      const demand = demands.get(job.waiter)
      if (demand !== undefined) round.learnt.price(round.pool).served(demand, round.nowMs)
      return { intents: [intent] }
    }
  }
  const hopeful = mayBeLate.slice(0, LEFTOVERS_TRIED).map((placed) => placed.job)
  for (const job of leavesRoom(round) ? [...hopeful, ...leftovers] : []) {
    const intent = tryAdmit(round, job, blocked, LEFTOVER_ROOM_RATIO, undefined)
    if (intent !== undefined) return { intents: [intent] }
  }
  const outpriced = outpricedJobs(round, jobs, demands)
  if (outpriced.length > 0) return { intents: outpriced.map((job) => shed(round, job, question.nowMs)) }
  return { intents: [], ...wake(round, jobs) }
}

/** What a waiter would meet on one replica, whoever sends it there. */
export function viewOf(
  question: PoolQuestion,
  waiter: Waiter,
  replicaId: ReplicaId,
): CandidateView | undefined {
  const { state, learnt, nowMs } = question
  const ledger = state.replicas.get(replicaId)
  if (ledger === undefined) return undefined
  const view = outlook(ledger, learnt, state.instances, nowMs)
  const standing = { value: waiter.offer.slo.weight, owed: false }
  const job = jobOf(waiter, standing, learnt, view.decodeStepMs, nowMs)
  const round = openRound(question, [job], [view])
  return recorded(round, [routeOf(round, job, view, 1)])[0]
}

/** What a plan was made of; it stands for a moment while nobody new waits. */
interface Planned {
  readonly jobs: readonly Job[]
  readonly leftovers: readonly Job[]
  readonly plan: JobPlan<Job>
  /** What each of `jobs` with a deadline asks of the engines. */
  readonly demands: ReadonlyMap<Waiter, Demand>
  readonly round: Round
}

const planned = new WeakMap<Learnt, Map<PoolId, Planned & { readonly added: number }>>()

/** The plan of a moment ago, without those who have left since; undefined when it must be made anew. */
function recall(question: PoolQuestion, views: readonly Outlook[]): Planned | undefined {
  const { learnt, pool, state, nowMs } = question
  const last = planned.get(learnt)?.get(pool)
  if (last === undefined || last.added !== state.waiting.added || nowMs - last.round.nowMs > PLAN_KEPT_MS)
    return undefined
  const sameReplicas = views.every(({ ledger }, index) => ledger === last.round.views[index]?.ledger)
  if (!sameReplicas || views.length !== last.round.views.length) return undefined
  // A deadline that has passed meanwhile changes what a job is.
  if (last.jobs.some(({ deadlineAtMs }) => deadlineAtMs !== undefined && deadlineAtMs <= nowMs))
    return undefined
  const waits = (job: Job): boolean => state.waiting.get(job.waiter.offer.requestId) === job.waiter
  return {
    jobs: last.jobs.filter(waits),
    leftovers: last.leftovers.filter(waits),
    demands: last.demands,
    plan: {
      kept: last.plan.kept.filter(({ job }) => waits(job)),
      dropped: last.plan.dropped.filter(({ job }) => waits(job)),
    },
    round: { ...last.round, ...question, views, heldByTime: false },
  }
}

function planAnew(question: PoolQuestion, views: readonly Outlook[]): Planned {
  const { learnt, pool, state } = question
  const { jobs, leftovers } = readWaiters(question, views)
  const round = openRound(question, jobs, views)
  const fresh = { jobs, leftovers, ...planPromised(round, jobs), round, added: state.waiting.added }
  const byPool = planned.get(learnt) ?? new Map()
  planned.set(learnt, byPool.set(pool, fresh))
  return fresh
}

/**
 * Predictions shed only as far as they are trusted, only what misses its deadline by a margin, never a probe, and never
 * beside an idle replica that could still make it. What is dropped by less waits for a plan that goes better.
 */
function mayShed(round: Round, { job, firstTokenAtMs }: Placed<Job>): boolean {
  const { requestId, slo } = job.waiter.offer
  if (round.trust === 'fallback' || slo.overload !== 'shed' || isProbe(requestId)) return false
  if (job.deadlineAtMs === undefined) return false
  if (isHopeless(round, job)) return true
  const sureMs = (firstTokenAtMs - round.nowMs) / sureMissRatio(round.trust)
  return round.nowMs + sureMs > job.deadlineAtMs && !round.views.some(isIdle)
}

function liveViews({ state, pool, learnt, nowMs }: PoolQuestion): readonly Outlook[] {
  return takers(state.replicas, pool).map((ledger) => outlook(ledger, learnt, state.instances, nowMs))
}

/** The replicas of a pool that take work now. */
export function takers(replicas: GateState['replicas'], pool: PoolId): readonly ReplicaLedger[] {
  return [...replicas.values()].filter(({ report }) => report.pools.includes(pool) && takesWork(report))
}

/** Nobody takes work: promises are refused at once, the rest may wait for a replica to come back. */
function outage({ state, pool }: PoolQuestion): Plan {
  const intents: Intent[] = []
  for (const { offer } of state.waiting) {
    if (offer.pool !== pool || offer.slo.overload !== 'shed') continue
    const { requestId } = offer
    intents.push({
      kind: 'shed',
      requestId,
      reason: 'no_replica',
      retryAfterMs: OUTAGE_RETRY_MS,
      candidates: [],
    })
  }
  return { intents }
}

function openRound(question: PoolQuestion, jobs: readonly Job[], views: readonly Outlook[]): Round {
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
  const { learnt, nowMs } = question
  const trust = leastTrusted(views.map(({ ledger }) => learnt.trust(ledger.report.groupId, nowMs)))
  return { ...question, views, trust, tightestTpotMs, tightestTtftMs, heldByTime: false }
}

/** Orders what has a deadline and finds out what can be kept. */
function planPromised(round: Round, jobs: readonly Job[]): Pick<Planned, 'plan' | 'demands'> {
  const { views, learnt, nowMs, tightestTpotMs, without } = round
  const withDeadline = jobs.flatMap((job) =>
    job.deadlineAtMs === undefined ? [] : [{ job, deadlineAtMs: job.deadlineAtMs }],
  )
  if (withDeadline.length === 0) return { plan: { kept: [], dropped: [] }, demands: new Map() }
  const waitingSequences = withDeadline.reduce((sum, { job }) => sum + job.waiter.offer.sequences, 0)
  const starts = views.map((view) =>
    virtualStart(view, learnt, usableSlots(view, tightestTpotMs), waitingSequences, nowMs),
  )
  const planned = withDeadline.map(({ job, deadlineAtMs }) => {
    const work = views.map((view) =>
      mayServe(job.waiter, view.ledger.report) ? plannedWork(job, view, tightestTpotMs) : undefined,
    )
    const soonestMs = Math.min(
      ...work.map((one) => (one === undefined ? Number.POSITIVE_INFINITY : one.prefillMs + one.latencyMs)),
    )
    const lateAtMs = without.has('dropping')
      ? Number.POSITIVE_INFINITY
      : partOfTimeAtMs(job, deadlineAtMs, TTFT_USE_RATIO)
    const planJob: PlanJob<Job> = { job, deadlineAtMs: lateAtMs, value: job.value, work }
    const orderAtMs = isHasty(job) ? partOfTimeAtMs(job, deadlineAtMs, HASTY_USE_RATIO) : deadlineAtMs
    const startByAtMs = orderAtMs - (without.has('slack-order') ? 0 : soonestMs)
    return { planJob, startByAtMs, enteredAtMs: job.waiter.enteredAtMs }
  })
  const inOrder = leastSlackFirst(planned).map(({ planJob }) => planJob)
  return { plan: mooreHodgson(inOrder, starts), demands: readDemands(round, inOrder, starts) }
}

/** Plans slip, so what must not be refused is not left to its last moment. */
function isHasty({ value, waiter }: Job): boolean {
  return value >= HASTY_WORTH * waiter.offer.slo.weight
}

/** The instant at which that part of the time to its deadline has passed. */
function partOfTimeAtMs({ waiter }: Job, deadlineAtMs: Ms, part: Ratio): Ms {
  const { receivedAtMs } = waiter.offer
  return receivedAtMs + part * (deadlineAtMs - receivedAtMs)
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
    const gate = refusingGate(route.candidate, round.without)
    const { replicaId } = route.candidate.view.ledger
    if (gate === undefined) {
      const { requestId } = job.waiter.offer
      // The chosen one first, or a record of a wide fleet would not have it.
      const shown = [route, ...routes.filter((other) => other !== route)]
      return { kind: 'admit', requestId, replicaId, candidates: recorded(round, shown) }
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
  for (const { deadlineAtMs, breaksAtMs } of jobs) {
    for (const dueAtMs of [deadlineAtMs, breaksAtMs]) {
      if (dueAtMs !== undefined && dueAtMs > nowMs) atMs = Math.min(atMs, dueAtMs)
    }
  }
  for (const { ledger } of views)
    if (ledger.fullUntilAtMs > nowMs) atMs = Math.min(atMs, ledger.fullUntilAtMs)
  return Number.isFinite(atMs) ? { wakeAtMs: atMs } : {}
}
