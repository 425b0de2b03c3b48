/** All metrics together: counts what happens and prints it, a slice at a time so that traffic never waits for a scrape. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { OfferedStream } from '../core/demand.ts'
import { takesWork } from '../core/eligible.ts'
import type { DecisionRecord, Settlement } from '../core/records.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { Attainment, SeriesKey, SloCatalog } from '../slo/attainment.ts'
import { OTHER } from '../slo/attainment.ts'
import { OfferedDemand } from '../slo/offered.ts'
import { type Headroom, headroomRatio } from '../slo/upstream-weight.ts'
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

export type Page = Buffer<ArrayBuffer>

/** A part of a page, or work that leaves none. */
type Piece = () => string | undefined | Promise<string>

/** A scrape gives way to traffic after so long, in ms; one piece takes about one more. */
const SLICE_MS: Ms = 1

export class Metrics {
  readonly global: GlobalMetrics
  readonly #options: MetricsOptions
  readonly #demand: OfferedDemand
  readonly #classes = new Map<string, ClassMetrics>()
  #bounds: Bounds = boundsWith([])
  readonly #scrapes = new Map<MetricsFormat, Promise<Page>>()

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

  /** What the fleet can carry over what is offered to it; undefined while nobody knows. */
  headroomRatio(): Ratio | undefined {
    const { ports, attainment } = this.#options
    const nowMs = this.#options.nowMs()
    const takers = ports.replicas().filter(takesWork)
    const models = attainment.catalog.models.flatMap((model): Headroom[] => {
      const demand = this.#demand.of(model, nowMs) ?? []
      const requestsPerSec = demand.reduce((sum, stream) => sum + stream.requestsPerSec, 0)
      const live = takers.filter(({ models: served }) => served.includes(model)).length
      if (live === 0) return [{ requestsPerSec, ratio: 0 }]
      const wanted = demand.length === 0 ? undefined : ports.replicasWanted(model, demand)
      const share = live / (ports.instances?.() ?? 1)
      return wanted === undefined || !(wanted > 0) ? [] : [{ requestsPerSec, ratio: share / wanted }]
    })
    return headroomRatio(models)
  }

  /** The page of all metrics in UTF-8. Scrapes of one format at the same time share one page. */
  scrape(format: MetricsFormat): Promise<Page> {
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

  async #print(format: MetricsFormat): Promise<Page> {
    const nowMs = this.#options.nowMs()
    const page: Page[] = []
    let lines: string[] = []
    let sliceAtMs = performance.now()
    for (const piece of this.#work(format, nowMs)) {
      const text = await piece()
      if (text !== undefined && text !== '') lines.push(text)
      if (performance.now() - sliceAtMs < SLICE_MS) continue
      page.push(encoded(lines))
      lines = []
      await nextTurn()
      sliceAtMs = performance.now()
    }
    if (format === 'openmetrics') lines.push('# EOF')
    page.push(encoded(lines))
    return Buffer.concat(page)
  }

  /** Brings everything up to date, then prints it row by row. */
  *#work(format: MetricsFormat, nowMs: Ms): Generator<Piece> {
    for (const step of this.global.refreshing(nowMs, (model) => this.#demand.of(model, nowMs)))
      yield () => void step()
    for (const set of this.#classes.values()) yield () => void set.refresh()
    for (const [key, row] of METRIC_ROWS) {
      yield () => header(row, format)
      yield* this.#pieces(key, row)
    }
  }

  /** What prints a row: a piece for each registry that has it, or for each series that has windows. */
  *#pieces(key: MetricKey, row: MetricRow): Generator<Piece> {
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

/** Lines with their ends; encoded slice by slice, since a whole page takes milliseconds. */
function encoded(lines: readonly string[]): Page {
  return Buffer.from(lines.length === 0 ? '' : `${lines.join('\n')}\n`)
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
