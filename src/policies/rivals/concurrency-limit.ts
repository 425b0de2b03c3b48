/** A static limit of requests a replica with a timed FIFO before it: what HAProxy's `maxconn` and queue give. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { GateState, Plan, Scheduler } from '../../core/scheduler.ts'
import type { Ms } from '../../core/units.ts'
import { plainView } from './least-outstanding.ts'
import { eligible, noReplica, passive } from './passive.ts'

export interface ConcurrencyLimitOptions {
  /** Requests in flight at one replica, at least 1. */
  readonly maxInFlight: number
  /** Longest wait in the FIFO, in ms. */
  readonly queueMs: Ms
}

export function createConcurrencyLimit(options: ConcurrencyLimitOptions): Scheduler {
  return passive(`limit-${options.maxInFlight}`, (state: GateState, nowMs: Ms): Plan => {
    let wakeAtMs: Ms | undefined
    for (const waiter of state.waiting) {
      const { requestId } = waiter.offer
      const ledgers = eligible(waiter, state)
      if (ledgers.length === 0) return { intents: [noReplica(waiter)] }
      const ledger = emptiest(ledgers)
      if (ledger !== undefined && ledger.inFlightRequests < options.maxInFlight) {
        const candidates = [plainView(waiter, ledger)]
        return { intents: [{ kind: 'admit', requestId, replicaId: ledger.replicaId, candidates }] }
      }
      const leavesAtMs = waiter.enteredAtMs + options.queueMs
      if (leavesAtMs <= nowMs) {
        const shed = {
          kind: 'shed',
          requestId,
          reason: 'slo_unreachable',
          retryAfterMs: 1000,
          candidates: [],
        } as const
        return { intents: [shed] }
      }
      wakeAtMs = Math.min(wakeAtMs ?? leavesAtMs, leavesAtMs)
    }
    return wakeAtMs === undefined ? { intents: [] } : { intents: [], wakeAtMs }
  })
}

function emptiest(ledgers: readonly ReplicaLedger[]): ReplicaLedger | undefined {
  return ledgers.reduce<ReplicaLedger | undefined>(
    (best, ledger) => (best === undefined || ledger.inFlightRequests < best.inFlightRequests ? ledger : best),
    undefined,
  )
}
