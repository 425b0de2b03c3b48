/** What schedulers that learn nothing have in common: no feedback, no predictions, no trust. */
import { mayServe, takesWork } from '../../core/eligible.ts'
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { CandidateView } from '../../core/records.ts'
import type { GateState, Plan, Scheduler } from '../../core/scheduler.ts'
import type { Ms } from '../../core/units.ts'
import type { Waiter } from '../../core/waiting-room.ts'

/** What a client is told when nothing is known of when a place comes free, in ms. */
export const BLIND_RETRY_MS: Ms = 1000

/** A scheduler made of its plan alone. */
export function passive(name: string, plan: (state: GateState, nowMs: Ms) => Plan): Scheduler {
  const nothing = (): void => {}
  return {
    name,
    plan,
    trust: () => 'fallback',
    firstToken: nothing,
    progress: nothing,
    dispatched: nothing,
    settled: nothing,
    bounced: nothing,
    replicaReset: nothing,
    retryAfterMs: () => BLIND_RETRY_MS,
    replicasWanted: () => undefined,
    snapshot: () => ({}),
  }
}

/** Replicas that may take the waiter, in the order in which they came. */
export function eligible(waiter: Waiter, state: GateState): readonly ReplicaLedger[] {
  return [...state.replicas.values()].filter(({ report }) => takesWork(report) && mayServe(waiter, report))
}

/** What a scheduler without predictions has seen of a replica. */
export function plainView(waiter: Waiter, ledger: ReplicaLedger): CandidateView {
  return {
    replicaId: ledger.replicaId,
    uncachedTokens: waiter.offer.promptTokens,
    backlogTokens: ledger.backlogTokens,
    runningSequences: ledger.decodingSequences,
    gate: 'ok',
  }
}
