/** Who has to leave an overfull waiting room: those lose least who can't be good any more. */
import type { WaitingLimits } from './gate-settings.ts'
import { firstTokenDeadlineAtMs, hasTargets } from './request.ts'
import type { Ms } from './units.ts'
import type { Waiter, WaitingRoom } from './waiting-room.ts'

/**
 * Who has to leave for the room to be within its limits; nobody when it is. The latest of those to whom nothing is
 * promised that can still be kept, or where they all would not be enough, the latest of all. Never a second attempt: it
 * was let in before, and may stand above the limits alone.
 */
export function surplusOf(room: WaitingRoom, limits: WaitingLimits, nowMs: Ms): readonly Waiter[] {
  if (isWithin(room, limits)) return []
  const idle = latestOf(room, limits, (waiter) => !mayBeGood(waiter, nowMs))
  return idle.isEnough ? idle.going : latestOf(room, limits, () => true).going
}

const isWithin = (load: WaitingLimits, limits: WaitingLimits): boolean =>
  load.requests <= limits.requests && load.bytes <= limits.bytes && load.tokens <= limits.tokens

/** The latest first attempts of that kind, as many as have to go, or all of them where that is not enough. */
function latestOf(
  room: WaitingRoom,
  limits: WaitingLimits,
  isOfKind: (waiter: Waiter) => boolean,
): { readonly going: readonly Waiter[]; readonly isEnough: boolean } {
  const left = { requests: room.requests, bytes: room.bytes, tokens: room.tokens }
  const going: Waiter[] = []
  for (const waiter of room.latestFirst()) {
    if (waiter.attempt === 2 || !isOfKind(waiter)) continue
    going.push(waiter)
    left.requests--
    left.bytes -= waiter.offer.bodyBytes
    left.tokens -= waiter.offer.promptTokens
    if (isWithin(left, limits)) return { going, isEnough: true }
  }
  return { going, isEnough: false }
}

function mayBeGood({ offer }: Waiter, nowMs: Ms): boolean {
  if (!hasTargets(offer.slo)) return false
  return (firstTokenDeadlineAtMs(offer) ?? Number.POSITIVE_INFINITY) > nowMs
}
