/** What a virtual run is made of and what it leaves behind. */
import type { GateEffect } from '../core/effects.ts'
import type { GateCounts } from '../core/gate-options.ts'
import type { GateSettings } from '../core/gate-settings.ts'
import type { Settlement } from '../core/records.ts'
import type { PoolId, SloClass } from '../core/request.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { EngineGauges, ReplicaEngineOptions } from './engine-types.ts'
import type { Fault } from './faults.ts'
import type { WorkloadRequest } from './workload-types.ts'

/** One simulated replica. */
export interface SimReplica {
  readonly engine: ReplicaEngineOptions
  /** The model that it serves; default: the one that requests ask for when they name none. */
  readonly pool?: PoolId
}

export interface SimOptions {
  readonly replicas: readonly SimReplica[]
  /** In order of arrival. */
  readonly requests: Iterable<WorkloadRequest>
  /** Makes the scheduler under test; asked once per instance. */
  readonly createScheduler: () => Scheduler
  /** Default: `WORKLOAD_CLASSES`. A request of an unknown class throws. */
  readonly classes?: Readonly<Record<string, SloClass>>
  /** In place of `classes`, where promises differ by model. */
  readonly classFor?: (className: string, pool: PoolId) => SloClass | undefined
  readonly settings?: Partial<GateSettings>
  /** What goes wrong; `estimatorBias` is up to `createScheduler` (see `biasedPrior`). */
  readonly faults?: readonly Fault[]
  /** Sluices that share the engines, each with every k-th request; default 1. */
  readonly instances?: number
  readonly seed?: number
  /** Round trip between Sluice and engine, charged on the way in; default 0. */
  readonly networkMs?: Ms
  /** How often and how late engine gauges reach the gate; default 500 and 0. */
  readonly metricsPeriodMs?: Ms
  readonly metricsLagMs?: Ms
  /** How long a dead replica still counts as live, default 1000. */
  readonly deathNoticeMs?: Ms
  /** Deviation of the gate's prompt estimate (log-normal); default 0: exact. */
  readonly promptErrorRatio?: Ratio
  /** Whether the gate is told the engine's limits; default true. */
  readonly limitsKnown?: boolean
  /** From then on no client comes back and no session goes on; default: never. */
  readonly closesAtMs?: Ms
  /** What is still open that long after the last arrival (and after `closesAtMs`) is left by its client; default 600 s. */
  readonly drainMs?: Ms
  /** Whether the gate hears of decode progress, default true; only a scheduler that learns nothing can do without. */
  readonly reportsProgress?: boolean
  /** Sees every effect, e.g. to keep decision records. */
  readonly onEffect?: (effect: GateEffect, nowMs: Ms) => void
  /** Takes each outcome as its request ends; the result then holds none, so that a long run needs little memory. */
  readonly onOutcome?: (outcome: SimOutcome) => void
}

/** A settled request with what it cost. */
export interface SimOutcome {
  readonly settlement: Settlement
  /** Engine time spent on it over all attempts. */
  readonly engineMs: Ms
}

export interface SimResult {
  readonly schedulerName: string
  readonly outcomes: readonly SimOutcome[]
  readonly counts: readonly GateCounts[]
  /** Of each replica, summed over its lives. */
  readonly engines: readonly EngineGauges[]
  readonly endedAtMs: Ms
}
