/** The gate's one timer: a wish for a later look, replaced by each newer wish. */
import type { Ms } from '../core/units.ts'
import type { Clock } from './clock.ts'

export class WakeTimer {
  readonly #clock: Clock
  readonly #fire: () => void
  #cancel = () => {}

  constructor(clock: Clock, fire: () => void) {
    this.#clock = clock
    this.#fire = fire
  }

  /** Fires once at `atMs` or just after it, never before: timers may be early by a fraction of a millisecond. */
  at(atMs: Ms): void {
    this.#cancel()
    this.#cancel = this.#clock.after(Math.ceil(atMs - this.#clock.nowMs()), () => {
      if (this.#clock.nowMs() < atMs) this.at(atMs)
      else this.#fire()
    })
  }

  cancel(): void {
    this.#cancel()
  }
}
