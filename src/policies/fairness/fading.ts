/** A memory in which half of everything is forgotten after a while. */
import type { Ms, Ratio } from '../../core/units.ts'

/** Half of what was served is forgotten after this, in ms: longer than most answers, short beside an hour's quota. */
const HALF_LIFE_MS: Ms = 10_000

export class Fading {
  #readAtMs: Ms | undefined

  /** What is left then of a sum that stands as of the last `pass`; changes nothing. */
  leftRatio(nowMs: Ms): Ratio {
    return 2 ** (-Math.max(0, nowMs - (this.#readAtMs ?? nowMs)) / HALF_LIFE_MS)
  }

  /** The same, for who puts his sums right with it: they stand as of then. */
  pass(nowMs: Ms): Ratio {
    const ratio = this.leftRatio(nowMs)
    this.#readAtMs = Math.max(nowMs, this.#readAtMs ?? nowMs)
    return ratio
  }
}
