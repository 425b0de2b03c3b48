/** The metrics of worker processes; without workers they have no series. */
import type { MetricRow } from './metric-row.ts'

export const WORKER_METRICS = {
  workerUp: {
    name: 'sluice_worker_up',
    type: 'gauge',
    unit: 'none',
    scope: 'global',
    labels: ['worker'],
    help: 'Is the worker linked to the process that decides? Absent with `workers: 1`.',
  },
  workerRestarts: {
    name: 'sluice_worker_restarts_total',
    type: 'counter',
    unit: 'events',
    scope: 'global',
    labels: ['worker'],
    help: 'How often was the worker started anew since the deciding process started?',
  },
  workerRequests: {
    name: 'sluice_worker_requests_total',
    type: 'counter',
    unit: 'requests',
    scope: 'global',
    labels: ['worker'],
    help: 'How many requests did the worker offer to the gate since it started? Shows how the load splits.',
  },
  workerAlone: {
    name: 'sluice_worker_failopen_requests_total',
    type: 'counter',
    unit: 'requests',
    scope: 'global',
    labels: ['worker'],
    help: 'How many requests did the worker route by itself, least outstanding first, since the deciding process was away?',
  },
  workerCpu: {
    name: 'sluice_worker_cpu_seconds_total',
    type: 'counter',
    unit: 'seconds',
    scope: 'global',
    labels: ['worker'],
    help: 'How much CPU time has the worker used since it started?',
  },
  workerMemory: {
    name: 'sluice_worker_resident_memory_bytes',
    type: 'gauge',
    unit: 'bytes',
    scope: 'global',
    labels: ['worker'],
    help: 'How much memory does the worker hold?',
  },
  workerLag: {
    name: 'sluice_worker_event_loop_lag_seconds',
    type: 'gauge',
    unit: 'seconds',
    scope: 'global',
    labels: ['worker'],
    help: "How late did the worker's event loop run since its last looks, as its 99 % quantile? Lag adds to every chunk that it relays.",
  },
} as const satisfies Record<string, MetricRow>
