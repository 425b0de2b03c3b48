/** All metrics together: counts what happens and prints it, a slice at a time so that traffic never waits for a scrape. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { OfferedStream } from '../core/demand.ts'
import type { DecisionRecord, Settlement } from '../core/records.ts'
import type { Ms } from '../core/units.ts'
import type { Attainment, SeriesKey, SloCatalog } from '../slo/attainment.ts'
import { OTHER } from '../slo/attainment.ts'
import { OfferedDemand } from '../slo/offered.ts'
import { ClassMetrics } from './class-metrics.ts'
import { type BuildFacts, GlobalMetrics } from './global-metrics.ts'
import { type Bounds, boundsWith } from './instruments.ts'
import { METRIC_ROWS, type MetricKey, type MetricRow } from './metric-table.ts'
import type { SamplePorts } from './samples.ts'
import { isWindowKey, windowLines } from './window-lines.ts'

export interface MetricsOptions {
  readonly attainment: Attainment
  readonly ports: SamplePorts
  readonly build: BuildFacts
  /** The quantile that TTFT predictions are made at, as a label value. */
  readonly predictionQuantile: string
  /** Monotonic, in ms. */
  readonly nowMs: () => Ms
}

export type MetricsFormat = 'text' | 'openmetrics'

export const CONTENT_TYPES: Readonly<Record<MetricsFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/** A scrape gives way to traffic after so long, in ms; one piece takes about one more. */
const SLICE_MS: Ms = 1

export class Metrics {
  readonly global: GlobalMetrics
  readonly #options: MetricsOptions
  readonly #demand: OfferedDemand
  readonly #classes = new Map<string, ClassMetrics>()
  #bounds: Bounds = boundsWith([])
  #scrapes = new Map<MetricsFormat, Promise<string>>()

  constructor(options: MetricsOptions) {
    this.#options = options
    this.#demand = new OfferedDemand(options.nowMs())
    this.global = new GlobalMetrics(options.ports, options.build, options.predictionQuantile)
    this.configure(options.attainment.catalog)
  }

  /**
   * Makes a series at 0 for every model, class, product and indicator of the catalog and drops all others. Counters
   * go on, unless a target became another bucket bound: then histograms and counters of all classes start anew.
   */
  configure(catalog: SloCatalog): void {
    const promises = catalog.models.flatMap((model) =>
      catalog.classes.map((className) => ({ model, className, slo: catalog.classFor(className, model) })),
    )
    const bounds = boundsWith(promises.flatMap(({ slo }) => (slo === undefined ? [] : [slo])))
    const sameBounds = JSON.stringify(bounds) === JSON.stringify(this.#bounds)
    this.#bounds = bounds
    const kept = new Map<string, ClassMetrics>()
    for (const { model, className, slo } of promises) {
      const found = this.#classes.get(idOf(model, className))
      const suits = found !== undefined && sameBounds && found.suits(slo)
      const { products } = catalog
      const set = suits ? found : new ClassMetrics({ model, className, slo, products, bounds })
      set.configure(slo, products)
      kept.set(idOf(model, className), set)
    }
    this.#classes.clear()
    for (const [id, set] of kept) this.#classes.set(id, set)
    this.global.configure(catalog.models, catalog.classes)
    this.global.tenants.configure(catalog.tenants ?? [], catalog.tenantShares)
    this.#demand.configure(catalog.models, catalog.classes)
  }

  decided(record: DecisionRecord): void {
    const key = this.#options.attainment.keyOf(record.offer)
    this.#classOf(key).decided(record)
    this.#demand.decided(key.model, key.class, record, this.#options.nowMs())
    if (record.attempt === 2 && record.verdict.kind === 'admit') this.global.rerouted(key.model)
  }

  settled(settlement: Settlement): void {
    const key = this.#options.attainment.keyOf(settlement.offer)
    this.#classOf(key).settled(settlement, key.product)
    this.global.predicted(settlement, key.model)
    if (settlement.oversizedFrames !== undefined) this.global.oversized(settlement.oversizedFrames)
    this.global.tenants.settled(settlement)
    this.#demand.settled(key.model, key.class, settlement, this.#options.nowMs())
  }

  /** The page of all metrics. Scrapes of one format at the same time share one page. */
  scrape(format: MetricsFormat): Promise<string> {
    const running = this.#scrapes.get(format)
    if (running !== undefined) return running
    const scrape = this.#print(format).finally(() => this.#scrapes.delete(format))
    this.#scrapes.set(format, scrape)
    return scrape
  }

  /** What was offered to that model lately; undefined while nobody knows. */
  demandOf(model: string): readonly OfferedStream[] | undefined {
    return this.#demand.of(model, this.#options.nowMs())
  }

  async #print(format: MetricsFormat): Promise<string> {
    const page: string[] = []
    const nowMs = this.#options.nowMs()
    this.global.refresh(nowMs, (model) => this.#demand.of(model, nowMs))
    for (const set of this.#classes.values()) set.refresh()
    let sliceAtMs = performance.now()
    for (const [key, row] of METRIC_ROWS) {
      page.push(header(row, format))
      for (const piece of this.#pieces(key, row)) {
        const lines = await piece()
        if (lines !== '') page.push(lines)
        if (performance.now() - sliceAtMs < SLICE_MS) continue
        await nextTurn()
        sliceAtMs = performance.now()
      }
    }
    return `${page.join('\n')}\n${format === 'openmetrics' ? '# EOF\n' : ''}`
  }

  /** What prints a row: a piece for each registry that has it, or for each series that has windows. */
  *#pieces(key: MetricKey, row: MetricRow): Generator<() => string | Promise<string>> {
    const { attainment, nowMs } = this.#options
    if (isWindowKey(key)) {
      for (const series of attainment.keys()) yield () => windowLines(key, attainment, series, nowMs())
    } else if (row.scope === 'global') {
      yield () => samplesOf(this.global.registry, row.name)
    } else {
      for (const set of this.#classes.values()) yield () => samplesOf(set.registry, row.name)
    }
  }

  #classOf({ model, class: className }: SeriesKey): ClassMetrics {
    const id = idOf(model, className)
    const found = this.#classes.get(id)
    if (found !== undefined) return found
    const slo = this.#options.attainment.catalog.classFor(className, model)
    const made = new ClassMetrics({ model, className, slo, products: [OTHER], bounds: this.#bounds })
    this.#classes.set(id, made)
    return made
  }
}

/** Sample lines of one metric, without its header. */
async function samplesOf(registry: Registry, name: string): Promise<string> {
  const text = await registry.getSingleMetricAsString(name)
  const afterHelp = text.indexOf('\n') + 1
  const afterType = text.indexOf('\n', afterHelp) + 1
  return afterType === 0 ? '' : text.slice(afterType)
}

/** HELP and TYPE; a counter's family has no `_total` in OpenMetrics, its samples have. */
function header({ name, type, help }: MetricRow, format: MetricsFormat): string {
  const family = format === 'openmetrics' && type === 'counter' ? name.replace(/_total$/, '') : name
  const escaped = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return `# HELP ${family} ${escaped}\n# TYPE ${family} ${type}`
}

function idOf(model: string, className: string): string {
  return `${model}\n${className}`
}
