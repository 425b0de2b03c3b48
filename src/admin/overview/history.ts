/** Turns counts by step into what charts show: rates of requests, trailing burn rates, and what shadow mode would have done. */
import type { Ms, Ratio } from '../../core/units.ts'
import type { Attainment, SeriesKey } from '../../slo/attainment.ts'
import { burnRate } from '../../slo/burn-rate.ts'
import {
  type History,
  KEPT_STEPS,
  type RangeName,
  type SeriesHistory,
  SHOWN_STEPS,
  type TimelineField,
} from '../../telemetry/timeline.ts'

/** A value for each shown step, oldest first; undefined where nothing is known. */
export type Steps = readonly (number | undefined)[]

export interface BurnHistory {
  readonly key: SeriesKey
  readonly objectiveRatio: Ratio
  readonly burn: Steps
}

/** What enforcing would have done with requests that a shadow let through. */
export interface ShadowFigures {
  readonly key: SeriesKey
  readonly wouldAdmit: number
  readonly wouldWait: number
  readonly wouldShed: number
  /** Of those that it would have shed: kept their promise all the same. */
  readonly shedThoughGood: number
  /** Measured over all that were judged. */
  readonly attainmentRatio?: Ratio
}

export interface HistoryFigures {
  readonly range: RangeName
  readonly stepMs: Ms
  /** A burn rate at a step is that of so much time before it. */
  readonly trailingMs: Ms
  /** End of the last step, on the clock of the records. */
  readonly endAtMs: Ms
  /** Judged requests a second by how they ended, over all series. */
  readonly perSec: Readonly<Record<'good' | 'missed' | 'shed', Steps>>
  readonly burns: readonly BurnHistory[]
  readonly shadow: readonly ShadowFigures[]
}

export function historyFigures(history: History, attainment: Attainment): HistoryFigures {
  const { range, endAtMs, series, watchedSteps } = history
  const unwatched = KEPT_STEPS - watchedSteps
  const perSec = (field: TimelineField): Steps =>
    shownSteps((step) => {
      if (step < unwatched) return undefined
      return (series.reduce((sum, { counts }) => sum + (counts[field][step] ?? 0), 0) * 1000) / range.stepMs
    })
  return {
    range: range.name,
    stepMs: range.stepMs,
    trailingMs: range.trailingMs,
    endAtMs,
    perSec: { good: perSec('good'), missed: perSec('missed'), shed: perSec('shed') },
    burns: series.flatMap((one) => burnHistory(one, attainment, range.trailingMs / range.stepMs)),
    shadow: series.flatMap(shadowFigures),
  }
}

function shownSteps(valueAt: (step: number) => number | undefined): Steps {
  return Array.from({ length: SHOWN_STEPS }, (_, index) => valueAt(KEPT_STEPS - SHOWN_STEPS + index))
}

/** None for a series without an objective. */
function burnHistory(
  { key, counts }: SeriesHistory,
  attainment: Attainment,
  trailingSteps: number,
): BurnHistory[] {
  const objectiveRatio = attainment.objectiveRatio(key)
  if (objectiveRatio === undefined) return []
  const good = runningSums(counts.good)
  const missed = runningSums(counts.missed)
  const shed = runningSums(counts.shed)
  const trailing = (sums: Float64Array, step: number) =>
    (sums[step + 1] ?? 0) - (sums[Math.max(0, step + 1 - trailingSteps)] ?? 0)
  const burn = shownSteps((step) =>
    burnRate(trailing(good, step), trailing(missed, step) + trailing(shed, step), objectiveRatio),
  )
  return [{ key, objectiveRatio, burn }]
}

/** The sum of all before each place, and of all. */
function runningSums(counts: Float64Array): Float64Array {
  const sums = new Float64Array(counts.length + 1)
  counts.forEach((count, step) => {
    sums[step + 1] = (sums[step] ?? 0) + count
  })
  return sums
}

/** None for a series that no shadow watched in the shown time. */
function shadowFigures({ key, counts }: SeriesHistory): ShadowFigures[] {
  const sum = (field: TimelineField) =>
    counts[field].subarray(KEPT_STEPS - SHOWN_STEPS).reduce((total, count) => total + count, 0)
  const [wouldAdmit, wouldWait, wouldShed] = [sum('wouldAdmit'), sum('wouldWait'), sum('wouldShed')]
  if (wouldAdmit + wouldWait + wouldShed === 0) return []
  const [servedGood, servedBad] = [sum('wouldServeGood'), sum('wouldServeBad')]
  const shedThoughGood = sum('wouldShedGood')
  const judged = servedGood + servedBad + shedThoughGood + sum('wouldShedBad')
  return [
    {
      key,
      wouldAdmit,
      wouldWait,
      wouldShed,
      shedThoughGood,
      ...(judged === 0 ? {} : { attainmentRatio: (servedGood + shedThoughGood) / judged }),
    },
  ]
}
