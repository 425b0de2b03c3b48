/** Every metric of Sluice, once: registration, docs, dashboards, rules and tests are made from this table. */
import { SHED_REASONS } from '../core/effects.ts'
import { BOUNCE_CAUSES } from '../core/events.ts'
import { OUTCOMES } from '../core/records.ts'
import { CLASS_METRICS } from './class-metric-rows.ts'
import { GLOBAL_METRICS } from './global-metric-rows.ts'
import type { BoundsName, MetricRow } from './metric-row.ts'

export type { BoundsName, MetricRow, MetricType } from './metric-row.ts'

export const METRICS = { ...CLASS_METRICS, ...GLOBAL_METRICS }

export type MetricKey = keyof typeof METRICS

/** Rows by key, typed loosely enough to walk over. */
export const METRIC_ROWS: ReadonlyArray<readonly [MetricKey, MetricRow]> = (
  Object.keys(METRICS) as MetricKey[]
).map((key) => [key, METRICS[key]] as const)

/** Bounds before class targets are added, in the row's unit. TTFT reaches past 10 s, where overload lives. */
export const BASE_BOUNDS: Readonly<Record<BoundsName, readonly number[]>> = {
  ttft: [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 40, 80, 160],
  tpot: [0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1],
  duration: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640],
  wait: [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  decision: [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05],
  error: [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5],
}

/** Values of the labels that are no names from the file. */
export const LABEL_VALUES = {
  outcome: OUTCOMES,
  reason: SHED_REASONS,
  bounce: BOUNCE_CAUSES,
  replicaState: ['live', 'ramping', 'suspect', 'down', 'draining'],
  trust: ['trusted', 'cautious', 'fallback'],
  direction: ['late', 'early'],
  verdict: ['admit', 'wait', 'shed'],
  kind: ['prompt', 'output'],
  slo: ['good', 'bad', 'excluded'],
} as const
