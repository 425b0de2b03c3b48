/** Reads how each promise is kept: attainment, budget, burn and percentiles beside their targets. */
import type { Ms, Ratio } from '../../core/units.ts'
import type { Attainment, SeriesKey } from '../../slo/attainment.ts'
import { burnRate } from '../../slo/burn-rate.ts'
import type { Quantiles } from '../../slo/rolling-quantiles.ts'
import type { HealthState, SeriesHealth } from '../../slo/slo-health.ts'
import type { WindowName } from '../../slo/windows.ts'
import { healthById, healthId } from '../slo-report.ts'

/** A span's percentiles over five minutes beside what the class promises. */
export interface SpanFigures {
  readonly targetMs?: Ms
  /** Added to the target for each 1000 prompt tokens. */
  readonly per1kTokensMs?: Ms
  readonly p50Ms?: Ms
  readonly p99Ms?: Ms
}

export interface PromiseFigures extends SeriesKey {
  readonly state: HealthState
  /** The pair of windows that raised the state, e.g. `1h/5m`. */
  readonly raisedBy?: string
  /** Absent for a class without targets, which promises nothing. */
  readonly objectiveRatio?: Ratio
  readonly attainment: Readonly<Record<'5m' | '1h' | 'period', Ratio | undefined>>
  readonly budgetRemainingRatio?: number
  /** 1 spends the budget in exactly the period. */
  readonly burn: Readonly<Record<'5m' | '1h', number | undefined>>
  /** Judged requests a second over five minutes, and the good among them. */
  readonly judgedPerSec: number
  readonly goodPerSec: number
  readonly ttft: SpanFigures
  readonly tpot: SpanFigures
  readonly e2eTargetMs?: Ms
}

/** Every series that had a request, the most troubled first. */
export function promiseFigures(
  attainment: Attainment,
  health: readonly SeriesHealth[],
  nowMs: Ms,
): readonly PromiseFigures[] {
  const byId = healthById(health)
  const all = attainment.keys().map((key) => {
    const { state = 'unknown', raisedBy } = byId.get(healthId(key)) ?? {}
    return {
      ...key,
      state,
      ...(raisedBy === undefined ? {} : { raisedBy }),
      ...figuresOf(attainment, key, nowMs),
    }
  })
  return all.sort(
    (a, b) => rank(a) - rank(b) || budgetOf(a) - budgetOf(b) || (nameOf(a) < nameOf(b) ? -1 : 1),
  )
}

/** What a series is called: its class, with model and product where they tell it from others. */
export function promiseName(key: SeriesKey, all: readonly SeriesKey[]): string {
  const several = (part: 'model' | 'product') => all.some((other) => other[part] !== key[part])
  const place = [
    ...(several('model') ? [key.model] : []),
    ...(several('product') ? [key.product === NO_PRODUCT ? 'no product' : key.product] : []),
  ]
  return place.length === 0 ? key.class : `${key.class} (${place.join(', ')})`
}

/** How requests that no product matched are labelled. */
const NO_PRODUCT = 'none'

function figuresOf(
  attainment: Attainment,
  key: SeriesKey,
  nowMs: Ms,
): Omit<PromiseFigures, keyof SeriesKey | 'state' | 'raisedBy'> {
  const slo = attainment.catalog.classFor(key.class, key.model)
  const objectiveRatio = attainment.objectiveRatio(key)
  const share = (window: WindowName) => attainment.share(key, 'all', window, nowMs)
  const recent = attainment.report(key, '5m', nowMs)
  const hour = share('1h')
  const judged = (recent?.sli.all.good ?? 0) + (recent?.sli.all.bad ?? 0)
  const coveredMs = recent?.coveredMs ?? 0
  const budgetRemainingRatio = attainment.budgetRemainingRatio(key, nowMs)
  return {
    ...(objectiveRatio === undefined ? {} : { objectiveRatio }),
    attainment: {
      '5m': recent?.sli.all.attainmentRatio,
      '1h': ratioOf(hour),
      period: ratioOf(share('period')),
    },
    ...(budgetRemainingRatio === undefined ? {} : { budgetRemainingRatio }),
    burn: { '5m': recent?.sli.all.burnRate, '1h': burnRate(hour.good, hour.bad, objectiveRatio) },
    judgedPerSec: coveredMs <= 0 ? 0 : (judged * 1000) / coveredMs,
    goodPerSec: recent?.goodputRequestsPerSec ?? 0,
    ttft: span(slo?.ttftMs, slo?.ttftPer1kTokensMs, attainment.quantiles(key, 'ttft', '5m', nowMs)),
    tpot: span(slo?.tpotMs, 0, attainment.quantiles(key, 'tpot', '5m', nowMs)),
    ...(slo?.e2eMs === undefined ? {} : { e2eTargetMs: slo.e2eMs }),
  }
}

function span(targetMs: Ms | undefined, per1kTokensMs = 0, told: Quantiles | undefined): SpanFigures {
  return {
    ...(targetMs === undefined ? {} : { targetMs, ...(per1kTokensMs === 0 ? {} : { per1kTokensMs }) }),
    ...(told === undefined ? {} : { p50Ms: told.p50Ms, p99Ms: told.p99Ms }),
  }
}

function ratioOf({ good, bad }: { readonly good: number; readonly bad: number }): Ratio | undefined {
  return good + bad === 0 ? undefined : good / (good + bad)
}

const RANKS: Readonly<Record<HealthState, number>> = { critical: 0, burning: 1, ok: 2, unknown: 3 }

function rank({ state, objectiveRatio }: PromiseFigures): number {
  return objectiveRatio === undefined ? 4 : RANKS[state]
}

function budgetOf({ budgetRemainingRatio = 1 }: PromiseFigures): number {
  return budgetRemainingRatio
}

function nameOf(key: SeriesKey): string {
  return `${key.class}\n${key.model}\n${key.product}`
}
