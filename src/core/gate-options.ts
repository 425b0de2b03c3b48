/** What a gate is made from and the totals that it keeps. */
import type { GateSettings } from './gate-settings.ts'
import type { Judge } from './records.ts'
import type { Scheduler } from './scheduler.ts'

export interface GateOptions {
  readonly settings: GateSettings
  /** Decides. */
  readonly scheduler: Scheduler
  /** Learns and says what it would have done, but decides nothing: shadow mode. */
  readonly advisor?: Scheduler
  readonly judge: Judge
}

/** Running totals: offered = shed + cancelled + failed + waiting + in flight + settled. */
export interface GateCounts {
  offered: number
  shed: number
  cancelled: number
  failed: number
  /** Permits given, reroutes included. */
  dispatched: number
  bounced: number
  rerouted: number
  settled: number
}

/** Totals of a gate that has seen nothing. */
export function zeroCounts(): GateCounts {
  return {
    offered: 0,
    shed: 0,
    cancelled: 0,
    failed: 0,
    dispatched: 0,
    bounced: 0,
    rerouted: 0,
    settled: 0,
  }
}
