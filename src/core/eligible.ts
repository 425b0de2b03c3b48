/** Says which replicas may have a request at all, however busy they are. */
import type { ReplicaReport } from './replica.ts'
import type { Waiter } from './waiting-room.ts'

/** True when the replica takes new work. */
export function takesWork({ state }: Pick<ReplicaReport, 'state'>): boolean {
  return state === 'live' || state === 'ramping'
}

/** True when the replica is of its pool, its engine has the route, and it has not failed this request before. */
export function mayServe(
  { offer, excluded }: Pick<Waiter, 'offer' | 'excluded'>,
  report: ReplicaReport,
): boolean {
  const { pools, routes, replicaId } = report
  return pools.includes(offer.pool) && routes?.has(offer.route) !== false && !excluded.includes(replicaId)
}
