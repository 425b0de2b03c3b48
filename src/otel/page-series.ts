/** Reads our own /metrics page back into series, so that both ways out tell the same numbers. Pure. */
import { METRIC_ROWS, type MetricRow } from '../telemetry/metric-table.ts'

export type Labels = Readonly<Record<string, string>>

/** One series of a counter or gauge. */
export interface PageSeries {
  readonly row: MetricRow
  readonly labels: Labels
  readonly value: number
}

/** One series of a histogram. */
export interface PageHistogram {
  readonly row: MetricRow
  readonly labels: Labels
  /** Upper bounds, without infinity. */
  readonly bounds: readonly number[]
  /** One more than there are bounds; each counts its own bucket alone. */
  readonly counts: readonly number[]
  readonly sum: number
  readonly count: number
}

const SAMPLE = /^(\w+)(?:\{(.*)\})? (\S+)$/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

interface Filling {
  readonly row: MetricRow
  readonly labels: Labels
  readonly bounds: number[]
  readonly counts: number[]
  below: number
  sum: number
}

/** Gathers samples line by line, so that whoever feeds it can give way between two lines. */
export class PageReader {
  readonly series: PageSeries[] = []
  readonly #histograms: PageHistogram[] = []
  #filling: Filling | undefined

  get histograms(): readonly PageHistogram[] {
    return this.#histograms
  }

  /** Comments and what is no finite number of a known metric are passed over. */
  line(text: string): void {
    const match = text.startsWith('#') ? null : SAMPLE.exec(text)
    if (match === null) return
    const [, name = '', labelText = '', valueText = ''] = match
    const value = Number(valueText)
    const found = ROWS.get(name)
    if (found === undefined || !Number.isFinite(value)) return
    if (found.part === 'value') this.series.push({ row: found.row, labels: labelsOf(labelText), value })
    else this.#histogram(found, labelsOf(labelText), value)
  }

  /** A page prints the buckets of a series upwards, then its sum, then its count. */
  #histogram({ row, part }: RowPart, { le, ...labels }: Labels, value: number): void {
    this.#filling ??= { row, labels, bounds: [], counts: [], below: 0, sum: 0 }
    const filling = this.#filling
    if (part === 'bucket') {
      filling.counts.push(value - filling.below)
      filling.below = value
      if (le !== '+Inf') filling.bounds.push(Number(le))
    } else if (part === 'sum') filling.sum = value
    else {
      const { below: _, ...histogram } = filling
      this.#histograms.push({ ...histogram, count: value })
      this.#filling = undefined
    }
  }
}

interface RowPart {
  readonly row: MetricRow
  readonly part: 'value' | 'bucket' | 'sum' | 'count'
}

/** Rows by the names that their samples are printed under. */
const ROWS: ReadonlyMap<string, RowPart> = new Map(
  METRIC_ROWS.flatMap(([, row]): [string, RowPart][] =>
    row.type === 'histogram'
      ? (['bucket', 'sum', 'count'] as const).map((part) => [`${row.name}_${part}`, { row, part }])
      : [[row.name, { row, part: 'value' }]],
  ),
)

function labelsOf(text: string): Labels {
  const labels: Record<string, string> = {}
  for (const [, name = '', value = ''] of text.matchAll(LABEL)) {
    labels[name] = value.includes('\\')
      ? value.replace(/\\(.)/g, (_whole, code: string) => (code === 'n' ? '\n' : code))
      : value
  }
  return labels
}
