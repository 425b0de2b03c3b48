/** Says what a decision in a wide pool leaves for later, so that it costs about the same in any. */
import type { ReplicaId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { Job } from './job.ts'
import type { Outlook } from './outlook.ts'

/** A pool of more replicas is wide: of these a plan tries so many for each request. Narrow pools are looked at whole. */
const WIDE_REPLICAS = 16
/** Of the replicas that have most of its prompt cached, so many are tried besides. */
const WARM_TRIED = 4

/** How long something read stands, in ms. */
export interface Keeping {
  /** What running streams allow, while no permit moved but their tokens did: about an engine step. */
  readonly residentsMs: Ms
  /** When slots come free, for plans. */
  readonly holdingsMs: Ms
  /** Lengths and cached tokens of a waiting request. */
  readonly factsMs: Ms
  /** A plan while nobody new waits. */
  readonly planMs: Ms
  /** A plan although somebody new waits, who is then tried behind those in it. */
  readonly blindPlanMs: Ms
}

const NARROW: Keeping = { residentsMs: 0, holdingsMs: 0, factsMs: 100, planMs: 5, blindPlanMs: 0 }
const WIDE: Keeping = { residentsMs: 20, holdingsMs: 100, factsMs: 1000, planMs: 25, blindPlanMs: 25 }

export function isWide(replicas: number): boolean {
  return replicas > WIDE_REPLICAS
}

export function keepingOf(replicas: number): Keeping {
  return isWide(replicas) ? WIDE : NARROW
}

/** With so many jobs a plan is dear: it stands for newcomers too. */
const CROWD_JOBS = 1000
const CROWD_PLAN_MS: Ms = 5

/** How long a plan stands although somebody new waits, in ms. */
export function blindPlanMs(replicas: number, jobs: number): Ms {
  const { blindPlanMs: usualMs } = keepingOf(replicas)
  return jobs < CROWD_JOBS ? usualMs : Math.max(usualMs, CROWD_PLAN_MS)
}

/** Chooses replicas, by index, for each job in turn. */
export type ReplicaChoice = (job: Job, nth: number) => readonly number[]

/**
 * All of a narrow pool. Of a wide one some that are spread evenly and differ from job to job, and the warmest: the best
 * of a few choices is nearly as good as the best of all (Mitzenmacher, The Power of Two Choices, 2001).
 */
export function replicaChoice(views: readonly Outlook[]): ReplicaChoice {
  const all = [...views.keys()]
  if (!isWide(views.length)) return () => all
  const byId = new Map<ReplicaId, number>(views.map(({ ledger }, index) => [ledger.replicaId, index]))
  return ({ cachedTokens }, nth) => {
    const chosen = new Set<number>()
    for (let one = 0; one < WIDE_REPLICAS; one++) {
      chosen.add((nth + Math.floor((one * views.length) / WIDE_REPLICAS)) % views.length)
    }
    const warmest = [...cachedTokens].sort(([, a], [, b]) => b - a).slice(0, WARM_TRIED)
    for (const [replicaId] of warmest) {
      const index = byId.get(replicaId)
      if (index !== undefined) chosen.add(index)
    }
    return [...chosen].sort((a, b) => a - b)
  }
}
