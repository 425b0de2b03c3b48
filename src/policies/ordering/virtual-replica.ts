/** A replica in a plan: when its prefill and its slots come free as waiting work is put on it. Pure. */
import type { Ms } from '../../core/units.ts'

/** What one job would take there. */
export interface PlannedWork {
  /** Time of the prefill machine until its own prompt is done, in ms. */
  readonly prefillMs: Ms
  /** Time after it in which nobody else may prefill there, so that running streams keep their pace, in ms. */
  readonly pauseMs: Ms
  /** Time from its first token until its slot is free again, in ms. */
  readonly residenceMs: Ms
  /** Slots that it needs, at least 1. */
  readonly sequences: number
  /** Added to its first token only: overhead and the step that runs. */
  readonly latencyMs: Ms
}

/** Where a replica stands before anything of the plan is put on it. */
export interface VirtualStart {
  readonly prefillFreeAtMs: Ms
  /** Instants at which its slots come free, ascending; undefined when slots don't bind. */
  readonly slotsFreeAtMs: readonly Ms[] | undefined
}

/** A replica while a plan is made. */
export interface VirtualReplica {
  prefillFreeAtMs: Ms
  slotsFreeAtMs: Ms[] | undefined
}

export function virtualReplica(start: VirtualStart): VirtualReplica {
  return {
    prefillFreeAtMs: start.prefillFreeAtMs,
    slotsFreeAtMs: start.slotsFreeAtMs === undefined ? undefined : [...start.slotsFreeAtMs],
  }
}

/** When its first token would come if it were put there next. */
export function firstTokenAtMs(replica: VirtualStart, work: PlannedWork): Ms {
  return startAtMs(replica, work) + work.prefillMs + work.latencyMs
}

/** Puts it there. */
export function place(replica: VirtualReplica, work: PlannedWork): Ms {
  const doneAtMs = startAtMs(replica, work) + work.prefillMs
  replica.prefillFreeAtMs = doneAtMs + work.pauseMs
  const { slotsFreeAtMs } = replica
  if (slotsFreeAtMs !== undefined) {
    const taken = slotsFreeAtMs.splice(0, work.sequences).length
    for (let i = 0; i < taken; i++) insertSorted(slotsFreeAtMs, doneAtMs + work.residenceMs)
  }
  return doneAtMs + work.latencyMs
}

/** A request that wants more slots than there are starts when all are free. */
function startAtMs(replica: VirtualStart, work: PlannedWork): Ms {
  const { slotsFreeAtMs, prefillFreeAtMs } = replica
  if (slotsFreeAtMs === undefined) return prefillFreeAtMs
  const last = Math.min(work.sequences, slotsFreeAtMs.length) - 1
  return Math.max(prefillFreeAtMs, slotsFreeAtMs[last] ?? Number.NEGATIVE_INFINITY)
}

/** Inserts into an ascending list. */
export function insertSorted(list: number[], value: number): void {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((list[middle] ?? 0) <= value) low = middle + 1
    else high = middle
  }
  list.splice(low, 0, value)
}
