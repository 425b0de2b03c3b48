/** Prints the gauges that are read off the rolling windows, straight as text: there are too many to register each. */
import type { Ms } from '../core/units.ts'
import { type Attainment, type SeriesKey, slisOf } from '../slo/attainment.ts'
import { burnRate } from '../slo/burn-rate.ts'
import { METRICS, type MetricKey } from './metric-table.ts'

const WINDOW_KEYS = ['sloAttainment', 'sloBurnRate', 'sloBudget', 'goodput'] as const
export type WindowKey = (typeof WINDOW_KEYS)[number]

export function isWindowKey(key: MetricKey): key is WindowKey {
  return (WINDOW_KEYS as readonly MetricKey[]).includes(key)
}

/** Sample lines of one metric for one series; empty when there is nothing to show. */
export function windowLines(key: WindowKey, attainment: Attainment, series: SeriesKey, nowMs: Ms): string {
  const { name } = METRICS[key]
  const labels = `model="${escaped(series.model)}",class="${escaped(series.class)}",product="${escaped(series.product)}"`
  if (key === 'goodput') return line(name, labels, attainment.goodputRequestsPerSec(series, '5m', nowMs))
  if (key === 'sloBudget') return line(name, labels, attainment.budgetRemainingRatio(series, nowMs))
  const slo = attainment.catalog.classFor(series.class, series.model)
  const lines: string[] = []
  for (const { name: window } of attainment.windows) {
    for (const sli of slo === undefined ? [] : slisOf(slo)) {
      const { good, bad } = attainment.share(series, sli, window, nowMs)
      if (good + bad === 0) continue
      const value = key === 'sloBurnRate' ? burnRate(good, bad, slo?.objectiveRatio) : good / (good + bad)
      lines.push(line(name, `${labels},sli="${sli}",window="${window}"`, value))
    }
  }
  return lines.filter((text) => text !== '').join('\n')
}

function line(name: string, labels: string, value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return ''
  const shown = Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
  return `${name}{${labels}} ${shown}`
}

/** A label value as the text format wants it. */
function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
