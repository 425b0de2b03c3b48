/** The JSON of /slo: attainment of every series over every window, with all that could flatter it beside it. */
import type { SloClass } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { Attainment, SeriesKey } from '../slo/attainment.ts'
import { burnPairs } from '../slo/burn-rate.ts'
import {
  QUANTILE_ERROR_RATIO,
  QUANTILE_WINDOWS,
  type Quantiles,
  type QuantileWindow,
} from '../slo/rolling-quantiles.ts'
import type { Share, SliShare, SpanName, WindowReport } from '../slo/series.ts'
import type { HealthState, SeriesHealth } from '../slo/slo-health.ts'
import type { ShadowEstimate } from '../telemetry/shadow-estimate.ts'

export interface SeriesFilter {
  readonly model?: string
  readonly class?: string
  readonly product?: string
}

/** What does not depend on a series. */
export function sloPreamble(attainment: Attainment, nowMs: number): object {
  return {
    period_ms: attainment.catalog.periodMs,
    quantile_error_ratio: QUANTILE_ERROR_RATIO,
    burn_pairs: burnPairs(attainment.catalog.periodMs).map(({ severity, long, short, factor }) => {
      return { severity, long, short, factor: rounded(factor) }
    }),
    total: Object.fromEntries(
      attainment.windows.map(({ name }) => [name, windowJson(attainment.total(name, nowMs))] as const),
    ),
  }
}

/** What enforcing would attain, in shadow mode; null while nobody can say. */
export function estimateJson(estimate: ShadowEstimate | undefined, nowMs: Ms): object | null {
  if (estimate === undefined) return null
  return {
    kind: 'estimate',
    age_ms: Math.max(0, nowMs - estimate.atMs),
    span_ms: estimate.spanMs,
    classes: estimate.classes.map(({ model, class: className, requests, ...ratios }) => ({
      model,
      class: className,
      requests,
      measured_ratio: rounded(ratios.measuredRatio),
      simulated_as_run_ratio: rounded(ratios.shadowRatio),
      simulated_enforced_ratio: rounded(ratios.enforcedRatio),
    })),
  }
}

export function matchingKeys(attainment: Attainment, filter: SeriesFilter): readonly SeriesKey[] {
  return attainment.keys().filter((key) => {
    return (['model', 'class', 'product'] as const).every(
      (part) => filter[part] === undefined || filter[part] === key[part],
    )
  })
}

export function seriesJson(
  attainment: Attainment,
  key: SeriesKey,
  health: ReadonlyMap<string, SeriesHealth>,
  nowMs: number,
): object {
  const windows = attainment.windows.flatMap(({ name }) => {
    const report = attainment.report(key, name, nowMs)
    return report === undefined ? [] : [[name, windowJson(report)] as const]
  })
  const state: HealthState = health.get(healthId(key))?.state ?? 'unknown'
  return {
    ...key,
    state,
    objective_ratio: attainment.objectiveRatio(key) ?? null,
    error_budget_remaining_ratio: rounded(attainment.budgetRemainingRatio(key, nowMs)),
    targets: targetsJson(attainment.catalog.classFor(key.class, key.model)),
    windows: Object.fromEntries(windows),
    ttft: quantilesJson(attainment, key, 'ttft', nowMs),
    tpot: quantilesJson(attainment, key, 'tpot', nowMs),
    e2e: quantilesJson(attainment, key, 'e2e', nowMs),
  }
}

export function healthById(all: readonly SeriesHealth[]): ReadonlyMap<string, SeriesHealth> {
  return new Map(all.map((health) => [healthId(health), health]))
}

export function healthId(key: SeriesKey): string {
  return `${key.model}\n${key.class}\n${key.product}`
}

function windowJson(report: WindowReport): object {
  return {
    span_ms: report.spanMs,
    covered_ms: rounded(report.coveredMs),
    offered: {
      all: sliJson(report.sli.all),
      ttft: sliJson(report.sli.ttft),
      tpot: sliJson(report.sli.tpot),
      e2e: sliJson(report.sli.e2e),
    },
    admitted: shareJson(report.admitted),
    first_attempts: shareJson(report.firstAttempts),
    prompt_tokens: shareJson(report.promptTokens),
    by_prompt_size: report.byPromptSize.map(({ upToTokens, ...share }) => {
      return { up_to_tokens: Number.isFinite(upToTokens) ? upToTokens : null, ...shareJson(share) }
    }),
    excluded: report.excluded,
    goodput_requests_per_second: rounded(report.goodputRequestsPerSec),
  }
}

function shareJson({ good, bad, attainmentRatio }: Share): object {
  return { good, bad, attainment_ratio: rounded(attainmentRatio) }
}

function sliJson(share: SliShare): object {
  return { ...shareJson(share), burn_rate: rounded(share.burnRate) }
}

function targetsJson(slo: SloClass | undefined): object | null {
  if (slo === undefined) return null
  const { ttftMs, ttftPer1kTokensMs, tpotMs, e2eMs } = slo
  return { ttft_ms: ttftMs, ttft_per_1k_tokens_ms: ttftPer1kTokensMs, tpot_ms: tpotMs, e2e_ms: e2eMs }
}

function quantilesJson(attainment: Attainment, key: SeriesKey, span: SpanName, nowMs: number): object {
  const over = (window: QuantileWindow): object | null => {
    const told: Quantiles | undefined = attainment.quantiles(key, span, window, nowMs)
    if (told === undefined) return null
    return {
      samples: told.samples,
      p50_ms: rounded(told.p50Ms),
      p90_ms: rounded(told.p90Ms),
      p99_ms: rounded(told.p99Ms),
    }
  }
  return Object.fromEntries(QUANTILE_WINDOWS.map((window) => [window, over(window)] as const))
}

/** Null where there is no (finite) number to tell. */
function rounded(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Math.round(value * 1e6) / 1e6
}
