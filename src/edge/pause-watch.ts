/** Adds up how long a client kept its own stream waiting. */
import type { Ms } from '../core/units.ts'

/** A client that keeps us waiting that long in all owns the gaps of its stream, in ms. */
const SLOW_READER_MS: Ms = 250

export class PauseWatch {
  /** Since when it has been waited for; undefined while it is not. */
  sinceMs: Ms | undefined
  #totalMs: Ms = 0

  begin(nowMs: Ms): void {
    this.sinceMs = nowMs
  }

  end(nowMs: Ms): void {
    this.#totalMs += nowMs - (this.sinceMs ?? nowMs)
    this.sinceMs = undefined
  }

  /** Its gaps say nothing of the engine. */
  get slow(): boolean {
    return this.#totalMs > SLOW_READER_MS
  }
}
