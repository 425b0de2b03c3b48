/** A static limit of requests a replica with a timed FIFO before it: what HAProxy's `maxconn` and queue give. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import type { Ms } from '../../core/units.ts'
import { passive } from '../plain/passive.ts'
import { lowest, planQueue } from '../plain/queue.ts'

export interface ConcurrencyLimitOptions {
  /** Requests in flight at one replica, at least 1. */
  readonly maxInFlight: number
  /** Longest wait in the FIFO, in ms. */
  readonly queueMs: Ms
}

export function createConcurrencyLimit(options: ConcurrencyLimitOptions): Scheduler {
  const { maxInFlight, queueMs } = options
  return passive(`limit-${maxInFlight}`, (state, nowMs) =>
    planQueue(state, nowMs, { queueMs, choose: (_, ledgers) => emptiestBelow(ledgers, () => maxInFlight) }),
  )
}

/** The replica with the fewest requests in flight among those below their limit. */
export function emptiestBelow(
  ledgers: readonly ReplicaLedger[],
  limitOf: (ledger: ReplicaLedger) => number,
): ReplicaLedger | undefined {
  const open = ledgers.filter((ledger) => ledger.inFlightRequests < limitOf(ledger))
  return lowest(open, (ledger) => ledger.inFlightRequests)
}
