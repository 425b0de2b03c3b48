/** What a virtual run is made of and what it leaves behind. */
import type { GateEffect } from '../core/effects.ts'
import type { GateCounts } from '../core/gate-options.ts'
import type { GateSettings } from '../core/gate-settings.ts'
import type { Settlement } from '../core/records.ts'
import type { SloClass } from '../core/request.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { EngineGauges, EngineOptions } from './engine-types.ts'
import type { WorkloadRequest } from './workload-types.ts'

/** One simulated engine and what befalls it. */
export interface SimReplica {
  readonly engine: EngineOptions
  /** From then on the process is gone: open streams break, new connections are refused. */
  readonly diesAtMs?: Ms
  /** A new, empty process answers from then on. */
  readonly revivesAtMs?: Ms
  /** From then on its metrics page no longer changes the gate's view. */
  readonly metricsFrozenAtMs?: Ms
}

export interface SimOptions {
  readonly replicas: readonly SimReplica[]
  /** In order of arrival. */
  readonly requests: Iterable<WorkloadRequest>
  /** Makes the scheduler under test; asked once per instance. */
  readonly createScheduler: () => Scheduler
  /** Default: `WORKLOAD_CLASSES`. A request of an unknown class throws. */
  readonly classes?: Readonly<Record<string, SloClass>>
  readonly settings?: Partial<GateSettings>
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
  /** Clients leave when no token has come that long after they sent; default: never. */
  readonly patienceMs?: Ms
  /** Whether the gate is told the engine's limits; default true. */
  readonly limitsKnown?: boolean
  /** What still runs or waits that long after the last arrival is left by its client; default 600 s. */
  readonly drainMs?: Ms
  /** Whether the gate hears of decode progress, default true; only a scheduler that learns nothing can do without. */
  readonly reportsProgress?: boolean
  /** Sees every effect, e.g. to keep decision records. */
  readonly onEffect?: (effect: GateEffect, nowMs: Ms) => void
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
