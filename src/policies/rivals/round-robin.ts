/** Every request at once to the next replica in turn: what a bare fleet behind a plain load balancer gets. */
import type { GateState, Plan, Scheduler } from '../../core/scheduler.ts'
import { plainView } from './least-outstanding.ts'
import { eligible, noReplica, passive } from './passive.ts'

export function createRoundRobin(): Scheduler {
  let turn = 0
  return passive('round-robin', (state: GateState): Plan => {
    for (const waiter of state.waiting) {
      const ledgers = eligible(waiter, state)
      const ledger = ledgers[turn++ % Math.max(1, ledgers.length)]
      if (ledger === undefined) return { intents: [noReplica(waiter)] }
      const { requestId } = waiter.offer
      const candidates = [plainView(waiter, ledger)]
      return { intents: [{ kind: 'admit', requestId, replicaId: ledger.replicaId, candidates }] }
    }
    return { intents: [] }
  })
}
