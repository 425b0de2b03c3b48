/** The pieces that dashboard queries are made of: what the drop-downs choose, rates, shares and quantiles. */
import type { MetricKey } from '../../telemetry/metric-table.ts'
import { anyOf, type Matches, select } from '../promql.ts'
import type { Query, Variable } from './panel.ts'

/** The series of the models and classes that are chosen. */
export const OF_CLASS = { job: anyOf('$job'), model: anyOf('$model'), class: anyOf('$class') } as const
/** The same, and the products. */
export const OF_PRODUCT = { ...OF_CLASS, product: anyOf('$product') } as const
export const OF_MODEL = { job: OF_CLASS.job, model: OF_CLASS.model } as const
export const OF_REPLICA = { job: OF_CLASS.job, replica: anyOf('$replica') } as const
export const OF_JOB = { job: OF_CLASS.job } as const

type HistogramKey = 'ttft' | 'tpot' | 'duration' | 'queueWait' | 'predictionError' | 'decisionDuration'

export function rate<K extends MetricKey>(key: K, matches: Matches<K>, window = '$__rate_interval'): string {
  return `rate(${select(key, matches)}[${window}])`
}

export function sumBy(labels: readonly string[], expr: string): string {
  return labels.length === 0 ? `sum(${expr})` : `sum by (${labels.join(', ')}) (${expr})`
}

/** Share of good ones among judged requests. */
export function attained(by: readonly string[], window: string, sli = 'all'): string {
  const matches = { ...OF_PRODUCT, sli }
  return `${sumBy(by, rate('sloGoodEvents', matches, window))} / (${sumBy(by, rate('sloEvents', matches, window))} > 0)`
}

/** Lines at the quantiles that latencies are told at. */
export function quantiles<K extends HistogramKey>(
  key: K,
  matches: Matches<K>,
  legend = '',
  by: readonly string[] = [],
): readonly Query[] {
  const inner = sumBy(['le', ...by], `rate(${select(key, matches, '_bucket')}[$__rate_interval])`)
  return [0.5, 0.9, 0.99].map((quantile) => ({
    expr: `histogram_quantile(${quantile}, ${inner})`,
    legend: `${legend}p${quantile * 100}`.trim(),
  }))
}

/** How many observations fell between two bounds, for a heatmap. */
export function buckets<K extends HistogramKey>(key: K, matches: Matches<K>): readonly Query[] {
  const expr = `sum by (le) (increase(${select(key, matches, '_bucket')}[$__rate_interval]))`
  return [{ expr, legend: '{{le}}' }]
}

function labelValues<K extends MetricKey>(name: string, label: string, key: K, within: Matches<K>): Variable {
  return { name, label, query: `label_values(${select(key, within)}, ${name})` }
}

export const JOB_VARIABLE = labelValues('job', 'Job', 'buildInfo', {})
export const MODEL_VARIABLE = labelValues('model', 'Model', 'requests', OF_JOB)
export const CLASS_VARIABLE = labelValues('class', 'Class', 'requests', OF_MODEL)
export const PRODUCT_VARIABLE = labelValues('product', 'Product', 'sloEvents', OF_CLASS)
export const REPLICA_VARIABLE = labelValues('replica', 'Replica', 'replicaState', OF_JOB)
