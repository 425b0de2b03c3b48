/** Hands the /metrics page to OpenTelemetry's reader as cumulative metrics under the same names. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type HrTime, ValueType } from '@opentelemetry/api'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import type { MetricRow } from '../telemetry/metric-table.ts'
import { type Labels, type PageHistogram, PageReader } from './page-series.ts'
import { hrTimeOf } from './readable-span.ts'

export interface BridgePorts {
  /** The page of all metrics, in Prometheus' text format. */
  page(): Promise<string>
  /** Wall clock in Unix ms. */
  unixMs(): number
}

/** Reading gives way to traffic after so long, in ms. */
const SLICE_MS = 1

/** Units as UCUM has them. */
const UNITS: Readonly<Record<MetricRow['unit'], string>> = {
  requests: '{request}',
  events: '{event}',
  tokens: '{token}',
  bytes: 'By',
  seconds: 's',
  ratio: '1',
  'requests/s': '{request}/s',
  none: '',
  lines: '{line}',
  replicas: '{replica}',
  connections: '{connection}',
}

/** When a cumulative series began, and what it had reached. */
interface Life {
  readonly startMs: number
  readonly reached: number
}

export class MetricBridge implements MetricProducer {
  readonly #ports: BridgePorts
  readonly #scope: { readonly name: string; readonly version: string }
  /** Only of series that the last page had, so it never outgrows a page. */
  #lives: ReadonlyMap<string, Life> = new Map()
  #collectedAtMs: number

  constructor(ports: BridgePorts, scope: { readonly name: string; readonly version: string }) {
    this.#ports = ports
    this.#scope = scope
    this.#collectedAtMs = ports.unixMs()
  }

  async collect(): Promise<CollectionResult> {
    const reader = await readPage(await this.#ports.page())
    const metrics = this.#metricsOf(reader, this.#ports.unixMs())
    const scopeMetrics = [{ scope: this.#scope, metrics }]
    return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] }
  }

  #metricsOf(reader: PageReader, nowMs: number): MetricData[] {
    const lives = new Map<string, Life>()
    const endTime = hrTimeOf(nowMs)
    const startOf = (row: MetricRow, labels: Labels, reached: number): HrTime => {
      const key = `${row.name} ${JSON.stringify(labels)}`
      const life = this.#lives.get(key)
      // A counter that fell was made anew, one that was not there began after the last look.
      const startMs = life !== undefined && life.reached <= reached ? life.startMs : this.#collectedAtMs
      lives.set(key, { startMs, reached })
      return hrTimeOf(startMs)
    }
    const numbers = byRow(reader.series, ({ row, labels, value }) => {
      const startTime = row.type === 'counter' ? startOf(row, labels, value) : endTime
      return { startTime, endTime, attributes: { ...labels }, value }
    })
    const histograms = byRow(reader.histograms, (series) => {
      const startTime = startOf(series.row, series.labels, series.count)
      return { startTime, endTime, attributes: { ...series.labels }, value: histogramOf(series) }
    })
    this.#lives = lives
    this.#collectedAtMs = nowMs
    return [
      ...[...numbers].map(([row, dataPoints]) => numberMetric(row, dataPoints)),
      ...[...histograms].map(([row, dataPoints]) => histogramMetric(row, dataPoints)),
    ]
  }
}

async function readPage(page: string): Promise<PageReader> {
  const reader = new PageReader()
  let sliceAtMs = performance.now()
  for (let at = 0; at < page.length; ) {
    const lineEnd = page.indexOf('\n', at)
    const to = lineEnd < 0 ? page.length : lineEnd
    reader.line(page.slice(at, to))
    at = to + 1
    if (performance.now() - sliceAtMs < SLICE_MS) continue
    await nextTurn()
    sliceAtMs = performance.now()
  }
  return reader
}

function byRow<S extends { readonly row: MetricRow }, P>(
  all: readonly S[],
  pointOf: (series: S) => P,
): Map<MetricRow, P[]> {
  const rows = new Map<MetricRow, P[]>()
  for (const series of all) {
    const points = rows.get(series.row)
    if (points === undefined) rows.set(series.row, [pointOf(series)])
    else points.push(pointOf(series))
  }
  return rows
}

function describe(row: MetricRow) {
  return {
    descriptor: {
      name: row.name,
      description: row.help,
      unit: UNITS[row.unit],
      valueType: ValueType.DOUBLE,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  }
}

function numberMetric(row: MetricRow, dataPoints: DataPoint<number>[]): MetricData {
  if (row.type === 'gauge') return { ...describe(row), dataPointType: DataPointType.GAUGE, dataPoints }
  return { ...describe(row), dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
}

function histogramMetric(row: MetricRow, dataPoints: DataPoint<Histogram>[]): MetricData {
  return { ...describe(row), dataPointType: DataPointType.HISTOGRAM, dataPoints }
}

function histogramOf({ bounds, counts, sum, count }: PageHistogram): Histogram {
  return { buckets: { boundaries: [...bounds], counts: [...counts] }, sum, count }
}
