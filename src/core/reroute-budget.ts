/** Keeps second attempts to a share of first ones, so that retries can't become the overload. */
import type { BounceCause } from './events.ts'
import { REROUTE_FLOOR_REQUESTS, REROUTE_WINDOW_MS } from './gate-settings.ts'
import type { Ms, Ratio } from './units.ts'

const SLOTS = 10
const SLOT_MS: Ms = REROUTE_WINDOW_MS / SLOTS

/** Counts dispatches and reroutes over the last `REROUTE_WINDOW_MS` in ten slots. */
export class RerouteBudget {
  #dispatches = new Array<number>(SLOTS).fill(0)
  #reroutes = new Array<number>(SLOTS).fill(0)
  #slot = 0

  dispatched(nowMs: Ms): void {
    this.#turnTo(nowMs)
    bump(this.#dispatches, this.#slot % SLOTS)
  }

  /**
   * Takes one reroute; false when the budget is spent. It is there for engines that are full, whose refusals could
   * become the overload. A replica that failed is free: its work is gone, so a second attempt adds none, its breaker
   * ends such failures soon, and a small fleet would fail all but a few of the requests that it had sent there.
   */
  take(budgetRatio: Ratio, nowMs: Ms, cause?: BounceCause): boolean {
    if (cause !== undefined && cause !== 'engine_full') return budgetRatio > 0
    this.#turnTo(nowMs)
    const allowed = Math.max(REROUTE_FLOOR_REQUESTS, budgetRatio * sum(this.#dispatches))
    if (budgetRatio <= 0 || sum(this.#reroutes) + 1 > allowed) return false
    bump(this.#reroutes, this.#slot % SLOTS)
    return true
  }

  #turnTo(nowMs: Ms): void {
    const slot = Math.floor(nowMs / SLOT_MS)
    const behind = Math.min(SLOTS, slot - this.#slot)
    for (let i = 1; i <= behind; i++) {
      const index = (((this.#slot + i) % SLOTS) + SLOTS) % SLOTS
      this.#dispatches[index] = 0
      this.#reroutes[index] = 0
    }
    if (slot > this.#slot) this.#slot = slot
  }
}

function bump(counts: number[], index: number): void {
  counts[index] = (counts[index] ?? 0) + 1
}

function sum(counts: readonly number[]): number {
  let total = 0
  for (const count of counts) total += count
  return total
}
