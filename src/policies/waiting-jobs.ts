/** Reads who waits for a pool: work with a promise, and the next of the rest. */
import type { Waiter } from '../core/waiting-room.ts'
import { isLeftover, type Job, jobOf } from './job.ts'
import { highestFirst } from './ordering/highest-first.ts'
import type { Outlook } from './outlook.ts'
import type { PoolQuestion } from './round.ts'
import { keepingOf } from './wide.ts'

/** Leftovers looked at in one plan; more would only cost time. */
export const LEFTOVERS_TRIED = 4

/**
 * Waiting work with a promise, all of it, and of the rest the few that are next; or the same of those alone who came
 * after `added` requests had been added to the waiting room.
 */
export function readWaiters(
  { state, pool, learnt, without, nowMs }: PoolQuestion,
  views: readonly Outlook[],
  added = 0,
): { jobs: readonly Job[]; leftovers: readonly Job[] } {
  const { factsMs } = keepingOf(views.length)
  let typicalStepMs = Number.POSITIVE_INFINITY
  for (const { decodeStepMs } of views) typicalStepMs = Math.min(typicalStepMs, decodeStepMs)
  const waiters = state.waiting.of(pool, added)
  const standingOf = learnt.fairness(pool).standings(waiters, () => state.waiting.of(pool), without, nowMs)
  const read = (waiter: Waiter): Job =>
    jobOf(waiter, standingOf(waiter), learnt, typicalStepMs, nowMs, factsMs)
  const jobs: Job[] = []
  const rest: Waiter[] = []
  for (const waiter of waiters) {
    const mayGo = waiter.offer.slo.overload === 'shed'
    const job = mayGo || !isLeftover(waiter, learnt) ? read(waiter) : undefined
    // A class may promise a pace alone: then there is no deadline to plan for.
    if (job?.deadlineAtMs !== undefined || (mayGo && job?.late === true)) jobs.push(job)
    else rest.push(waiter)
  }
  const claim = (waiter: Waiter): number => standingOf(waiter).value / waiter.offer.slo.weight
  return { jobs, leftovers: highestFirst(rest, claim, LEFTOVERS_TRIED).map(read) }
}
