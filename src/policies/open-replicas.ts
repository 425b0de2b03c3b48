/** Says which replicas may take somebody now, so that not each of those who wait has to be tried on the others. */
import type { Tokens } from '../core/units.ts'
import { fitsDepth } from './admission/depth.ts'
import { fitsSlots, spareSlots } from './admission/slots.ts'
import { type Job, uncachedTokens } from './job.ts'
import type { Outlook } from './outlook.ts'
import { depthTokens } from './plan-state.ts'
import type { Round } from './round.ts'

/** A replica that may take somebody. */
export interface OpenReplica {
  readonly view: Outlook
  /** Backlog that is kept there. */
  readonly depthTokens: Tokens
}

/** All but the replicas that take nobody, however small. */
export function openReplicas(round: Round): OpenReplica[] {
  const { views, state, tightestTtftMs } = round
  return views
    .map((view) => ({ view, depthTokens: depthTokens(view, tightestTtftMs, state.instances) }))
    .filter((replica) => !isClosed(round, replica))
}

/** True when the replica is full, or its slots or its backlog are. */
function isClosed({ nowMs, without }: Round, { view, depthTokens: depth }: OpenReplica): boolean {
  const { ledger, slots } = view
  if (ledger.fullUntilAtMs > nowMs) return true
  if (ledger.inFlightRequests === 0) return false
  if (!without.has('slots') && ledger.inFlightSequences + 1 > slots + spareSlots(ledger)) return true
  return !without.has('depth') && !fitsDepth(view, 0, depth)
}

/** Whether slots and backlog leave the job room there: these refuse most, so they are asked before the rest. */
export function hasRoom(
  { without }: Round,
  job: Job,
  { view, depthTokens: depth }: OpenReplica,
  roomRatio: number,
): boolean {
  if (!without.has('slots') && !fitsSlots(view, job.waiter.offer.sequences, roomRatio)) return false
  return (
    without.has('depth') || fitsDepth(view, uncachedTokens(job, view.ledger.replicaId), depth * roomRatio)
  )
}
