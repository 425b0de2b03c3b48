/** How many replicas like those of a pool would carry what is asked of it, by what was learnt of them. */
import type { OfferedStream } from '../core/demand.ts'
import type { ReplicaLedger } from '../core/ledger.ts'
import type { PoolId } from '../core/request.ts'
import type { GateState } from '../core/scheduler.ts'
import { carriedShare } from '../estimate/replica-capacity.ts'
import { chunkTokens } from '../estimate/step-windows.ts'
import type { Learnt } from './learnt.ts'

/**
 * A fraction, so that those of several Sluices add up; 0 when nothing is asked. Undefined without a replica to go by, and
 * when no number of them would do. Replicas of one group are alike, so one of each is worked out.
 */
export function replicasWanted(
  pool: PoolId,
  demand: readonly OfferedStream[],
  state: GateState,
  learnt: Learnt,
): number | undefined {
  const shares = new Map<string, number>()
  let carried = 0
  let replicas = 0
  for (const ledger of state.replicas.values()) {
    const { groupId, pools } = ledger.report
    if (!pools.includes(pool)) continue
    const share = shares.get(groupId) ?? shareOf(ledger, demand, learnt)
    shares.set(groupId, share)
    carried += share
    replicas++
  }
  if (replicas === 0 || carried === 0) return undefined
  return replicas / carried
}

function shareOf(ledger: ReplicaLedger, demand: readonly OfferedStream[], learnt: Learnt): number {
  const { limits } = ledger.report
  return carriedShare(learnt.groupOf(ledger).model, demand, {
    slots: learnt.slots(ledger),
    kvCapacityTokens: limits.kvCapacityTokens ?? Number.POSITIVE_INFINITY,
    chunkTokens: chunkTokens(ledger),
  })
}
