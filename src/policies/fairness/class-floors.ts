/** Keeps a floor for each class of one pool: a part of its requests goes before others, however costly they are. */
import type { Ms, Ratio, Tokens } from '../../core/units.ts'
import { Fading } from './fading.ts'

/** Part of its requests that no class loses to others, as long as all floors together stay within their bound. */
const FLOOR_RATIO: Ratio = 0.05
/** The most requests that a class can be owed: it asks for its floor again after an outage, but not for hours of it. */
const MOST_OWED = 100
/** Part of the tokens served that floors may take. */
const MOST_TAKEN_RATIO: Ratio = 0.2

/**
 * The rule that keeps most requests gives up the costly first, so a class of long prompts could lose all of them. Each
 * request offered adds `FLOOR_RATIO` to what its class is owed, each one admitted pays a whole one off, and nothing is
 * saved up: a class is owed something only after as many refusals in a row as make one request.
 */
export class ClassFloors {
  readonly #owed = new Map<string, number>()
  #served: Tokens = 0
  /** What of it was owed. */
  #taken: Tokens = 0
  readonly #memory = new Fading()

  offered(className: string): void {
    this.#owed.set(className, Math.min(MOST_OWED, (this.#owed.get(className) ?? 0) + FLOOR_RATIO))
  }

  admitted(className: string, tokens: Tokens, nowMs: Ms): void {
    this.#fade(nowMs)
    const owed = this.#owed.get(className) ?? 0
    if (Number.isFinite(tokens)) {
      this.#served += tokens
      if (isWhole(owed)) this.#taken += tokens
    }
    this.#owed.set(className, Math.max(0, owed - 1))
  }

  /** Requests of that class that may go before others now. */
  due(className: string, nowMs: Ms): number {
    this.#fade(nowMs)
    if (this.#taken > MOST_TAKEN_RATIO * this.#served) return 0
    const owed = this.#owed.get(className) ?? 0
    return isWhole(owed) ? Math.floor(owed + ROUNDING) : 0
  }

  /** True when some class has requests that may go before others now. */
  anyDue(nowMs: Ms): boolean {
    this.#fade(nowMs)
    if (this.#taken > MOST_TAKEN_RATIO * this.#served) return false
    for (const owed of this.#owed.values()) if (isWhole(owed)) return true
    return false
  }

  /** By class: the requests that it is owed, in fractions. */
  snapshot(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#owed)
  }

  #fade(nowMs: Ms): void {
    const leftRatio = this.#memory.pass(nowMs)
    this.#served *= leftRatio
    this.#taken *= leftRatio
  }
}

/** Twenty twentieths make a whole one. */
const ROUNDING = 1e-6
const isWhole = (owed: number): boolean => owed + ROUNDING >= 1
