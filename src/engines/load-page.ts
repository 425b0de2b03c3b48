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
      ...(tally.kvUsage === undefined ? {} : { kvUsageRatio: Math.min(1, Math.max(0, tally.kvUsage)) }),
      ...(tally.preemptions === undefined ? {} : { preemptionsTotal: tally.preemptions }),
    },
    limits: {
      ...(tally.kvCapacityTokens === undefined ? {} : { kvCapacityTokens: tally.kvCapacityTokens }),
      ...(tally.maxNumSeqs === undefined ? {} : { maxNumSeqs: tally.maxNumSeqs }),
    },
    asleep: tally.asleep ?? false,
    ...(tally.processStartSec === undefined ? {} : { processStartSec: tally.processStartSec }),
    ...(tally.progress === undefined ? {} : { progressTotal: tally.progress }),
  }
}
