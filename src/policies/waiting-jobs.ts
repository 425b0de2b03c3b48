/** Reads who waits for a pool: work with a promise, and the next of the rest. */
import type { Waiter } from '../core/waiting-room.ts'
import { isLeftover, type Job, jobOf } from './job.ts'
import { highestFirst } from './ordering/highest-first.ts'
import type { Outlook } from './outlook.ts'
import type { PoolQuestion } from './round.ts'
import { keepingOf } from './wide.ts'

/** Leftovers looked at in one plan; more would only cost time. */
export const LEFTOVERS_TRIED = 4

/** Waiting work with a promise, all of it, and of the rest the few that are next; nobody of `known`. */
export function readWaiters(
  { state, pool, learnt, without, nowMs }: PoolQuestion,
  views: readonly Outlook[],
  known?: ReadonlySet<Waiter>,
): { jobs: readonly Job[]; leftovers: readonly Job[] } {
  const { factsMs } = keepingOf(views.length)
  const typicalStepMs = Math.min(...views.map((view) => view.decodeStepMs))
  const waiters = [...state.waiting].filter(({ offer }) => offer.pool === pool)
  const standingOf = learnt.fairness(pool).standings(waiters, without, nowMs)
  const read = (waiter: Waiter): Job =>
    jobOf(waiter, standingOf(waiter), learnt, typicalStepMs, nowMs, factsMs)
  const jobs: Job[] = []
  const rest: Waiter[] = []
  for (const waiter of waiters) {
    if (known?.has(waiter)) continue
    const mayGo = waiter.offer.slo.overload === 'shed'
    const job = mayGo || !isLeftover(waiter, learnt) ? read(waiter) : undefined
    // A class may promise a pace alone: then there is no deadline to plan for.
    if (job?.deadlineAtMs !== undefined || (mayGo && job?.late === true)) jobs.push(job)
    else rest.push(waiter)
  }
  const claim = (waiter: Waiter): number => standingOf(waiter).value / waiter.offer.slo.weight
  return { jobs, leftovers: highestFirst(rest, claim, LEFTOVERS_TRIED).map(read) }
}
