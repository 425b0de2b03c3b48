/** Orders waiting jobs by slack and drops the costliest for their worth when the plan would run late. */
import type { Ms } from '../../core/units.ts'
import {
  firstTokenAtMs,
  type PlannedWork,
  place,
  type VirtualReplica,
  type VirtualStart,
  virtualReplica,
} from './virtual-replica.ts'

/** What a job would take on one replica. */
export interface PlannedOption extends PlannedWork {
  /** Index of the replica. */
  readonly replica: number
}

/** What the plan needs to know of a job. */
export interface PlanJob<T> {
  readonly job: T
  /** Latest first token, absolute. */
  readonly deadlineAtMs: Ms
  readonly value: number
  /** Where it may go. */
  readonly options: readonly PlannedOption[]
}

export interface Placed<T> {
  readonly job: T
  /** Index of its replica. */
  readonly replica: number
  readonly firstTokenAtMs: Ms
}

export interface JobPlan<T> {
  /** Jobs that make it, in the order in which they should go. */
  readonly kept: readonly Placed<T>[]
  /** Jobs given up, with the first token that they would have had. */
  readonly dropped: readonly Placed<T>[]
}

interface Entry<T> {
  readonly planned: PlanJob<T>
  readonly option: PlannedOption
  /** Its place in the order that was given. */
  readonly rank: number
  firstTokenAtMs: Ms
}

interface Machine<T> {
  readonly start: VirtualStart
  virtual: VirtualReplica
  entries: Entry<T>[]
  /** How much of a slot's time counts as cost: 1/slots where slots bind, else 0. */
  readonly slotShare: number
}

/**
 * Places jobs, given in order of least slack, each where its first token comes soonest. When one would be late, the
 * job with the largest cost per value among those on that replica is dropped until none is late: Moore and Hodgson's
 * rule, optimal for the number of late jobs on one machine with equal values, a heuristic on several.
 */
export function mooreHodgson<T>(jobs: readonly PlanJob<T>[], starts: readonly VirtualStart[]): JobPlan<T> {
  const machines = starts.map((start): Machine<T> => {
    const slotShare = start.slotsFreeAtMs === undefined ? 0 : 1 / Math.max(1, start.slotsFreeAtMs.length)
    return { start, virtual: virtualReplica(start), entries: [], slotShare }
  })
  const dropped: Placed<T>[] = []
  for (const [rank, planned] of jobs.entries()) {
    const option = soonest(planned, machines)
    const machine = option === undefined ? undefined : machines[option.replica]
    if (option === undefined || machine === undefined) continue
    // Whoever would be late there even alone makes nobody else go.
    if (firstTokenAtMs(machine.start, option) > planned.deadlineAtMs) {
      const atMs = firstTokenAtMs(machine.virtual, option)
      dropped.push({ job: planned.job, replica: option.replica, firstTokenAtMs: atMs })
      continue
    }
    const atMs = place(machine.virtual, option)
    machine.entries.push({ planned, option, rank, firstTokenAtMs: atMs })
    if (atMs > planned.deadlineAtMs) dropUntilNoneLate(machine, dropped)
  }
  const kept = machines.flatMap(({ entries }) => entries).sort((a, b) => a.rank - b.rank)
  return { kept: kept.map(placed), dropped }
}

function placed<T>({ planned, option, firstTokenAtMs: atMs }: Entry<T>): Placed<T> {
  return { job: planned.job, replica: option.replica, firstTokenAtMs: atMs }
}

function soonest<T>({ options }: PlanJob<T>, machines: readonly Machine<T>[]): PlannedOption | undefined {
  let best: PlannedOption | undefined
  let bestAtMs = Number.POSITIVE_INFINITY
  for (const option of options) {
    const machine = machines[option.replica]
    if (machine === undefined) continue
    const atMs = firstTokenAtMs(machine.virtual, option)
    if (atMs < bestAtMs) {
      best = option
      bestAtMs = atMs
    }
  }
  return best
}

function dropUntilNoneLate<T>(machine: Machine<T>, dropped: Placed<T>[]): void {
  while (machine.entries.some((entry) => entry.firstTokenAtMs > entry.planned.deadlineAtMs)) {
    const [gone] = machine.entries.splice(costliest(machine), 1)
    if (gone === undefined) return
    dropped.push(placed(gone))
    machine.virtual = virtualReplica(machine.start)
    for (const entry of machine.entries) entry.firstTokenAtMs = place(machine.virtual, entry.option)
  }
}

function costliest<T>({ entries, slotShare }: Machine<T>): number {
  let worst = 0
  let worstRatio = Number.NEGATIVE_INFINITY
  entries.forEach(({ planned, option }, position) => {
    const ratio = (option.prefillMs + option.pauseMs + slotShare * option.residenceMs) / planned.value
    if (ratio >= worstRatio) {
      worst = position
      worstRatio = ratio
    }
  })
  return worst
}
