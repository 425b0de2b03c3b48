/** The metrics by which fleets are sized, balanced and switched on: replicas wanted, an estimate, a weight. */
import type { MetricRow } from './metric-row.ts'

export const STEERING_METRICS = {
  desiredReplicas: {
    name: 'sluice_desired_replicas',
    type: 'gauge',
    unit: 'replicas',
    scope: 'global',
    labels: ['model'],
    help: 'How many replicas would keep the objectives at what was offered to this Sluice in the last 5 minutes? A fraction: sum it over Sluices, then round up. Absent while trust is fallback.',
  },
  shadowEstimate: {
    name: 'sluice_shadow_estimate_ratio',
    type: 'gauge',
    unit: 'ratio',
    scope: 'global',
    labels: ['model', 'class', 'mode'],
    help: 'An estimate by simulation of the last minutes, in shadow mode only: which share of requests would be good with mode="enforce"? mode="shadow" simulates what was done: its distance from what was measured tells how far to trust it.',
  },
  upstreamWeight: {
    name: 'sluice_upstream_weight_ratio',
    type: 'gauge',
    unit: 'ratio',
    scope: 'global',
    labels: [],
    help: 'How much of its usual share should load balancers send here? 1 unless the fleet can carry less than is offered; never below 0.1.',
  },
} as const satisfies Record<string, MetricRow>
