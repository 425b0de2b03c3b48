/** Orders jobs by the latest instant at which they may start, not by deadline: a long prompt must start earlier. */
import type { Ms } from '../../core/units.ts'

/** Sorts a copy: least slack first, then arrival. `startByAtMs` is deadline less own time on the best replica. */
export function leastSlackFirst<T extends { readonly startByAtMs: Ms; readonly enteredAtMs: Ms }>(
  jobs: readonly T[],
): readonly T[] {
  return [...jobs].sort((a, b) => a.startByAtMs - b.startByAtMs || a.enteredAtMs - b.enteredAtMs)
}
