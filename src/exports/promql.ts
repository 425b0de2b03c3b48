/** Writes PromQL over the metric table, so that a name or a label that does not exist can't be written. */
import type { Ms } from '../core/units.ts'
import { METRICS, type MetricKey } from '../telemetry/metric-table.ts'

/** Labels that Prometheus puts on every series of a target. */
export const TARGET_LABELS = ['job', 'instance'] as const

type LabelOf<K extends MetricKey> = (typeof METRICS)[K]['labels'][number] | (typeof TARGET_LABELS)[number]

/** A label's wanted value; a plain string is compared as it stands. */
export type Match = string | { readonly op: '=~' | '!~' | '!='; readonly value: string }
export type Matches<K extends MetricKey> = { readonly [Label in LabelOf<K>]?: Match }

/** Any of the values that the regular expression matches; also for a dashboard's variables. */
export function anyOf(value: string): Match {
  return { op: '=~', value }
}

export function noneOf(value: string): Match {
  return { op: '!~', value }
}

/** `name{label="value",…}`; `part` is for one of the series that a histogram is made of. */
export function select<K extends MetricKey>(
  key: K,
  matches: Matches<K> = {},
  part: '' | '_bucket' | '_sum' | '_count' = '',
): string {
  return `${METRICS[key].name}${part}${braced(matches)}`
}

/** Matchers in braces; nothing where there are none. */
export function braced(matches: Readonly<Record<string, Match | undefined>>): string {
  const written = Object.entries(matches).flatMap(([label, match]) => {
    if (match === undefined) return []
    return typeof match === 'string'
      ? [`${label}=${JSON.stringify(match)}`]
      : [`${label}${match.op}${JSON.stringify(match.value)}`]
  })
  return written.length === 0 ? '' : `{${written.join(', ')}}`
}

const UNITS: ReadonlyArray<readonly [unit: string, ms: Ms]> = [
  ['w', 7 * 86_400_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
]

/** A duration as Prometheus prints it: the largest unit that divides it, e.g. `30d`, `4w`, `90m`. Whole seconds only. */
export function promDuration(durationMs: Ms): string {
  const found = UNITS.find(([, unitMs]) => durationMs >= unitMs && durationMs % unitMs === 0)
  if (found === undefined) throw new RangeError(`${durationMs} ms is no duration in whole seconds`)
  return `${durationMs / found[1]}${found[0]}`
}

/** A number without the noise of its binary form. */
export function plainNumber(value: number): string {
  return String(Number(value.toPrecision(6)))
}
