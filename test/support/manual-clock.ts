/** A clock that stands still until the test moves it; due timers run in order on the way. */
import type { Clock, Stop } from '../../src/upstream/clock.ts'

interface Timer {
  dueAtMs: number
  readonly periodMs: number | undefined
  readonly run: () => void
}

export class ManualClock implements Clock {
  #nowMs: number
  readonly #timers = new Set<Timer>()

  constructor(startMs = 1) {
    this.#nowMs = startMs
  }

  /** Timers that are set and not stopped. */
  get pending(): number {
    return this.#timers.size
  }

  nowMs(): number {
    return this.#nowMs
  }

  after(delayMs: number, run: () => void): Stop {
    return this.#add({ dueAtMs: this.#nowMs + delayMs, periodMs: undefined, run })
  }

  every(periodMs: number, run: () => void): Stop {
    return this.#add({ dueAtMs: this.#nowMs + periodMs, periodMs, run })
  }

  /** Moves time on, running each timer at its own instant. */
  advance(spanMs: number): void {
    const endMs = this.#nowMs + spanMs
    for (;;) {
      let next: Timer | undefined
      for (const timer of this.#timers) {
        if (timer.dueAtMs <= endMs && (next === undefined || timer.dueAtMs < next.dueAtMs)) next = timer
      }
      if (next === undefined) break
      this.#nowMs = Math.max(this.#nowMs, next.dueAtMs)
      if (next.periodMs === undefined) this.#timers.delete(next)
      else next.dueAtMs += next.periodMs
      next.run()
    }
    this.#nowMs = endMs
  }

  #add(timer: Timer): Stop {
    this.#timers.add(timer)
    return () => {
      this.#timers.delete(timer)
    }
  }
}
