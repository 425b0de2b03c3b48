/** The outcome of a load run as plain figures, by phase and class. */
import type { Ms } from '../core/units.ts'
import { VALID_LOOP_LAG_P99_MS } from './loop-lag.ts'
import type { LoadPhase } from './plan.ts'
import type { GroupSummary, Tally } from './tally.ts'

export interface PhaseReport extends LoadPhase {
  /** Good requests among those that arrived in this phase, by its length. */
  readonly goodPerSec: number
  readonly offeredPerSec: number
  readonly all: GroupSummary
  /** Classes with targets only. */
  readonly promised: GroupSummary
  readonly classes: Readonly<Record<string, GroupSummary>>
}

export interface LoadReport {
  readonly phases: readonly PhaseReport[]
  readonly all: GroupSummary
  /** Classes with targets only. */
  readonly promised: GroupSummary
  readonly classes: Readonly<Record<string, GroupSummary>>
  /** How late the client's own loop ran; above the limit its figures say more of itself than of the server. */
  readonly loopLagP99Ms: Ms
  readonly valid: boolean
}

/** Sums a run up. `elapsedMs` (default: all of them) says how far into the phases it came. */
export function reportLoad(
  tally: Tally,
  phases: readonly LoadPhase[],
  loopLagP99Ms: Ms,
  elapsedMs: Ms = Number.POSITIVE_INFINITY,
): LoadReport {
  let startMs = 0
  const reports: PhaseReport[] = []
  for (const phase of phases) {
    const durationMs = Math.min(phase.durationMs, elapsedMs - startMs)
    startMs += phase.durationMs
    if (durationMs > 0) reports.push(phaseReport(tally, { ...phase, durationMs }))
  }
  return {
    phases: reports,
    all: tally.summary(),
    promised: tally.summary({ promised: true }),
    classes: byClass(tally),
    loopLagP99Ms,
    valid: loopLagP99Ms <= VALID_LOOP_LAG_P99_MS,
  }
}

function phaseReport(tally: Tally, phase: LoadPhase): PhaseReport {
  const all = tally.summary({ phase: phase.name })
  const seconds = phase.durationMs / 1000
  return {
    ...phase,
    goodPerSec: all.goodRequests / seconds,
    offeredPerSec: all.offeredRequests / seconds,
    all,
    promised: tally.summary({ phase: phase.name, promised: true }),
    classes: byClass(tally, phase.name),
  }
}

function byClass(tally: Tally, phase?: string): Record<string, GroupSummary> {
  const choice = phase === undefined ? {} : { phase }
  return Object.fromEntries(
    tally.classes().map((className) => [className, tally.summary({ ...choice, className })]),
  )
}
