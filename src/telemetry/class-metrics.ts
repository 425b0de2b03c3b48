/** The metrics of one model and class: counted as requests end, and brought up to date when scraped. */
import type { Counter } from 'prom-client'
import type { DecisionRecord, Settlement } from '../core/records.ts'
import type { SloClass } from '../core/request.ts'
import { slisOf } from '../slo/attainment.ts'
import { EXCLUSION_CAUSES } from '../slo/judge.ts'
import { type SliName, tpotSampleMs } from '../slo/series.ts'
import { BoundCounter } from './bound-counter.ts'
import {
  type Bounds,
  type ClassKey,
  classInstruments,
  type InstrumentSet,
  observeSeconds,
  setOrRemove,
} from './instruments.ts'
import { LABEL_VALUES } from './metric-table.ts'
import type { BoundHistogram } from './span-histogram.ts'

interface ProductCounters {
  readonly events: ReadonlyMap<SliName, BoundCounter>
  readonly goodEvents: ReadonlyMap<SliName, BoundCounter>
}

export interface ClassMetricsOptions {
  readonly model: string
  readonly className: string
  /** The class as it is for the model; undefined for names that the file lacks. */
  readonly slo: SloClass | undefined
  readonly products: readonly string[]
  readonly bounds: Bounds
}

export class ClassMetrics {
  readonly #labels: { readonly model: string; readonly class: string }
  readonly #set: InstrumentSet<ClassKey>
  readonly #slis: readonly SliName[]
  readonly #products = new Map<string, ProductCounters>()
  readonly #outcomes: ReadonlyMap<string, BoundCounter>
  readonly #reasons: ReadonlyMap<string, BoundCounter>
  readonly #causes: ReadonlyMap<string, BoundCounter>
  readonly #verdicts: ReadonlyMap<string, BoundCounter>
  readonly #tokens: ReadonlyMap<string, BoundCounter>
  readonly #spans: Readonly<Record<'ttft' | 'tpot' | 'duration' | 'queueWait', BoundHistogram>>

  constructor(options: ClassMetricsOptions) {
    this.#labels = { model: options.model, class: options.className }
    this.#set = classInstruments(options.bounds)
    this.#slis = options.slo === undefined ? [] : slisOf(options.slo)
    const { on } = this.#set
    this.#outcomes = this.#zeroed(on.requests, 'outcome', LABEL_VALUES.outcome)
    this.#reasons = this.#zeroed(on.shed, 'reason', LABEL_VALUES.reason)
    this.#causes = this.#zeroed(on.sloExcluded, 'cause', EXCLUSION_CAUSES)
    this.#verdicts = this.#zeroed(on.shadowVerdicts, 'verdict', LABEL_VALUES.verdict)
    this.#tokens = this.#zeroed(on.tokens, 'kind', LABEL_VALUES.kind)
    this.#spans = {
      ttft: on.ttft.labels(this.#labels),
      tpot: on.tpot.labels(this.#labels),
      duration: on.duration.labels(this.#labels),
      queueWait: on.queueWait.labels(this.#labels),
    }
    this.configure(options.slo, options.products)
  }

  /** True when this set can go on with that promise: the same indicators under the same names. */
  suits(slo: SloClass | undefined): boolean {
    return (slo === undefined ? [] : slisOf(slo)).join() === this.#slis.join()
  }

  /** Takes over an objective and the products of the file: new ones start at 0, others go. */
  configure(slo: SloClass | undefined, products: readonly string[]): void {
    for (const product of this.#products.keys()) if (!products.includes(product)) this.#forget(product)
    for (const product of products) this.#productCounters(product)
    const objectiveRatio = this.#slis.length === 0 ? undefined : slo?.objectiveRatio
    setOrRemove(this.#set.on.sloObjective, this.#labels, objectiveRatio)
  }

  get registry(): InstrumentSet<ClassKey>['registry'] {
    return this.#set.registry
  }

  /** Brings the counters up to date; to be called before the registry is printed. */
  refresh(): void {
    for (const counters of [this.#outcomes, this.#reasons, this.#causes, this.#verdicts, this.#tokens]) {
      for (const counter of counters.values()) counter.tell()
    }
    for (const { events, goodEvents } of this.#products.values()) {
      for (const counter of events.values()) counter.tell()
      for (const counter of goodEvents.values()) counter.tell()
    }
  }

  decided(record: DecisionRecord): void {
    if (record.wouldHave !== undefined) this.#verdicts.get(record.wouldHave.kind)?.inc()
  }

  /** Counts the end of one request under `product`, which must be a name from the file or `other`. */
  settled(settlement: Settlement, product: string): void {
    const { verdict, outcome } = settlement
    this.#outcomes.get(outcome)?.inc()
    if (settlement.shedReason !== undefined) this.#reasons.get(settlement.shedReason)?.inc()
    if (verdict.cause !== undefined) this.#causes.get(verdict.cause)?.inc()
    this.#countSlis(settlement, this.#productCounters(product))
    observeSeconds(this.#spans.ttft, settlement.ttftMs)
    observeSeconds(this.#spans.tpot, tpotSampleMs(settlement))
    observeSeconds(this.#spans.queueWait, settlement.queueMs)
    if (outcome === 'completed') observeSeconds(this.#spans.duration, settlement.e2eMs)
    if (settlement.attempts === 0) return
    this.#addTokens('prompt', settlement.promptTokens)
    this.#addTokens('output', settlement.outputTokens)
  }

  #countSlis({ verdict }: Settlement, counters: ProductCounters): void {
    const good: Readonly<Record<SliName, boolean | undefined>> = {
      all: verdict.kind === 'excluded' ? undefined : verdict.kind === 'good',
      ttft: verdict.ttftGood,
      tpot: verdict.tpotGood,
      e2e: verdict.e2eGood,
    }
    for (const [sli, counter] of counters.events) {
      if (good[sli] === undefined) continue
      counter.inc()
      if (good[sli]) counters.goodEvents.get(sli)?.inc()
    }
  }

  #addTokens(kind: 'prompt' | 'output', tokens: number): void {
    if (Number.isFinite(tokens) && tokens > 0) this.#tokens.get(kind)?.inc(tokens)
  }

  #productCounters(product: string): ProductCounters {
    const found = this.#products.get(product)
    if (found !== undefined) return found
    const labels = { ...this.#labels, product }
    const bind = (counter: Counter): ReadonlyMap<SliName, BoundCounter> =>
      new Map(
        this.#slis.map((sli) => {
          return [sli, new BoundCounter(counter.labels({ ...labels, sli }))] as const
        }),
      )
    const made = { events: bind(this.#set.on.sloEvents), goodEvents: bind(this.#set.on.sloGoodEvents) }
    this.#products.set(product, made)
    return made
  }

  #forget(product: string): void {
    this.#products.delete(product)
    for (const sli of this.#slis) {
      this.#set.on.sloEvents.remove({ ...this.#labels, product, sli })
      this.#set.on.sloGoodEvents.remove({ ...this.#labels, product, sli })
    }
  }

  #zeroed(counter: Counter, label: string, values: readonly string[]): ReadonlyMap<string, BoundCounter> {
    return new Map(
      values.map((value) => {
        return [value, new BoundCounter(counter.labels({ ...this.#labels, [label]: value }))] as const
      }),
    )
  }
}
