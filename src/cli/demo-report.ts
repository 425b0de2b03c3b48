/** What the demo has shown so far, as figures: both fleets by phase, and how much of its goodput each keeps. */
import type { SloClass } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { LoadPhase } from '../load/plan.ts'
import { type LoadReport, type PhaseReport, reportLoad } from '../load/report.ts'
import type { Tally } from '../load/tally.ts'
import { DEMO_CLASSES, DEMO_LENGTH_RATIO, DEMO_PROFILE, REPLICAS_PER_FLEET } from './demo-scenario.ts'

/** The share of its goodput at 1x that a protected fleet is to keep at 2x. */
const RETAINED_TARGET_RATIO: Ratio = 0.8

export type FleetName = 'bare' | 'sluice'

export interface DemoReport {
  readonly profile: string
  readonly replicasPerFleet: number
  readonly lengthRatio: Ratio
  readonly seed: number
  /** 1x in requests/s, and what the fleet completes when its queues never empty. */
  readonly capacityPerSec: number
  readonly saturatedPerSec: number
  readonly classes: Readonly<Record<string, SloClass>>
  readonly fleets: Readonly<Record<FleetName, LoadReport>>
  /** Goodput at 2x over goodput at 1x; absent until both phases have been. */
  readonly retainedRatio: Readonly<Partial<Record<FleetName, Ratio>>>
  readonly retainedTargetRatio: Ratio
  readonly loopLagP99Ms: Ms
  readonly valid: boolean
}

export interface DemoFacts {
  readonly seed: number
  readonly capacityPerSec: number
  readonly saturatedPerSec: number
  /** As long as each phase has really lasted, all ramps together. */
  readonly phases: readonly LoadPhase[]
  readonly tallies: Readonly<Record<FleetName, Tally>>
  readonly loopLagP99Ms: Ms
}

/** Sums the demo up. */
export function reportDemo(facts: DemoFacts): DemoReport {
  const { seed, capacityPerSec, saturatedPerSec, phases, tallies, loopLagP99Ms } = facts
  const bare = reportLoad(tallies.bare, phases, loopLagP99Ms)
  const sluice = reportLoad(tallies.sluice, phases, loopLagP99Ms)
  return {
    profile: DEMO_PROFILE,
    replicasPerFleet: REPLICAS_PER_FLEET,
    lengthRatio: DEMO_LENGTH_RATIO,
    seed,
    capacityPerSec,
    saturatedPerSec,
    classes: DEMO_CLASSES,
    fleets: { bare, sluice },
    retainedRatio: { ...retained('bare', bare), ...retained('sluice', sluice) },
    retainedTargetRatio: RETAINED_TARGET_RATIO,
    loopLagP99Ms,
    valid: bare.valid,
  }
}

/** Adds up how long each phase has lasted: `ramps` whole ones and `elapsedMs` of another. */
export function lastedPhases(
  phases: readonly LoadPhase[],
  ramps: number,
  elapsedMs: Ms,
): readonly LoadPhase[] {
  let startMs = 0
  return phases.map((phase) => {
    const partMs = Math.min(Math.max(elapsedMs - startMs, 0), phase.durationMs)
    startMs += phase.durationMs
    return { ...phase, durationMs: ramps * phase.durationMs + partMs }
  })
}

function retained(name: FleetName, { phases }: LoadReport): Partial<Record<FleetName, Ratio>> {
  const named = (phase: string): PhaseReport | undefined => phases.find((each) => each.name === phase)
  const [once, twice] = [named('1x'), named('2x')]
  if (once === undefined || twice === undefined || once.goodPerSec === 0) return {}
  return { [name]: twice.goodPerSec / once.goodPerSec }
}
