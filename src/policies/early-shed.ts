/** Tells requests at once that would only wait to be displaced: see `DemandPrice`. */
import type { Waiter } from '../core/waiting-room.ts'
import { isProbe } from '../estimate/probe.ts'
import type { Demand } from './demand-price.ts'
import type { Job } from './job.ts'
import { keptBy } from './kept.ts'
import type { PlanJob } from './ordering/moore-hodgson.ts'
import type { VirtualStart } from './ordering/virtual-replica.ts'
import { isIdle } from './outlook.ts'
import type { Round } from './round.ts'

const counted = keptBy<Waiter, true>()

/** What each job asks of the engines where that is least; counts those seen for the first time into the price. */
export function readDemands(
  { learnt, pool, nowMs }: Round,
  jobs: readonly PlanJob<Job>[],
  starts: readonly VirtualStart[],
): ReadonlyMap<Waiter, Demand> {
  const demands = new Map<Waiter, Demand>()
  const seen = counted(learnt)
  for (const planned of jobs) {
    const demand = leastDemand(planned, starts)
    if (demand === undefined) continue
    const { waiter, deadlineAtMs } = planned.job
    demands.set(waiter, demand)
    if (seen.has(waiter) || deadlineAtMs === undefined) continue
    seen.set(waiter, true)
    learnt.price(pool).arrived(demand, deadlineAtMs - waiter.offer.receivedAtMs, nowMs)
  }
  return demands
}

function leastDemand({ options, value }: PlanJob<Job>, starts: readonly VirtualStart[]): Demand | undefined {
  let least: Demand | undefined
  for (const { replica, residenceMs, sequences, ...work } of options) {
    const prefillMs = work.prefillMs + work.pauseMs
    const slots = starts[replica]?.slotsFreeAtMs?.length
    const slotMs = slots === undefined ? 0 : (residenceMs * sequences) / Math.max(1, slots)
    if (least === undefined || prefillMs + slotMs < least.prefillMs + least.slotMs)
      least = { prefillMs, slotMs, value }
  }
  return least
}

/** True while promised work leaves engine time for work without a promise, or a replica has nothing else to do. */
export function leavesRoom({ learnt, pool, nowMs, trust, views }: Round): boolean {
  return trust === 'fallback' || views.some(isIdle) || !learnt.price(pool).takesAll(views.length, nowMs)
}

/** Waiting jobs that may be shed and that cheaper demand has outpriced; no probe, and none while a replica idles. */
export function outpricedJobs(
  { learnt, pool, nowMs, trust, views }: Round,
  jobs: readonly Job[],
  demands: ReadonlyMap<Waiter, Demand>,
): readonly Job[] {
  if (trust === 'fallback' || views.some(isIdle)) return []
  const price = learnt.price(pool)
  return jobs.filter(({ waiter }) => {
    if (waiter.offer.slo.overload !== 'shed' || isProbe(waiter.offer.requestId)) return false
    const demand = demands.get(waiter)
    return demand !== undefined && price.outprices(demand, views.length, nowMs)
  })
}
