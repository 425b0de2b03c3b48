/** Keeps the last plan of each pool for a moment: most events change nothing that it was made of. */
import type { PoolId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { Waiter, WaitingRoom } from '../core/waiting-room.ts'
import type { Demand } from './demand-price.ts'
import { type Job, nextLossAtMs } from './job.ts'
import type { Learnt } from './learnt.ts'
import type { JobPlan } from './ordering/moore-hodgson.ts'
import type { VirtualStart } from './ordering/virtual-replica.ts'
import type { Outlook } from './outlook.ts'
import type { PoolQuestion, Round } from './round.ts'
import { LEFTOVERS_TRIED } from './waiting-jobs.ts'
import { blindPlanMs, keepingOf, type ReplicaChoice } from './wide.ts'

/** What a plan was made of. */
export interface Planned {
  readonly jobs: readonly Job[]
  readonly leftovers: readonly Job[]
  readonly plan: JobPlan<Job>
  /** What each of `jobs` with a deadline asks of the engines. */
  readonly demands: ReadonlyMap<Waiter, Demand>
  /** Where replicas stood before it. */
  readonly starts: readonly VirtualStart[]
  /** Of those replicas. */
  readonly choice: ReplicaChoice
  readonly round: Round
}

/** A plan that stands, of those who still wait. */
export interface StandingPlan extends Planned {
  readonly madeAtMs: Ms
  /** Requests added to the waiting room by then, if others have come since. */
  readonly knownAdded?: number
  readonly newcomers: readonly Job[]
}

interface Last extends Planned {
  jobs: readonly Job[]
  leftovers: readonly Job[]
  plan: JobPlan<Job>
  readonly added: number
  /** When a promise of its jobs gets too late next; Infinity without. */
  soonestAtMs: Ms
  /** How many leftovers it began with. */
  readonly leftoversRead: number
  /** Those of its waiters that were still there when this was last looked through. */
  stayed: number
}

const lasts = new WeakMap<Learnt, Map<PoolId, Last>>()

/** Keeps a plan that has just been made. */
export function stand(planned: Planned): StandingPlan {
  const { pool, learnt, state, nowMs } = planned.round
  const { added } = state.waiting
  const stayed = state.waiting.countOf(pool)
  const byPool = lasts.get(learnt) ?? new Map<PoolId, Last>()
  lasts.set(
    learnt,
    byPool.set(pool, {
      added,
      stayed,
      soonestAtMs: nextLossAtMs(planned.jobs, nowMs),
      leftoversRead: planned.leftovers.length,
      ...planned,
    }),
  )
  return { madeAtMs: nowMs, newcomers: [], ...planned }
}

/** The plan of a moment ago, without those who have left since; undefined when it must be made anew. */
export function recall(question: PoolQuestion, views: readonly Outlook[]): StandingPlan | undefined {
  const { learnt, pool, state, nowMs } = question
  const last = lasts.get(learnt)?.get(pool)
  if (last === undefined) return undefined
  const madeAtMs = last.round.nowMs
  const blind = last.added !== state.waiting.added
  const blindMs = blindPlanMs(views.length, last.jobs.length)
  if (blind ? nowMs - madeAtMs >= blindMs : nowMs - madeAtMs > keepingOf(views.length).planMs)
    return undefined
  const sameReplicas = views.every(({ ledger }, index) => ledger === last.round.views[index]?.ledger)
  if (!sameReplicas || views.length !== last.round.views.length) return undefined
  // A deadline that has passed meanwhile changes what a job is.
  if (last.soonestAtMs <= nowMs) return undefined
  const stayed = state.waiting.countOf(pool) - (blind ? state.waiting.of(pool, last.added).length : 0)
  if (last.stayed !== stayed) leaveOut(last, state.waiting)
  last.stayed = stayed
  // All that were read have gone: there may be more.
  if (last.leftovers.length === 0 && last.leftoversRead === LEFTOVERS_TRIED) return undefined
  const { jobs, leftovers, plan, demands, starts, choice, added } = last
  const round = { ...last.round, ...question, views, heldByTime: false }
  const standing = { jobs, leftovers, plan, demands, starts, choice, round, madeAtMs, newcomers: [] }
  return blind ? { knownAdded: added, ...standing } : standing
}

/** Takes out of a plan who no longer waits. */
function leaveOut(last: Last, waiting: WaitingRoom): void {
  const waits = (job: Job): boolean => waiting.get(job.waiter.offer.requestId) === job.waiter
  last.leftovers = last.leftovers.filter(waits)
  const gone = new Set(last.jobs.filter((job) => !waits(job)))
  if (gone.size === 0) return
  const stays = ({ job }: { readonly job: Job }): boolean => !gone.has(job)
  last.jobs = last.jobs.filter((job) => !gone.has(job))
  last.plan = { kept: last.plan.kept.filter(stays), dropped: last.plan.dropped.filter(stays) }
  last.soonestAtMs = nextLossAtMs(last.jobs, last.round.nowMs)
}
