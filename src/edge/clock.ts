/** The edge's own clock and timers, handed in so that tests can turn them by hand. */
import type { Ms } from '../core/units.ts'

export interface Clock {
  /** Monotonic, in ms since an origin that the whole Sluice shares. */
  nowMs(): Ms
  /** Calls `fire` once after `delayMs`; the returned function takes that back. */
  after(delayMs: Ms, fire: () => void): () => void
}

/** The longest delay that Node's timers take, in ms; a longer wish wakes early and is set anew. */
export const MAX_DELAY_MS: Ms = 2 ** 31 - 1

/** The real one. Its timers keep no process alive. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after(delayMs, fire) {
    const timer = setTimeout(fire, Math.min(Math.max(0, delayMs), MAX_DELAY_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
}
