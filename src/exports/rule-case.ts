/** What a test of rules is told as: what Prometheus saw, and which alerts must then fire. */

/** Values of a series from minute 0 on, one a minute, in promtool's notation. */
export interface InputSeries {
  readonly series: string
  readonly values: string
}

/** One story: what Prometheus saw, and exactly which alerts fire at some minutes of it. */
export interface RuleCase {
  readonly name: string
  readonly input: readonly InputSeries[]
  /** Alerts by name with the labels that tell them apart. */
  readonly firing: ReadonlyArray<readonly [minute: number, alerts: readonly string[]]>
}

/** A running Sluice: without it `SluiceAbsent` would fire in every story. */
export const ALIVE: InputSeries = {
  series: 'sluice_build_info{instance="s1", job="sluice"}',
  values: '1x10000',
}
