/** Makes prom-client instruments from rows of the table, each set in a registry of its own. */
import { Counter, Gauge, Registry } from 'prom-client'
import type { SloClass } from '../core/request.ts'
import {
  BASE_BOUNDS,
  type BoundsName,
  METRIC_ROWS,
  type METRICS,
  type MetricKey,
  type MetricRow,
} from './metric-table.ts'
import { type BoundHistogram, SpanHistogram } from './span-histogram.ts'

type InstrumentOf<K extends MetricKey> = (typeof METRICS)[K]['type'] extends 'counter'
  ? Counter
  : (typeof METRICS)[K]['type'] extends 'gauge'
    ? Gauge
    : SpanHistogram

type KeysOf<Scope extends MetricRow['scope']> = {
  [K in MetricKey]: (typeof METRICS)[K]['scope'] extends Scope ? K : never
}[MetricKey]

export type ClassKey = KeysOf<'class'>
export type GlobalKey = KeysOf<'global'>

export type Instruments<K extends MetricKey> = { readonly [Key in K]: InstrumentOf<Key> }

export type Bounds = Readonly<Record<BoundsName, readonly number[]>>

/** One set of instruments with the registry that prints them. */
export interface InstrumentSet<K extends MetricKey> {
  readonly registry: Registry
  readonly on: Instruments<K>
}

export function classInstruments(bounds: Bounds): InstrumentSet<ClassKey> {
  return instruments('class', bounds) as InstrumentSet<ClassKey>
}

export function globalInstruments(bounds: Bounds): InstrumentSet<GlobalKey> {
  return instruments('global', bounds) as InstrumentSet<GlobalKey>
}

function instruments(scope: MetricRow['scope'], bounds: Bounds): InstrumentSet<MetricKey> {
  const registry = new Registry()
  const made = METRIC_ROWS.filter(([, row]) => row.scope === scope).map(([key, row]) => {
    return [key, instrument(row, bounds, registry)] as const
  })
  return { registry, on: Object.fromEntries(made) as unknown as Instruments<MetricKey> }
}

function instrument(row: MetricRow, bounds: Bounds, registry: Registry): Counter | Gauge | SpanHistogram {
  const shared = { name: row.name, help: row.help, labelNames: [...row.labels], registers: [registry] }
  switch (row.type) {
    case 'counter':
      return new Counter(shared)
    case 'gauge':
      return new Gauge(shared)
    case 'histogram':
      return new SpanHistogram(
        {
          name: row.name,
          help: row.help,
          labelNames: row.labels,
          bounds: row.bounds === undefined ? [] : bounds[row.bounds],
        },
        registry,
      )
    default:
      return row.type satisfies never
  }
}

/** The base bounds with each target of the classes in seconds, so that a threshold is always a bound. */
export function boundsWith(classes: readonly SloClass[]): Bounds {
  const targets = (of: (slo: SloClass) => number | undefined): number[] =>
    classes.flatMap((slo) => {
      const targetMs = of(slo)
      return targetMs === undefined || !(targetMs > 0) ? [] : [Math.round(targetMs * 1000) / 1e6]
    })
  const merged = (base: readonly number[], more: readonly number[]): number[] =>
    [...new Set([...base, ...more])].sort((a, b) => a - b)
  return {
    ...BASE_BOUNDS,
    ttft: merged(
      BASE_BOUNDS.ttft,
      targets((slo) => slo.ttftMs),
    ),
    tpot: merged(
      BASE_BOUNDS.tpot,
      targets((slo) => slo.tpotMs),
    ),
    duration: merged(
      BASE_BOUNDS.duration,
      targets((slo) => slo.e2eMs),
    ),
  }
}

/** Observes a span of `valueMs` in seconds; what is no finite number is left out. */
export function observeSeconds(span: BoundHistogram, valueMs: number | undefined): void {
  if (valueMs !== undefined && Number.isFinite(valueMs)) span.observe(Math.max(0, valueMs) / 1000)
}

/** Sets a gauge, or takes its series away when there is no finite value to show. */
export function setOrRemove(
  gauge: Gauge,
  labels: Readonly<Record<string, string>>,
  value: number | undefined,
): void {
  if (value !== undefined && Number.isFinite(value)) gauge.set({ ...labels }, value)
  else gauge.remove({ ...labels })
}
