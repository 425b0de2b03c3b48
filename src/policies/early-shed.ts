/** Tells requests at once that would only wait to be displaced: see `DemandPrice`. */
import type { InFlight } from '../core/ledger.ts'
import type { Offer } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { Waiter } from '../core/waiting-room.ts'
import { isProbe } from '../estimate/probe.ts'
import { takesNow } from './admission/state.ts'
import type { Demand } from './demand-price.ts'
import type { Job } from './job.ts'
import { keptBy } from './kept.ts'
import type { Learnt } from './learnt.ts'
import type { PlanJob } from './ordering/moore-hodgson.ts'
import type { VirtualStart } from './ordering/virtual-replica.ts'
import { isIdle } from './outlook.ts'
import type { Round } from './round.ts'

/** What each asked for when a plan last saw it. */
const asked = keptBy<Waiter, Demand>()

/** What each job asks of the engines where that is least; counts those seen for the first time into the price. */
export function readDemands(
  { learnt, pool, nowMs, state }: Round,
  jobs: readonly PlanJob<Job>[],
  starts: readonly VirtualStart[],
): ReadonlyMap<Waiter, Demand> {
  const demands = new Map<Waiter, Demand>()
  const seen = asked(learnt)
  for (const planned of jobs) {
    const demand = leastDemand(planned, starts, state.instances)
    if (demand === undefined) continue
    const { waiter, deadlineAtMs } = planned.job
    demands.set(waiter, demand)
    const isNew = !seen.has(waiter)
    seen.set(waiter, demand)
    // A second attempt asks for what its first has asked for.
    if (!isNew || waiter.attempt > 1 || deadlineAtMs === undefined) continue
    learnt.price(pool).arrived(demand, deadlineAtMs - waiter.offer.receivedAtMs, nowMs)
  }
  return demands
}

/** What a request asks of how many engines, as the plan saw it that last meant to send it. */
interface Meant {
  readonly demand: Demand
  readonly replicas: number
}

const meant = keptBy<Offer, Meant>()

/** Keeps what a plan means to send: it counts when it goes, and never where a plan only advises. */
export function meansToSend({ learnt }: Round, { offer }: Waiter, plan: Meant): void {
  meant(learnt).set(offer, plan)
}

/** Counts into the price what goes to the engines after a plan has meant it to, whoever chose the replica. */
export function countServed(learnt: Learnt, { offer }: InFlight, nowMs: Ms): void {
  const plan = meant(learnt).get(offer)
  if (plan === undefined) return
  meant(learnt).delete(offer)
  learnt.price(offer.pool).served(plan.demand, plan.replicas, nowMs)
}

function leastDemand(
  { options, value }: PlanJob<Job>,
  starts: readonly VirtualStart[],
  instances: number,
): Demand | undefined {
  let least: Demand | undefined
  for (const { replica, residenceMs, sequences, ...work } of options) {
    // Of an engine's time this gate has its part; of its slots it is shown no more than that.
    const prefillMs = (work.prefillMs + work.pauseMs) * instances
    const slots = starts[replica]?.slotsFreeAtMs?.length
    const slotMs = slots === undefined ? 0 : (residenceMs * sequences) / Math.max(1, slots)
    if (least === undefined || prefillMs + slotMs < least.prefillMs + least.slotMs)
      least = { prefillMs, slotMs, value }
  }
  return least
}

/** True while promised work leaves engine time for work without a promise, or a replica has nothing else to do. */
export function leavesRoom(round: Round): boolean {
  if (round.trust === 'fallback' || round.without.has('price') || round.views.some(isIdle)) return true
  return !round.learnt.price(round.pool).takesAll(round.views.length, round.nowMs)
}

/** Waiting jobs that may be shed and that cheaper demand has outpriced; no probe, and none that an idle replica takes. */
export function outpricedJobs(
  round: Round,
  jobs: readonly Job[],
  demands: ReadonlyMap<Waiter, Demand>,
): readonly Job[] {
  if (round.trust === 'fallback' || round.without.has('price')) return []
  const price = round.learnt.price(round.pool)
  const idle = round.views.filter(isIdle)
  return jobs.filter((job) => {
    const { offer } = job.waiter
    if (offer.slo.overload !== 'shed' || isProbe(offer.requestId)) return false
    if (idle.some((view) => takesNow(view, job, round.nowMs))) return false
    const demand = demands.get(job.waiter)
    return demand !== undefined && price.outprices(demand, round.views.length, round.nowMs)
  })
}

/** How long until demand cheaper than the job's leaves room again, if nobody else comes, in ms; 0 for what it leaves now. */
export function opensInMs({ learnt, pool, views, nowMs }: Round, { waiter }: Job): Ms {
  const demand = asked(learnt).get(waiter)
  return demand === undefined ? 0 : learnt.price(pool).opensInMs(demand, views.length, nowMs)
}

/** True when a replica that has nothing to do would take the job now. */
export function hasIdle({ views, nowMs }: Round, job: Job): boolean {
  return views.some((view) => isIdle(view) && takesNow(view, job, nowMs))
}
