/** Results of the last few seconds, for people who watch a run. */
import type { Ms } from '../core/units.ts'
import type { LoadResult } from './outcome.ts'
import { createTally, type GroupChoice, type GroupSummary } from './tally.ts'

export interface RecentResults {
  add(result: LoadResult): void
  /** Sums of what settled within the window before `nowMs`. */
  summary(nowMs: Ms, choice?: GroupChoice): GroupSummary
}

/** Keeps the results of the last `windowMs`. */
export function createRecentResults(windowMs: Ms): RecentResults {
  let results: LoadResult[] = []
  return {
    add(result) {
      results.push(result)
    },
    summary(nowMs, choice) {
      results = results.filter(({ endedAtMs }) => endedAtMs > nowMs - windowMs)
      const tally = createTally()
      for (const result of results) tally.settled(result)
      return tally.summary(choice)
    },
  }
}
