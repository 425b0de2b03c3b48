/** What a panel of a dashboard shows, before it becomes Grafana's JSON. */

/** Units by Grafana's names. */
export type Unit = 'short' | 's' | 'percentunit' | 'reqps' | 'none' | 'decbytes' | 'cps'

export interface Query {
  readonly expr: string
  /** With `{{label}}` for a label's value. */
  readonly legend: string
}

/** A colour from a value on. */
export interface Threshold {
  readonly from: number
  readonly color: 'green' | 'yellow' | 'red'
}

export interface Panel {
  readonly title: string
  /** What to read out of it; shown at the panel's corner. */
  readonly description: string
  readonly kind: 'lines' | 'stack' | 'number' | 'heatmap' | 'states'
  readonly unit: Unit
  readonly queries: readonly Query[]
  /** Of 24 columns; default 8. */
  readonly width?: number
  readonly min?: number
  readonly max?: number
  readonly thresholds?: readonly Threshold[]
  /** Words for values, for `states`. */
  readonly words?: ReadonlyArray<{ readonly value: number; readonly text: string; readonly color: string }>
}

export interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
}

/** A drop-down whose values are those of a label. */
export interface Variable {
  readonly name: string
  readonly label: string
  /** A query of Grafana's Prometheus source, e.g. `label_values(metric, label)`. */
  readonly query: string
}

export interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly variables: readonly Variable[]
  readonly rows: readonly Row[]
}
