/** Looks at SLO health and upstream weight every few seconds, so that changes are logged and told even when nobody scrapes. */
import type { Ms } from '../core/units.ts'
import type { Observer } from '../telemetry/observer.ts'
import type { Clock, Stop } from '../upstream/clock.ts'

/** Often against the shortest window, which is 5 minutes, in ms. */
export const SLO_WATCH_MS: Ms = 10_000

/** Watches until stopped. A fault of one look is told to the observer and does not end the watch. */
export function watchSloHealth(
  observer: Pick<Observer, 'health' | 'reweigh' | 'onFault'>,
  clock: Clock,
): Stop {
  return clock.every(SLO_WATCH_MS, () => {
    try {
      observer.health()
      observer.reweigh()
    } catch (error) {
      observer.onFault(error)
    }
  })
}
