/** Keeps the attainment of every (model, class, product) over rolling windows, in memory that traffic can't grow. */
import type { Settlement } from '../core/records.ts'
import type { Offer, SloClass } from '../core/request.ts'
import { hasTargets } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { Quantiles, QuantileWindow } from './rolling-quantiles.ts'
import {
  budgetOf,
  type RingSnapshot,
  reportOf,
  SERIES_FIELDS,
  Series,
  type SliName,
  type SpanName,
  type WindowReport,
} from './series.ts'
import { ForwardClock, type WindowName, type WindowSpec, windowsFor } from './windows.ts'

/** Stands for a name that the configuration does not have (any more). */
export const OTHER = 'other'

/** The names that may become keys, and the promises behind them. Nothing else ever makes a series. */
export interface SloCatalog {
  readonly models: readonly string[]
  readonly classes: readonly string[]
  /** All products, the one for unmatched requests included. */
  readonly products: readonly string[]
  /** Tenants that may have series of their own; the others are `other`. Absent: all of them. */
  readonly tenants?: readonly string[]
  /** Their weights against each other, 1 where absent. */
  readonly tenantShares?: Readonly<Record<string, number>>
  /** The class as it is for that model. */
  readonly classFor: (className: string, model: string) => SloClass | undefined
  readonly periodMs: Ms
}

export interface SeriesKey {
  readonly model: string
  readonly class: string
  readonly product: string
}

/** Plain JSON of all windows, to be kept over a restart. Quantiles are not in it: an hour makes them anew. */
export interface AttainmentSnapshot {
  readonly version: 1
  readonly series: readonly (SeriesKey & { readonly rings: Readonly<Record<string, RingSnapshot>> })[]
}

interface Entry {
  readonly key: SeriesKey
  readonly series: Series
}

export class Attainment {
  readonly #clock = new ForwardClock()
  readonly #entries = new Map<string, Entry>()
  #catalog: SloCatalog
  #names: Readonly<Record<keyof SeriesKey, ReadonlySet<string>>>

  constructor(catalog: SloCatalog) {
    this.#catalog = catalog
    this.#names = namesOf(catalog)
  }

  get catalog(): SloCatalog {
    return this.#catalog
  }

  get windows(): readonly WindowSpec[] {
    return windowsFor(this.#catalog.periodMs)
  }

  /** Takes a new catalog over: series of names that are gone go, and a new period starts all of them anew. */
  configure(catalog: SloCatalog): void {
    const newPeriod = catalog.periodMs !== this.#catalog.periodMs
    this.#catalog = catalog
    this.#names = namesOf(catalog)
    for (const [id, { key }] of this.#entries) {
      if (newPeriod || !this.#knows(key)) this.#entries.delete(id)
    }
  }

  /** The key of an offer, with `other` for each name that the catalog lacks. */
  keyOf(offer: Pick<Offer, 'pool' | 'product' | 'slo'>): SeriesKey {
    const named = (part: keyof SeriesKey, name: string): string =>
      this.#names[part].has(name) ? name : OTHER
    return {
      model: named('model', offer.pool),
      class: named('class', offer.slo.name),
      product: named('product', offer.product),
    }
  }

  count(settlement: Settlement, nowMs: Ms): void {
    this.#open(this.keyOf(settlement.offer), this.#clock.at(nowMs)).count(settlement, this.#clock.at(nowMs))
  }

  /** Keys that have been counted, in order of their first request. */
  keys(): readonly SeriesKey[] {
    return [...this.#entries.values()].map((entry) => entry.key)
  }

  /** The objective that binds a key, 0 to 1; undefined for classes without targets or unknown names. */
  objectiveRatio(key: Pick<SeriesKey, 'model' | 'class'>): Ratio | undefined {
    const slo = this.#catalog.classFor(key.class, key.model)
    return slo === undefined || !hasTargets(slo) ? undefined : slo.objectiveRatio
  }

  /** Undefined while the key has no request. */
  report(key: SeriesKey, window: WindowName, nowMs: Ms): WindowReport | undefined {
    return this.#find(key)?.report(window, this.objectiveRatio(key), this.#clock.at(nowMs))
  }

  /** Good and bad of one indicator, the cheap way. */
  share(key: SeriesKey, sli: SliName, window: WindowName, nowMs: Ms): { good: number; bad: number } {
    return this.#find(key)?.share(sli, window, this.#clock.at(nowMs)) ?? { good: 0, bad: 0 }
  }

  /** Good requests a second over the window; 0 while the key has no request. */
  goodputRequestsPerSec(key: SeriesKey, window: WindowName, nowMs: Ms): number {
    const atMs = this.#clock.at(nowMs)
    const coveredMs = this.#find(key)?.coveredMs(window, atMs) ?? 0
    return coveredMs <= 0 ? 0 : (this.share(key, 'all', window, nowMs).good * 1000) / coveredMs
  }

  /** Share of the period's error budget that is left; undefined without objective or without requests. */
  budgetRemainingRatio(key: SeriesKey, nowMs: Ms): number | undefined {
    const report = this.report(key, 'period', nowMs)
    return report === undefined ? undefined : budgetOf(report, this.objectiveRatio(key))
  }

  quantiles(key: SeriesKey, span: SpanName, window: QuantileWindow, nowMs: Ms): Quantiles | undefined {
    return this.#find(key)?.quantiles(span, window, this.#clock.at(nowMs))
  }

  /** All series added up, without burn rates, since they have no common objective. */
  total(window: WindowName, nowMs: Ms): WindowReport {
    const atMs = this.#clock.at(nowMs)
    const sums = new Float64Array(SERIES_FIELDS)
    let coveredMs = 0
    for (const { series } of this.#entries.values()) {
      series.sums(window, atMs).forEach((value, field) => {
        sums[field] = (sums[field] ?? 0) + value
      })
      coveredMs = Math.max(coveredMs, series.coveredMs(window, atMs))
    }
    const spanMs = this.windows.find((spec) => spec.name === window)?.spanMs ?? 0
    return reportOf(window, sums, { spanMs, coveredMs, objectiveRatio: undefined })
  }

  snapshot(nowMs: Ms): AttainmentSnapshot {
    const atMs = this.#clock.at(nowMs)
    const series = [...this.#entries.values()].map(({ key, series }) => ({
      ...key,
      rings: series.snapshot(atMs),
    }))
    return { version: 1, series }
  }

  /** Adds a snapshot that was taken `awayMs` ago. Throws a RangeError when it is not one. */
  restore(snapshot: unknown, awayMs: Ms, nowMs: Ms): void {
    const checked = checkedSnapshot(snapshot)
    if (!Number.isFinite(awayMs))
      throw new RangeError(`the age of an SLO snapshot must be finite, got ${awayMs}`)
    const atMs = this.#clock.at(nowMs)
    for (const { rings, ...key } of checked.series) {
      if (this.#knows(key)) this.#open(key, atMs).restore(rings, Math.max(0, awayMs), atMs)
    }
  }

  #knows(key: SeriesKey): boolean {
    return (
      this.#names.model.has(key.model) &&
      this.#names.class.has(key.class) &&
      this.#names.product.has(key.product)
    )
  }

  #find(key: SeriesKey): Series | undefined {
    return this.#entries.get(idOf(key))?.series
  }

  #open(key: SeriesKey, atMs: Ms): Series {
    const id = idOf(key)
    const found = this.#entries.get(id)
    if (found !== undefined) return found.series
    const { model, class: className, product } = key
    const entry = {
      key: { model, class: className, product },
      series: new Series(this.#catalog.periodMs, atMs),
    }
    this.#entries.set(id, entry)
    return entry.series
  }
}

/** The indicators that a class promises anything about: `all` and one for each target. */
export function slisOf(slo: SloClass): readonly SliName[] {
  if (!hasTargets(slo)) return []
  const one = (name: SliName, target: Ms | undefined): SliName[] => (target === undefined ? [] : [name])
  return ['all', ...one('ttft', slo.ttftMs), ...one('tpot', slo.tpotMs), ...one('e2e', slo.e2eMs)]
}

function idOf(key: SeriesKey): string {
  return `${key.model}\n${key.class}\n${key.product}`
}

function namesOf(catalog: SloCatalog): Record<keyof SeriesKey, ReadonlySet<string>> {
  return {
    model: new Set(catalog.models),
    class: new Set(catalog.classes),
    product: new Set(catalog.products),
  }
}

function checkedSnapshot(snapshot: unknown): AttainmentSnapshot {
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null
  const isRing = (ring: unknown): boolean =>
    isObject(ring) &&
    Number.isFinite(ring.sliceMs) &&
    Array.isArray(ring.rows) &&
    ring.rows.every((row) => Array.isArray(row) && row.every((value) => Number.isFinite(value) && value >= 0))
  const isSeries = (entry: unknown): boolean =>
    isObject(entry) &&
    ['model', 'class', 'product'].every((part) => typeof entry[part] === 'string') &&
    isObject(entry.rings) &&
    Object.values(entry.rings).every(isRing)
  const valid =
    isObject(snapshot) &&
    snapshot.version === 1 &&
    Array.isArray(snapshot.series) &&
    snapshot.series.every(isSeries)
  if (!valid)
    throw new RangeError('this is no SLO snapshot of version 1; remove the state file to start anew')
  return snapshot as unknown as AttainmentSnapshot
}
