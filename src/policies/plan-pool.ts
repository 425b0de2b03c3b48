/** Decides for the waiting requests of one pool: who goes where now, who goes away, and when to look again. */
import { takesWork } from '../core/eligible.ts'
import type { ReplicaLedger } from '../core/ledger.ts'
import type { CandidateView } from '../core/records.ts'
import type { PoolId, ReplicaId } from '../core/request.ts'
import type { GateState, Intent, Plan } from '../core/scheduler.ts'
import { clamp, type Ms } from '../core/units.ts'
import type { Waiter } from '../core/waiting-room.ts'
import { HELD_BACK_ROOM_RATIO } from '../estimate/batch-slots.ts'
import { isProbe } from '../estimate/probe.ts'
import { sureMissRatio } from '../estimate/trust.ts'
import { isHeadLate } from '../estimate/ttft.ts'
import { refusingGate } from './admission/gates.ts'
import { takesNow } from './admission/state.ts'
import type { Demand } from './demand-price.ts'
import { hasIdle, leavesRoom, meansToSend, opensInMs, outpricedJobs, readDemands } from './early-shed.ts'
import { type Job, jobOf, nextLossAtMs } from './job.ts'
import { noReplica } from './no-replica.ts'
import { hasRoom, type OpenReplica, openReplicas } from './open-replicas.ts'
import type { Placed } from './ordering/moore-hodgson.ts'
import { type Outlook, outlook } from './outlook.ts'
import { planPromised, toPlan } from './promised.ts'
import {
  isHopeless,
  MAX_RECORDED,
  openRound,
  type PoolQuestion,
  type Round,
  recorded,
  routeOf,
  shed,
} from './round.ts'
import { type Route, soonestFirstToken } from './routing/soonest-first-token.ts'
import { recall, type StandingPlan, stand } from './standing-plan.ts'
import { LEFTOVERS_TRIED, readWaiters } from './waiting-jobs.ts'
import { blindPlanMs, isWide, keepingOf } from './wide.ts'

/** When a gate that opens with time (SLACK, STEADY) holds work back, look again after this, in ms. */
const LOOK_AGAIN_MS: Ms = 20

/** Returns at most one admission, or all sheds that are due; the gate asks again until nothing is left to do. */
export function planPool(question: PoolQuestion): Plan {
  const views = liveViews(question)
  if (views.length === 0) return outage(question)
  const last = recall(question, views)
  return decide(last === undefined ? planAnew(question, views) : withNewcomers(last))
}

/** Whoever came since a standing plan was made has no place in it yet and is tried behind those who have. */
function withNewcomers(last: StandingPlan): StandingPlan {
  if (last.knownAdded === undefined) return last
  const { jobs, leftovers } = readWaiters(last.round, last.round.views, last.knownAdded)
  const newcomers = jobs.filter(({ late }) => !late)
  return { ...last, newcomers, leftovers: [...last.leftovers, ...leftovers].slice(0, LEFTOVERS_TRIED) }
}

function decide(planned: StandingPlan): Plan {
  const { jobs, demands, round } = planned
  const hopeless = refusals(planned)
  if (hopeless.length > 0) return { intents: hopeless }
  const admitted = admission(planned)
  if (admitted !== undefined) return { intents: [admitted] }
  const outpriced = outpricedJobs(round, jobs, demands)
  if (outpriced.length > 0) return { intents: outpriced.map((job) => shedUntilOpen(round, job)) }
  return { intents: [], ...wake(planned) }
}

/** Whose time is over, or else whom the plan gives up for sure. */
function refusals({ jobs, newcomers, plan, round }: StandingPlan): readonly Intent[] {
  const tooLate = jobs.filter((job) => job.late && job.waiter.offer.slo.overload === 'shed')
  if (tooLate.length > 0) return tooLate.map((job) => shedUntilOpen(round, job))
  const dropped = plan.dropped.filter((placed) => mayShed(round, placed))
  // No plan has looked at these yet, and no gate asks whether they would be in time.
  const hopeless = newcomers.filter((job) => mayBeTold(round, job) && isHopeless(round, job))
  return [
    ...dropped.map(({ job, firstTokenAtMs }) => shed(round, job, firstTokenAtMs)),
    ...hopeless.map((job) => shed(round, job, round.nowMs)),
  ]
}

/** Of whom no plan says when its first token would come: it had better come back when cheaper demand has faded. */
function shedUntilOpen(round: Round, job: Job): Intent {
  return shed(round, job, (job.deadlineAtMs ?? round.nowMs) + opensInMs(round, job))
}

/** The first in line whom some replica takes: what floors owe, promises, newcomers, then what fills leftover room. */
function admission(planned: StandingPlan): Intent | undefined {
  const { leftovers, newcomers, plan, round } = planned
  const open = openReplicas(round)
  const isUnsure = ({ job }: Placed<Job>): boolean => job.waiter.offer.slo.overload === 'shed'
  for (const job of leftovers) {
    const intent = job.owed ? tryAdmit(round, job, open, 1) : undefined
    if (intent !== undefined) return intent
  }
  // The plan does not give these up for sure, as far as predictions are believed.
  const unsure = plan.dropped.filter(isUnsure)
  const isBelieved = round.trust !== 'fallback'
  const promised =
    admitPlaced(planned, plan.kept, open, { inTime: true, waits: isBelieved }) ??
    admitPlaced(planned, unsure, open, { inTime: isBelieved, waits: false })
  if (promised !== undefined) return promised
  for (const job of newcomers) {
    const intent = tryAdmit(round, job, open, 1)
    if (intent !== undefined) return counted(planned, job, intent)
  }
  if (!leavesRoom(round)) {
    // Demand fades by itself.
    if (leftovers.length > 0) round.heldByTime = true
    return undefined
  }
  const mayBeLate = plan.dropped.filter((placed) => !isUnsure(placed)).slice(0, LEFTOVERS_TRIED)
  // None of it is counted as served: it goes only while the price leaves room.
  for (const job of [...mayBeLate.map((placed) => placed.job), ...leftovers]) {
    const intent = tryAdmit(round, job, open, HELD_BACK_ROOM_RATIO)
    if (intent !== undefined) return intent
  }
  return undefined
}

interface Placing {
  /** Who may be late after all is not refused, but leaves some room to those who would be in time. */
  readonly inTime: boolean
  /** Whether they wait for the replica where the plan has them. */
  readonly waits: boolean
}

/** In the plan's order, where it has them. */
function admitPlaced(
  planned: StandingPlan,
  placed: readonly Placed<Job>[],
  open: OpenReplica[],
  { inTime, waits }: Placing,
): Intent | undefined {
  const { round } = planned
  for (const { job, replica } of placed) {
    const own = inTime ? round.views[replica] : undefined
    const intent = tryAdmit(round, job, open, inTime ? 1 : HELD_BACK_ROOM_RATIO, own, waits)
    if (intent !== undefined) return counted(planned, job, intent)
  }
  return undefined
}

/** Has it counted into the price when it goes. */
function counted(planned: StandingPlan, job: Job, intent: Intent): Intent {
  const { round, demands, newcomers } = planned
  const demand = newcomers.includes(job) ? demandOfNewcomer(planned, job) : demands.get(job.waiter)
  if (demand !== undefined) meansToSend(round, job.waiter, { demand, replicas: round.views.length })
  return intent
}

function demandOfNewcomer({ round, starts, choice }: StandingPlan, job: Job): Demand | undefined {
  if (job.deadlineAtMs === undefined) return undefined
  const { planJob } = toPlan(round, job, job.deadlineAtMs, choice(job, 0))
  return readDemands(round, [planJob], starts).get(job.waiter)
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
  const job = jobOf(waiter, standing, learnt, view.decodeStepMs, nowMs, keepingOf(1).factsMs)
  const round = openRound(question, [job], [view])
  return recorded(round, [routeOf(round, job, view)])[0]
}

function planAnew(question: PoolQuestion, views: readonly Outlook[]): StandingPlan {
  const { jobs, leftovers } = readWaiters(question, views)
  const round = openRound(question, jobs, views)
  return stand({ jobs, leftovers, ...planPromised(round, jobs), round })
}

/**
 * Predictions shed only as far as they are trusted, only what misses its deadline by a margin, never a probe, and never
 * beside an idle replica that could still make it. What is dropped by less waits for a plan that goes better.
 */
function mayShed(round: Round, { job, firstTokenAtMs }: Placed<Job>): boolean {
  if (job.deadlineAtMs === undefined || !mayBeTold(round, job)) return false
  if (isHopeless(round, job)) return true
  const sureMs = (firstTokenAtMs - round.nowMs) / sureMissRatio(round.trust)
  return round.nowMs + sureMs > job.deadlineAtMs && !hasIdle(round, job)
}

/** Whether a prediction may shed it at all. */
function mayBeTold({ trust }: Round, { waiter: { offer } }: Job): boolean {
  return trust !== 'fallback' && offer.slo.overload === 'shed' && !isProbe(offer.requestId)
}

function liveViews({ state, pool, learnt, nowMs }: PoolQuestion): readonly Outlook[] {
  const ledgers = takers(state.replicas, pool)
  const { residentsMs } = keepingOf(ledgers.length)
  return ledgers.map((ledger) => outlook(ledger, learnt, state.instances, nowMs, residentsMs))
}

/** The replicas of a pool that take work now. */
export function takers(replicas: GateState['replicas'], pool: PoolId): readonly ReplicaLedger[] {
  const found: ReplicaLedger[] = []
  // One walk and one list: this is asked for each event, of each replica.
  for (const ledger of replicas.values()) {
    if (takesWork(ledger.report) && ledger.report.pools.includes(pool)) found.push(ledger)
  }
  return found
}

/** Nobody takes work: promises are refused at once, the rest may wait for a replica to come back. */
function outage({ state, pool }: PoolQuestion): Plan {
  const promised = state.waiting.of(pool).filter(({ offer }) => offer.slo.overload === 'shed')
  return { intents: promised.map(noReplica) }
}

/**
 * Admits the job where its first token comes soonest among the replicas that every gate lets it pass to. One that the
 * plan has on a replica without room (`own`) `waits` for it: it would be later elsewhere, most often since its prompt is
 * not cached there.
 */
function tryAdmit(
  round: Round,
  job: Job,
  open: OpenReplica[],
  roomRatio: number,
  own?: Outlook,
  waits = false,
): Intent | undefined {
  const withRoom = open.filter((replica) => hasRoom(round, job, replica, roomRatio))
  const isFull = own !== undefined && !withRoom.some(({ view }) => view === own)
  if (!isFull || !waits || !canBeWaitedFor(round, own)) {
    const routes = withRoom.map(({ view, depthTokens }) => routeOf(round, job, view, roomRatio, depthTokens))
    for (const route of soonestFirstToken(routes)) {
      const gate = refusingGate(route.candidate, round.without)
      if (gate === undefined) return admit(round, job, route, open, roomRatio)
      if (gate === 'slack' || gate === 'steady' || gate === 'kv') round.heldByTime = true
    }
  } else if (withRoom.length > 0) round.heldByTime = true
  if (isFull) reserve(round, job, open, own)
  return undefined
}

/**
 * True when what a plan says of that replica can be relied on: it gets on with what it has, and has not just called
 * itself full. In a wide pool the plan has not looked at all the others.
 */
function canBeWaitedFor({ views, nowMs }: Round, { ledger }: Outlook): boolean {
  return !isWide(views.length) && ledger.fullUntilAtMs <= nowMs && !isHeadLate(ledger, nowMs)
}

/** Its replica will have room as soon as its backlog or a slot frees: nobody behind it may take that. */
function reserve(round: Round, job: Job, open: OpenReplica[], own: Outlook): void {
  const at = open.findIndex(({ view }) => view === own)
  if (at >= 0 && takesNow(own, job, round.nowMs)) open.splice(at, 1)
}

function admit(
  round: Round,
  job: Job,
  route: Route,
  open: readonly OpenReplica[],
  roomRatio: number,
): Intent {
  const { requestId } = job.waiter.offer
  const { view } = route.candidate
  // The chosen one first, or a record of a wide fleet would not have it.
  const others = open.filter((replica) => replica.view !== view).slice(0, MAX_RECORDED - 1)
  const shown = [route, ...others.map((other) => routeOf(round, job, other.view, roomRatio))]
  return { kind: 'admit', requestId, replicaId: view.ledger.replicaId, candidates: recorded(round, shown) }
}

/** When time alone changes the plan: a deadline passes, or a gate that opens with time may let someone through. */
function wake({ jobs, round, knownAdded, madeAtMs }: StandingPlan): { wakeAtMs?: Ms } {
  const { heldByTime, views, nowMs } = round
  let atMs = heldByTime ? nowMs + LOOK_AGAIN_MS : Number.POSITIVE_INFINITY
  for (const { model, backlogMs } of views) {
    // Engines for prompts alone make room before any event tells of it.
    if (model.prefillEngines > 0) atMs = Math.min(atMs, nowMs + clamp(backlogMs, 1, LOOK_AGAIN_MS))
  }
  if (knownAdded !== undefined) atMs = Math.min(atMs, madeAtMs + blindPlanMs(views.length, jobs.length))
  atMs = Math.min(atMs, nextLossAtMs(jobs, nowMs))
  for (const { ledger } of views)
    if (ledger.fullUntilAtMs > nowMs) atMs = Math.min(atMs, ledger.fullUntilAtMs)
  return Number.isFinite(atMs) ? { wakeAtMs: atMs } : {}
}
