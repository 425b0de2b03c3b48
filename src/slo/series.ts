/** The counts of one (model, class, product) over every window, and what they say. */
import type { Settlement } from '../core/records.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { budgetRemainingRatio, burnRate } from './burn-rate.ts'
import { EXCLUSION_CAUSES } from './judge.ts'
import { type Quantiles, type QuantileWindow, RollingQuantiles } from './rolling-quantiles.ts'
import { RollingSums, type SliceRow } from './rolling-sums.ts'
import { type WindowName, windowsFor } from './windows.ts'

const SLI_NAMES = ['all', 'ttft', 'tpot', 'e2e'] as const
export type SliName = (typeof SLI_NAMES)[number]

/** Spans of time whose quantiles are kept. */
export type SpanName = Exclude<SliName, 'all'>

/** Upper ends of the prompt-size buckets in tokens, both ends of each included above the one before. */
export const PROMPT_SIZE_BOUNDS: readonly Tokens[] = [512, 2048, 8192, 32_768, Number.POSITIVE_INFINITY]

/** Judged two ways: good and bad. `attainmentRatio` is undefined while nothing was judged. */
export interface Share {
  readonly good: number
  readonly bad: number
  readonly attainmentRatio?: Ratio
}

export interface SliShare extends Share {
  readonly burnRate?: number
}

export interface WindowReport {
  readonly window: WindowName
  readonly spanMs: Ms
  /** How much of the span has been seen. */
  readonly coveredMs: Ms
  /** Over offered requests (`all`) and over served ones (the others). */
  readonly sli: Readonly<Record<SliName, SliShare>>
  readonly admitted: Share
  readonly firstAttempts: Share
  /** Weighted by prompt tokens: the one size that is known of every offered request, served or not. */
  readonly promptTokens: Share
  readonly byPromptSize: readonly (Share & { readonly upToTokens: Tokens })[]
  readonly excluded: Readonly<Record<string, number>>
  readonly goodputRequestsPerSec: number
}

/** Pairs of counters: the good one at this index, the bad one behind it. */
const SLI_AT: Readonly<Record<SliName, number>> = { all: 0, ttft: 2, tpot: 4, e2e: 6 }
const ADMITTED_AT = 8
const FIRST_ATTEMPTS_AT = 10
const TOKENS_AT = 12
const SIZES_AT = 14
const EXCLUDED_AT = SIZES_AT + 2 * PROMPT_SIZE_BOUNDS.length
export const SERIES_FIELDS = EXCLUDED_AT + EXCLUSION_CAUSES.length

/** Rows of one ring as kept in a snapshot. */
export interface RingSnapshot {
  readonly sliceMs: Ms
  readonly rows: readonly SliceRow[]
}

export class Series {
  readonly #rings: ReadonlyMap<WindowName, { readonly spanMs: Ms; readonly sums: RollingSums }>
  readonly #spans: Readonly<Record<SpanName, RollingQuantiles>>

  constructor(periodMs: Ms, nowMs: Ms) {
    const rings = windowsFor(periodMs).map(({ name, spanMs, slices }) => {
      const sums = new RollingSums(SERIES_FIELDS, spanMs, slices, true, nowMs)
      return [name, { spanMs, sums }] as const
    })
    this.#rings = new Map(rings)
    const quantiles = () => new RollingQuantiles(periodMs, nowMs)
    this.#spans = { ttft: quantiles(), tpot: quantiles(), e2e: quantiles() }
  }

  count(settlement: Settlement, nowMs: Ms): void {
    const { ttftMs, e2eMs, outcome } = settlement
    if (ttftMs !== undefined) this.#spans.ttft.add(ttftMs, nowMs)
    const tpotMs = tpotSampleMs(settlement)
    if (tpotMs !== undefined) this.#spans.tpot.add(tpotMs, nowMs)
    if (outcome === 'completed') this.#spans.e2e.add(e2eMs, nowMs)
    const amounts = increments(settlement)
    for (const { sums } of this.#rings.values()) sums.addAll(amounts, nowMs)
  }

  /** Raw sums of a window, for adding several series up. The array is reused. */
  sums(window: WindowName, nowMs: Ms): Float64Array {
    return this.#ring(window).sums.at(nowMs)
  }

  report(window: WindowName, objectiveRatio: Ratio | undefined, nowMs: Ms): WindowReport {
    const { spanMs, sums } = this.#ring(window)
    return reportOf(window, sums.at(nowMs), { spanMs, coveredMs: sums.coveredMs(nowMs), objectiveRatio })
  }

  /** Good and bad of one indicator, without making a whole report. */
  share(sli: SliName, window: WindowName, nowMs: Ms): { good: number; bad: number } {
    const sums = this.#ring(window).sums.at(nowMs)
    return { good: sums[SLI_AT[sli]] ?? 0, bad: sums[SLI_AT[sli] + 1] ?? 0 }
  }

  coveredMs(window: WindowName, nowMs: Ms): Ms {
    return this.#ring(window).sums.coveredMs(nowMs)
  }

  quantiles(span: SpanName, window: QuantileWindow, nowMs: Ms): Quantiles | undefined {
    return this.#spans[span].over(window, nowMs)
  }

  snapshot(nowMs: Ms): Record<string, RingSnapshot> {
    const rings = [...this.#rings].map(([name, { sums }]) => {
      return [name, { sliceMs: sums.sliceMs, rows: sums.rows(nowMs) }] as const
    })
    return Object.fromEntries(rings)
  }

  restore(rings: Readonly<Record<string, RingSnapshot>>, awayMs: Ms, nowMs: Ms): void {
    for (const [name, { sums }] of this.#rings) {
      const ring = rings[name]
      if (ring !== undefined) sums.restore(ring.rows, ring.sliceMs, awayMs, nowMs)
    }
  }

  #ring(window: WindowName): { readonly spanMs: Ms; readonly sums: RollingSums } {
    const ring = this.#rings.get(window)
    if (ring === undefined) throw new RangeError(`no window ${window}`)
    return ring
  }
}

/** The TPOT of a settlement where it tells of the engine: a slow reader's is its own, and is left out. */
export function tpotSampleMs({ tpotMs, verdict, offer }: Settlement): Ms | undefined {
  const hidden = offer.slo.tpotMs !== undefined && verdict.tpotGood === undefined
  return hidden || verdict.cause === 'slow_reader' ? undefined : tpotMs
}

/** Reads raw sums; used for one series and for several added up. */
export function reportOf(
  window: WindowName,
  sums: Float64Array,
  of: { readonly spanMs: Ms; readonly coveredMs: Ms; readonly objectiveRatio: Ratio | undefined },
): WindowReport {
  const sli = (name: SliName): SliShare => {
    const share = shareAt(sums, SLI_AT[name])
    const burn = burnRate(share.good, share.bad, of.objectiveRatio)
    return burn === undefined ? share : { ...share, burnRate: burn }
  }
  const excluded = EXCLUSION_CAUSES.map((cause, index) => [cause, sums[EXCLUDED_AT + index] ?? 0] as const)
  const all = sli('all')
  return {
    window,
    spanMs: of.spanMs,
    coveredMs: of.coveredMs,
    sli: { all, ttft: sli('ttft'), tpot: sli('tpot'), e2e: sli('e2e') },
    admitted: shareAt(sums, ADMITTED_AT),
    firstAttempts: shareAt(sums, FIRST_ATTEMPTS_AT),
    promptTokens: shareAt(sums, TOKENS_AT),
    byPromptSize: PROMPT_SIZE_BOUNDS.map((upToTokens, index) => {
      return { upToTokens, ...shareAt(sums, SIZES_AT + 2 * index) }
    }),
    excluded: Object.fromEntries(excluded),
    goodputRequestsPerSec: of.coveredMs <= 0 ? 0 : (all.good * 1000) / of.coveredMs,
  }
}

/** The budget left by a report of the whole period. */
export function budgetOf(report: WindowReport, objectiveRatio: Ratio | undefined): number | undefined {
  return budgetRemainingRatio(report.sli.all.good, report.sli.all.bad, objectiveRatio)
}

function shareAt(sums: Float64Array, index: number): Share {
  const good = sums[index] ?? 0
  const bad = sums[index + 1] ?? 0
  return good + bad === 0 ? { good, bad } : { good, bad, attainmentRatio: good / (good + bad) }
}

/** What a request adds, as `addAll` takes it. */
function increments({ verdict, offer, attempts, promptTokens }: Settlement): number[] {
  const found: number[] = []
  const cause = (EXCLUSION_CAUSES as readonly string[]).indexOf(verdict.cause ?? '')
  if (cause >= 0) found.push(EXCLUDED_AT + cause, 1)
  const { ttftGood, tpotGood, e2eGood } = verdict
  if (ttftGood !== undefined) found.push(SLI_AT.ttft + (ttftGood ? 0 : 1), 1)
  if (tpotGood !== undefined) found.push(SLI_AT.tpot + (tpotGood ? 0 : 1), 1)
  if (e2eGood !== undefined) found.push(SLI_AT.e2e + (e2eGood ? 0 : 1), 1)
  if (verdict.kind === 'excluded') return found
  const side = verdict.kind === 'good' ? 0 : 1
  const size = PROMPT_SIZE_BOUNDS.findIndex((upToTokens) => promptTokens <= upToTokens)
  found.push(SLI_AT.all + side, 1, SIZES_AT + 2 * Math.max(0, size) + side, 1)
  found.push(TOKENS_AT + side, Number.isFinite(promptTokens) ? Math.max(0, Math.round(promptTokens)) : 0)
  if (attempts > 0) found.push(ADMITTED_AT + side, 1)
  if (offer.retryCount === 0) found.push(FIRST_ATTEMPTS_AT + side, 1)
  return found
}
