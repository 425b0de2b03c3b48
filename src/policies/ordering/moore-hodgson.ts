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

/** What the plan needs to know of a job; `work[i]` is what it takes on replica i, or undefined where it may not go. */
export interface PlanJob<T> {
  readonly job: T
  /** Latest first token, absolute. */
  readonly deadlineAtMs: Ms
  readonly value: number
  readonly work: readonly (PlannedWork | undefined)[]
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
  for (const planned of jobs) {
    const index = soonest(planned, machines)
    const machine = machines[index]
    if (machine === undefined) continue
    const work = planned.work[index]
    if (work === undefined) continue
    // Whoever would be late there even alone makes nobody else go.
    if (firstTokenAtMs(machine.start, work) > planned.deadlineAtMs) {
      dropped.push({
        job: planned.job,
        replica: index,
        firstTokenAtMs: firstTokenAtMs(machine.virtual, work),
      })
      continue
    }
    const atMs = place(machine.virtual, work)
    machine.entries.push({ planned, firstTokenAtMs: atMs })
    if (atMs > planned.deadlineAtMs) dropUntilNoneLate(machine, index, dropped)
  }
  const kept = machines.flatMap(({ entries }, replica) =>
    entries.map((entry) => ({
      job: entry.planned.job,
      replica,
      firstTokenAtMs: entry.firstTokenAtMs,
      order: entry.planned,
    })),
  )
  const rank = new Map(jobs.map((planned, index) => [planned, index]))
  kept.sort((a, b) => (rank.get(a.order) ?? 0) - (rank.get(b.order) ?? 0))
  return {
    kept: kept.map(({ job, replica, firstTokenAtMs: atMs }) => ({ job, replica, firstTokenAtMs: atMs })),
    dropped,
  }
}

function soonest<T>(planned: PlanJob<T>, machines: readonly Machine<T>[]): number {
  let best = -1
  let bestAtMs = Number.POSITIVE_INFINITY
  machines.forEach((machine, index) => {
    const work = planned.work[index]
    if (work === undefined) return
    const atMs = firstTokenAtMs(machine.virtual, work)
    if (atMs < bestAtMs) {
      best = index
      bestAtMs = atMs
    }
  })
  return best
}

function dropUntilNoneLate<T>(machine: Machine<T>, index: number, dropped: Placed<T>[]): void {
  while (machine.entries.some((entry) => entry.firstTokenAtMs > entry.planned.deadlineAtMs)) {
    const worst = costliest(machine, index)
    const [gone] = machine.entries.splice(worst, 1)
    if (gone === undefined) return
    dropped.push({ job: gone.planned.job, replica: index, firstTokenAtMs: gone.firstTokenAtMs })
    machine.virtual = virtualReplica(machine.start)
    for (const entry of machine.entries) {
      const work = entry.planned.work[index]
      if (work !== undefined) entry.firstTokenAtMs = place(machine.virtual, work)
    }
  }
}

function costliest<T>(machine: Machine<T>, index: number): number {
  let worst = 0
  let worstRatio = Number.NEGATIVE_INFINITY
  machine.entries.forEach(({ planned }, position) => {
    const work = planned.work[index]
    if (work === undefined) return
    const ratio = (work.prefillMs + machine.slotShare * work.residenceMs) / planned.value
    if (ratio >= worstRatio) {
      worst = position
      worstRatio = ratio
    }
  })
  return worst
}
