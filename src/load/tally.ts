/** Counts results by phase and class, exactly, and sums them up at any time. */
import { hasTargets } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { nearestRank } from '../sim/nearest-rank.ts'
import type { LoadResult } from './outcome.ts'
import type { PlannedRequest } from './plan.ts'

/** Sums of one group of requests. Shares are of the requests that count, shed ones among them. */
export interface GroupSummary {
  readonly offeredRequests: number
  readonly settledRequests: number
  readonly goodRequests: number
  readonly badRequests: number
  /** Counted apart: classes without targets, the client's own mistakes, left before anything was due. */
  readonly excludedRequests: number
  readonly completedRequests: number
  readonly shedRequests: number
  /** Good among good and bad; undefined while nothing counts. */
  readonly attainmentRatio?: Ratio
  /** Good among those that were not shed. */
  readonly admittedAttainmentRatio?: Ratio
  readonly outputTokens: Tokens
  readonly ttftMs: Percentiles
  readonly tpotMs: Percentiles
  readonly retryAfterMs: Percentiles
  readonly causes: Readonly<Record<string, number>>
  readonly sheds: Readonly<Record<string, number>>
  readonly errors: Readonly<Record<string, number>>
  readonly retries: number
}

/** Nearest-rank percentiles; undefined without samples. */
export interface Percentiles {
  readonly p50?: Ms
  readonly p99?: Ms
}

interface Group {
  /** Whether its class has any target. */
  readonly promised: boolean
  offered: number
  good: number
  bad: number
  excluded: number
  completed: number
  shedBad: number
  retries: number
  outputTokens: Tokens
  readonly ttftMs: number[]
  readonly tpotMs: number[]
  readonly retryAfterMs: number[]
  readonly causes: Map<string, number>
  readonly sheds: Map<string, number>
  readonly errors: Map<string, number>
}

/** Which requests to sum up; absent fields take all. */
export interface GroupChoice {
  readonly phase?: string
  readonly className?: string
  /** Only classes with targets: what may wait for minutes would drown the others' percentiles. */
  readonly promised?: boolean
}

export interface Tally {
  offered(planned: PlannedRequest): void
  settled(result: LoadResult): void
  summary(choice?: GroupChoice): GroupSummary
  /** Names seen so far, in order of appearance. */
  phases(): readonly string[]
  classes(): readonly string[]
}

/** An empty tally. */
export function createTally(): Tally {
  const groups = new Map<string, Map<string, Group>>()
  const groupOf = (planned: PlannedRequest) => {
    const byClass = groups.get(planned.phase) ?? new Map<string, Group>()
    groups.set(planned.phase, byClass)
    const group = byClass.get(planned.slo.name) ?? emptyGroup(hasTargets(planned.slo))
    byClass.set(planned.slo.name, group)
    return group
  }
  return {
    offered(planned) {
      groupOf(planned).offered++
    },
    settled(result) {
      count(groupOf(result.planned), result)
    },
    summary({ phase, className, promised } = {}) {
      const chosen: Group[] = []
      for (const [phaseName, byClass] of groups) {
        if (phase !== undefined && phase !== phaseName) continue
        for (const [name, group] of byClass) {
          if (className !== undefined && className !== name) continue
          if (promised === undefined || promised === group.promised) chosen.push(group)
        }
      }
      return summarise(chosen)
    },
    phases: () => [...groups.keys()],
    classes: () => [...new Set([...groups.values()].flatMap((byClass) => [...byClass.keys()]))],
  }
}

function emptyGroup(promised: boolean): Group {
  return {
    promised,
    offered: 0,
    good: 0,
    bad: 0,
    excluded: 0,
    completed: 0,
    shedBad: 0,
    retries: 0,
    outputTokens: 0,
    ttftMs: [],
    tpotMs: [],
    retryAfterMs: [],
    causes: new Map(),
    sheds: new Map(),
    errors: new Map(),
  }
}

function count(group: Group, { facts, verdict, refusal, error, retries }: LoadResult): void {
  group[verdict.kind]++
  group.retries += retries
  group.outputTokens += facts.outputTokens
  if (facts.outcome === 'completed') group.completed++
  if (verdict.cause !== undefined) bump(group.causes, verdict.cause)
  if (refusal !== undefined) {
    bump(group.sheds, refusal.reason)
    if (verdict.kind === 'bad') group.shedBad++
    if (refusal.retryAfterMs !== undefined) group.retryAfterMs.push(refusal.retryAfterMs)
  }
  if (error !== undefined) bump(group.errors, error)
  if (facts.ttftMs !== undefined) group.ttftMs.push(facts.ttftMs)
  if (facts.tpotMs !== undefined) group.tpotMs.push(facts.tpotMs)
}

function bump(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

function summarise(groups: readonly Group[]): GroupSummary {
  const sum = (pick: (group: Group) => number) => groups.reduce((total, group) => total + pick(group), 0)
  const good = sum((group) => group.good)
  const bad = sum((group) => group.bad)
  const excluded = sum((group) => group.excluded)
  const admitted = good + bad - sum((group) => group.shedBad)
  return {
    offeredRequests: sum((group) => group.offered),
    settledRequests: good + bad + excluded,
    goodRequests: good,
    badRequests: bad,
    excludedRequests: excluded,
    completedRequests: sum((group) => group.completed),
    shedRequests: groups.reduce((total, group) => total + totalOf(group.sheds), 0),
    ...(good + bad === 0 ? {} : { attainmentRatio: good / (good + bad) }),
    ...(admitted === 0 ? {} : { admittedAttainmentRatio: good / admitted }),
    outputTokens: sum((group) => group.outputTokens),
    ttftMs: percentiles(groups.map((group) => group.ttftMs)),
    tpotMs: percentiles(groups.map((group) => group.tpotMs)),
    retryAfterMs: percentiles(groups.map((group) => group.retryAfterMs)),
    causes: merged(groups.map((group) => group.causes)),
    sheds: merged(groups.map((group) => group.sheds)),
    errors: merged(groups.map((group) => group.errors)),
    retries: sum((group) => group.retries),
  }
}

function totalOf(counts: ReadonlyMap<string, number>): number {
  let total = 0
  for (const value of counts.values()) total += value
  return total
}

function merged(all: readonly ReadonlyMap<string, number>[]): Record<string, number> {
  const total: Record<string, number> = {}
  for (const counts of all) for (const [key, value] of counts) total[key] = (total[key] ?? 0) + value
  return total
}

function percentiles(parts: readonly (readonly number[])[]): Percentiles {
  const sorted = Float64Array.from(parts.flat()).sort()
  const p50 = nearestRank(sorted, 0.5)
  const p99 = nearestRank(sorted, 0.99)
  return p50 === undefined || p99 === undefined ? {} : { p50, p99 }
}
