/** What a row of the metric table says. */

export type MetricType = 'counter' | 'gauge' | 'histogram'

/** Which histogram bounds a row has; `ttft`, `tpot` and `duration` also get each class target as a bound. */
export type BoundsName = 'ttft' | 'tpot' | 'duration' | 'wait' | 'decision' | 'error'

export interface MetricRow {
  readonly name: string
  readonly type: MetricType
  readonly unit:
    | 'requests'
    | 'events'
    | 'tokens'
    | 'bytes'
    | 'seconds'
    | 'ratio'
    | 'requests/s'
    | 'none'
    | 'lines'
    | 'replicas'
    | 'connections'
  readonly labels: readonly string[]
  /** The question that it answers; shown as HELP and in the docs. */
  readonly help: string
  readonly bounds?: BoundsName
  /**
   * `class`: one set per model and class, gone when either leaves the file. `window`: read off the rolling windows
   * when scraped. `global`: one set for all.
   */
  readonly scope: 'class' | 'window' | 'global'
}
