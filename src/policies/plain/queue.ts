/** One queue before all replicas with a longest wait: what schedulers that plan nothing have in common. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { CandidateView } from '../../core/records.ts'
import type { PoolId } from '../../core/request.ts'
import type { GateState, Plan } from '../../core/scheduler.ts'
import type { Ms } from '../../core/units.ts'
import type { Waiter } from '../../core/waiting-room.ts'
import { noReplica } from '../no-replica.ts'
import { BLIND_RETRY_MS, eligible, plainView } from './passive.ts'

export interface QueueRule {
  /** Longest wait in ms: 0 refuses what cannot go at once, Infinity holds it until its class or client gives up. */
  readonly queueMs: Ms
  /** The replica that takes it now, or undefined when it has to wait, and all behind it too. */
  choose(waiter: Waiter, ledgers: readonly ReplicaLedger[]): ReplicaLedger | undefined
  /** Default: in order of arrival. */
  order?(waiters: Iterable<Waiter>): Iterable<Waiter>
  /** Default: nothing of the prompt is cached. */
  view?(waiter: Waiter, ledger: ReplicaLedger): CandidateView
}

/** The next thing to do: one admission, or one refusal, or when the next wait is over. */
export function planQueue(state: GateState, nowMs: Ms, rule: QueueRule): Plan {
  const { queueMs, view = plainView } = rule
  const blocked = new Set<PoolId>()
  let wakeAtMs = Number.POSITIVE_INFINITY
  for (const waiter of rule.order?.(state.waiting) ?? state.waiting) {
    const { requestId, pool } = waiter.offer
    const leavesAtMs = waiter.enteredAtMs + queueMs
    if (!blocked.has(pool)) {
      const ledgers = eligible(waiter, state)
      if (ledgers.length === 0) return { intents: [noReplica(waiter)] }
      const ledger = rule.choose(waiter, ledgers)
      if (ledger !== undefined) {
        const { replicaId } = ledger
        return { intents: [{ kind: 'admit', requestId, replicaId, candidates: [view(waiter, ledger)] }] }
      }
      if (waiter.excluded.length === 0) blocked.add(pool)
    }
    if (leavesAtMs <= nowMs) {
      const refusal = { reason: 'slo_unreachable', retryAfterMs: BLIND_RETRY_MS, candidates: [] } as const
      return { intents: [{ kind: 'shed', requestId, ...refusal }] }
    }
    wakeAtMs = Math.min(wakeAtMs, leavesAtMs)
  }
  return Number.isFinite(wakeAtMs) ? { intents: [], wakeAtMs } : { intents: [] }
}

/** The ledger with the lowest score; of equal ones the first. */
export function lowest(
  ledgers: readonly ReplicaLedger[],
  scoreOf: (ledger: ReplicaLedger) => number,
): ReplicaLedger | undefined {
  let best: ReplicaLedger | undefined
  let bestScore = Number.POSITIVE_INFINITY
  for (const ledger of ledgers) {
    const score = scoreOf(ledger)
    if (best !== undefined && score >= bestScore) continue
    best = ledger
    bestScore = score
  }
  return best
}
