/** LMetric: to the replica with the least product of prompt tokens to prefill and batch size; optionally with a cap. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import type { Ms, Tokens } from '../../core/units.ts'
import type { Waiter } from '../../core/waiting-room.ts'
import { createPrefixIndex } from '../../estimate/prefix-index.ts'
import { passive, plainView } from '../plain/passive.ts'
import { lowest, planQueue } from '../plain/queue.ts'

/** The score has no weights to tune (LMetric, OSDI '26); its paper routes and refuses nobody. */
export interface LMetricOptions {
  /** Requests without a first token at one replica; the rest waits. Default: no cap. */
  readonly maxPending?: number
  /** Longest wait under that cap, in ms. */
  readonly queueMs?: Ms
}

export function createLMetric(options: LMetricOptions = {}): Scheduler {
  const { maxPending = Number.POSITIVE_INFINITY, queueMs = 0 } = options
  const prefixes = createPrefixIndex()
  const uncached = (waiter: Waiter, { replicaId }: ReplicaLedger): Tokens =>
    Math.max(1, waiter.offer.promptTokens - (prefixes.cachedTokens(waiter.offer).get(replicaId) ?? 0))
  return {
    ...passive('lmetric', (state, nowMs) =>
      planQueue(state, nowMs, {
        queueMs,
        choose: (waiter, ledgers) =>
          lowest(
            ledgers.filter(({ prefilling }) => prefilling.size < maxPending),
            (ledger) => (ledger.backlogTokens + uncached(waiter, ledger)) * (ledger.inFlightSequences + 1),
          ),
        view: (waiter, ledger) => ({
          ...plainView(waiter, ledger),
          uncachedTokens: uncached(waiter, ledger),
        }),
      }),
    ),
    dispatched: ({ offer, replicaId }) => prefixes.begun(prefixes.learn(offer, replicaId)),
    replicaReset: (replicaId) => prefixes.forget(replicaId),
  }
}
