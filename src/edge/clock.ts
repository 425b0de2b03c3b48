/** The edge's own clock and timers, handed in so that tests can turn them by hand. */
import { MAX_DELAY_MS, type Ms } from '../core/units.ts'

export interface Clock {
  /** Monotonic, in ms since an origin that the whole Sluice shares. */
  nowMs(): Ms
  /** Calls `fire` once after `delayMs`; the returned function takes that back. */
  after(delayMs: Ms, fire: () => void): () => void
}

/** The real one. Its timers keep no process alive; a longer wish than they take wakes early and is set anew. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after(delayMs, fire) {
    const timer = setTimeout(fire, Math.min(Math.max(0, delayMs), MAX_DELAY_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
}
