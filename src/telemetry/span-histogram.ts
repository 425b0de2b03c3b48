/** A histogram for what is observed several times with every request: prom-client looks labels and buckets up each time. */
import type { MetricValueWithName, Registry } from 'prom-client'

type LabelValues = Readonly<Record<string, string>>

/** Takes observations of one series. */
export interface BoundHistogram {
  /** `value` in the unit of the bounds. Throws a RangeError when it is not finite, a caller's bug. */
  observe(value: number): void
}

/** The series of one set of labels. */
class Cell implements BoundHistogram {
  readonly labels: LabelValues
  /** By bound, without those of the bounds below; the last is for what lies above all of them. */
  readonly counts: Float64Array
  sum = 0
  readonly #bounds: readonly number[]

  constructor(labels: LabelValues, bounds: readonly number[]) {
    this.labels = labels
    this.counts = new Float64Array(bounds.length + 1)
    this.#bounds = bounds
  }

  observe(value: number): void {
    if (!Number.isFinite(value)) throw new RangeError(`a histogram observes finite numbers, got ${value}`)
    let bucket = 0
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] ?? 0)) bucket += 1
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
    this.sum += value
  }
}

interface PrintedValue extends MetricValueWithName<string> {
  readonly sharedLabels: LabelValues
}

/** What the registry prints. */
interface PrintedHistogram {
  readonly name: string
  readonly help: string
  readonly type: 'histogram'
  readonly values: readonly PrintedValue[]
}

interface SpanHistogramOptions {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  /** Upper ends of the buckets, rising. */
  readonly bounds: readonly number[]
}

export class SpanHistogram {
  readonly name: string
  readonly #help: string
  readonly #labelNames: readonly string[]
  readonly #bounds: readonly number[]
  readonly #cells = new Map<string, Cell>()

  constructor({ name, help, labelNames, bounds }: SpanHistogramOptions, registry: Registry) {
    this.name = name
    this.#help = help
    this.#labelNames = labelNames
    this.#bounds = bounds
    if (labelNames.length === 0) this.labels({})
    // Its types know the library's own classes only; what it calls is `getForPromString`.
    registry.registerMetric(this as never)
  }

  /** The series of those labels, to be kept by whoever observes: made at 0 if it is not there. */
  labels(labels: LabelValues): BoundHistogram {
    const key = this.#labelNames.map((name) => labels[name] ?? '').join('\n')
    const cell = this.#cells.get(key) ?? new Cell(labels, this.#bounds)
    this.#cells.set(key, cell)
    return cell
  }

  /** Forgets all series; whoever holds one observes into nothing. */
  reset(): void {
    this.#cells.clear()
  }

  /** All series as the registry prints them: it formats shared labels once for each object that it is given. */
  async getForPromString(): Promise<PrintedHistogram> {
    const values = [...this.#cells.values()].flatMap((cell) => this.#valuesOf(cell))
    return { name: this.name, help: this.#help, type: 'histogram', values }
  }

  #valuesOf({ labels: sharedLabels, counts, sum }: Cell): PrintedValue[] {
    let count = 0
    const values: PrintedValue[] = [...this.#bounds, '+Inf'].map((le, bucket) => {
      count += counts[bucket] ?? 0
      return { metricName: `${this.name}_bucket`, labels: { le }, sharedLabels, value: count }
    })
    values.push({ metricName: `${this.name}_sum`, labels: {}, sharedLabels, value: sum })
    values.push({ metricName: `${this.name}_count`, labels: {}, sharedLabels, value: count })
    return values
  }
}
