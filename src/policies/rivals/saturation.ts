/** How full the engines say they are, from their metrics pages: what llm-d's detector reads. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { Ratio } from '../../core/units.ts'

export interface SaturationOptions {
  /** Waiting requests at which an engine counts as full; llm-d: 5. */
  readonly maxWaiting?: number
  /** KV use at which it counts as full; llm-d: 0.8. */
  readonly maxKvRatio?: Ratio
  /** Counts what was sent since the page was read as waiting there: the credit that later versions have. */
  readonly credit?: boolean
}

/**
 * Mean over replicas of the fuller of the two signals; 1 and above is full (llm-d-router at ebab687, utilization
 * detector). A page that was never read counts as empty. Its rule that a page older than 200 ms counts as full is left
 * out, since it halts a fleet that is scraped less often.
 */
export function poolSaturation(ledgers: readonly ReplicaLedger[], options: SaturationOptions): Ratio {
  const sum = ledgers.reduce((total, ledger) => total + saturation(ledger, options), 0)
  return sum / Math.max(1, ledgers.length)
}

/** The same of one replica. */
export function saturation(ledger: ReplicaLedger, options: SaturationOptions): Ratio {
  const { maxWaiting = 5, maxKvRatio = 0.8, credit = false } = options
  const { gauges } = ledger.report
  const seenAtMs = gauges?.seenAtMs ?? Number.NEGATIVE_INFINITY
  let waiting = gauges?.waitingRequests ?? 0
  if (credit) {
    for (const { dispatchedAtMs } of ledger.prefilling.values()) if (dispatchedAtMs >= seenAtMs) waiting++
  }
  return Math.max(waiting / maxWaiting, (gauges?.kvUsageRatio ?? 0) / maxKvRatio)
}
