/** Time and timers as this folder sees them, so that tests can hold both in their hands. */
import { MAX_DELAY_MS, type Ms } from '../core/units.ts'

/** Stops what it was given for; idempotent. */
export type Stop = () => void

export interface Clock {
  /** Monotonic, in ms. */
  nowMs(): Ms
  /** Calls `run` once after `delayMs`. */
  after(delayMs: Ms, run: () => void): Stop
  /** Calls `run` every `periodMs` until stopped. */
  every(periodMs: Ms, run: () => void): Stop
}

/** The real one. Its timers don't keep the process alive by themselves. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, MAX_DELAY_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
  every(periodMs, run) {
    const timer = setInterval(run, Math.min(periodMs, MAX_DELAY_MS))
    timer.unref()
    return () => clearInterval(timer)
  },
}
