/** llm-d's probabilistic admitter: refuses at once, and the likelier the fuller the engines say they are. */
import type { Plan, Scheduler } from '../../core/scheduler.ts'
import { noReplica } from '../no-replica.ts'
import { BLIND_RETRY_MS, eligible, passive, plainView } from '../plain/passive.ts'
import { lowest } from '../plain/queue.ts'
import { poolSaturation, type SaturationOptions } from './saturation.ts'

/** p = min(1, factor * saturation^power), for work that may be shed; llm-d: 300 and 5. */
export interface ProbabilisticOptions extends SaturationOptions {
  readonly factor?: number
  readonly power?: number
  readonly seed?: number
}

export function createProbabilisticAdmitter(options: ProbabilisticOptions = {}): Scheduler {
  const { factor = 300, power = 5 } = options
  let state32 = (options.seed ?? 1) >>> 0
  const coin = (): number => {
    state32 = (Math.imul(state32, 1_664_525) + 1_013_904_223) >>> 0
    return state32 / 4_294_967_296
  }
  return passive('probabilistic-admitter', (state): Plan => {
    for (const waiter of state.waiting) {
      const { requestId, slo } = waiter.offer
      const ledgers = eligible(waiter, state)
      const ledger = lowest(ledgers, (candidate) => candidate.inFlightSequences)
      if (ledger === undefined) return { intents: [noReplica(waiter)] }
      const refused = slo.overload === 'shed' && coin() < factor * poolSaturation(ledgers, options) ** power
      const { replicaId } = ledger
      const candidates = [plainView(waiter, ledger)]
      if (!refused) return { intents: [{ kind: 'admit', requestId, replicaId, candidates }] }
      const retryAfterMs = BLIND_RETRY_MS
      return { intents: [{ kind: 'shed', requestId, reason: 'slo_unreachable', retryAfterMs, candidates }] }
    }
    return { intents: [] }
  })
}
