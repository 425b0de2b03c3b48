/** Gathers the samples of a metrics page into one load sample, across the ranks of a data-parallel engine. */
import type { LoadSample } from './adapter.ts'

/** What a page may say, one field per wanted family; counts are summed over ranks, the KV ratio is the fullest rank's. */
export interface LoadTally {
  running?: number
  waiting?: number
  kvUsage?: number
  preemptions?: number
  kvCapacityTokens?: number
  maxNumSeqs?: number
  progress?: number
  asleep?: boolean
  processStartSec?: number
}

/**
 * Whether a value can be what an engine counts: neither negative nor past what a number counts exactly, so that sums and
 * products of a page's figures stay finite. Others are left out, as if they were not on the page.
 */
export function isFigure(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
}

/** The sum so far with one more sample. */
export function added(sum: number | undefined, value: number): number {
  return (sum ?? 0) + value
}

/** The largest so far. */
export function largest(max: number | undefined, value: number): number {
  return max === undefined || value > max ? value : max
}

/** A sample, or nothing when neither the running nor the waiting gauge was on the page: that is no data, not idleness. */
export function loadSample(tally: LoadTally): LoadSample | undefined {
  if (tally.running === undefined && tally.waiting === undefined) return undefined
  return {
    gauges: {
      runningRequests: tally.running ?? 0,
      waitingRequests: tally.waiting ?? 0,
      ...(tally.kvUsage === undefined ? {} : { kvUsageRatio: Math.min(1, tally.kvUsage) }),
      ...(tally.preemptions === undefined ? {} : { preemptionsTotal: tally.preemptions }),
    },
    // Of 0 neither is a limit: its engine would get one request at a time.
    limits: {
      ...(tally.kvCapacityTokens ? { kvCapacityTokens: tally.kvCapacityTokens } : {}),
      ...(tally.maxNumSeqs ? { maxNumSeqs: tally.maxNumSeqs } : {}),
    },
    asleep: tally.asleep ?? false,
    ...(tally.processStartSec === undefined ? {} : { processStartSec: tally.processStartSec }),
    ...(tally.progress === undefined ? {} : { progressTotal: tally.progress }),
  }
}
