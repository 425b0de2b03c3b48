/** Sums a virtual run up: attainment over offered requests, goodput, percentiles, sheds, waste. */
import type { SloVerdict } from '../core/records.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { taskOf } from './clients.ts'
import { nearestRank } from './nearest-rank.ts'
import type { SimOutcome, SimResult } from './run-types.ts'

/** Nearest-rank percentiles in ms; undefined without samples. */
export interface LatencySummary {
  readonly p50Ms?: Ms
  readonly p90Ms?: Ms
  readonly p99Ms?: Ms
}

export interface ClassSummary {
  readonly className: string
  readonly offered: number
  readonly good: number
  readonly bad: number
  readonly excluded: number
  /** Good among good and bad; undefined while nothing counts. */
  readonly attainmentRatio?: Ratio
  readonly shed: number
  /** Offers that were not a client's first attempt. */
  readonly retries: number
  readonly ttft: LatencySummary
  readonly tpot: LatencySummary
}

export interface SimReport {
  readonly schedulerName: string
  readonly total: ClassSummary
  readonly classes: readonly ClassSummary[]
  /** Of requests however often they were sent: good when some attempt was. */
  readonly tasks: { readonly judged: number; readonly good: number }
  /** From arrival to refusal. */
  readonly shedAfter: LatencySummary
  readonly goodPerSec: number
  readonly offeredPerSec: number
  readonly shedByReason: Readonly<Record<string, number>>
  readonly badByCause: Readonly<Record<string, number>>
  /** Engine time spent on requests that ended bad, and all of it spent on requests. */
  readonly wastedEngineMs: Ms
  readonly usedEngineMs: Ms
  readonly preemptions: number
  readonly reroutes: number
}

/** Requests received within [`fromMs`, `toMs`) count; rates are over that window. */
export function summarize(result: SimResult, fromMs: Ms, toMs: Ms): SimReport {
  const counted = result.outcomes.filter(({ settlement }) => {
    const atMs = settlement.offer.receivedAtMs
    return atMs >= fromMs && atMs < toMs
  })
  const names = [...new Set(counted.map(({ settlement }) => settlement.offer.slo.name))].sort()
  const total = summarizeGroup('all', counted)
  const bad = counted.filter(({ settlement }) => settlement.verdict.kind === 'bad')
  const seconds = (toMs - fromMs) / 1000
  return {
    schedulerName: result.schedulerName,
    total,
    classes: names.map((name) =>
      summarizeGroup(
        name,
        counted.filter(({ settlement }) => settlement.offer.slo.name === name),
      ),
    ),
    tasks: summarizeTasks(result, counted),
    shedAfter: percentiles(
      counted.map(({ settlement }) => (settlement.outcome === 'shed' ? settlement.e2eMs : undefined)),
    ),
    goodPerSec: total.good / seconds,
    offeredPerSec: total.offered / seconds,
    shedByReason: tallyBy(counted, ({ settlement }) => settlement.shedReason),
    badByCause: tallyBy(bad, ({ settlement }) => settlement.verdict.cause),
    wastedEngineMs: sum(bad, (outcome) => outcome.engineMs),
    usedEngineMs: sum(counted, (outcome) => outcome.engineMs),
    preemptions: sum(result.engines, (engine) => engine.preemptionsTotal),
    reroutes: sum(result.counts, (counts) => counts.rerouted),
  }
}

function summarizeGroup(className: string, outcomes: readonly SimOutcome[]): ClassSummary {
  const ofKind = (kind: SloVerdict['kind']) =>
    outcomes.filter(({ settlement }) => settlement.verdict.kind === kind).length
  const good = ofKind('good')
  const bad = ofKind('bad')
  return {
    className,
    offered: outcomes.length,
    good,
    bad,
    excluded: ofKind('excluded'),
    ...(good + bad === 0 ? {} : { attainmentRatio: good / (good + bad) }),
    shed: outcomes.filter(({ settlement }) => settlement.outcome === 'shed').length,
    retries: outcomes.filter(({ settlement }) => settlement.offer.retryCount > 0).length,
    ttft: percentiles(outcomes.map(({ settlement }) => settlement.ttftMs)),
    tpot: percentiles(outcomes.map(({ settlement }) => settlement.tpotMs)),
  }
}

/** Tasks whose first attempt is counted and judged, and how many of them had a good attempt, then or later. */
function summarizeTasks(result: SimResult, counted: readonly SimOutcome[]): SimReport['tasks'] {
  const isGood = ({ settlement }: SimOutcome) => settlement.verdict.kind === 'good'
  const goodTasks = new Set(
    result.outcomes.filter(isGood).map(({ settlement }) => taskOf(settlement.requestId)),
  )
  const first = counted.filter(
    ({ settlement: { offer, verdict } }) => offer.retryCount === 0 && verdict.kind !== 'excluded',
  )
  const good = first.filter(({ settlement }) => goodTasks.has(settlement.requestId))
  return { judged: first.length, good: good.length }
}

function percentiles(samples: readonly (Ms | undefined)[]): LatencySummary {
  const sorted = samples.filter((sample) => sample !== undefined).sort((a, b) => a - b)
  const rank = (share: Ratio) => nearestRank(sorted, share) ?? 0
  return sorted.length === 0 ? {} : { p50Ms: rank(0.5), p90Ms: rank(0.9), p99Ms: rank(0.99) }
}

function tallyBy(
  outcomes: readonly SimOutcome[],
  keyOf: (outcome: SimOutcome) => string | undefined,
): Readonly<Record<string, number>> {
  const counts = new Map<string, number>()
  for (const outcome of outcomes) {
    const key = keyOf(outcome)
    if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}
