/** Seeded random numbers, so that a run can be repeated to the byte. */

/** A stream of random numbers. Equal seeds give equal streams on every machine. */
export class Rng {
  #state: number

  /** `seed` may be any integer; only its low 32 bits count. */
  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** A number in [0, 1). Mulberry32 (Tommy Ettinger, public domain): one 32-bit word of state, period 2^32. */
  uniform(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let word = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word
    return ((word ^ (word >>> 14)) >>> 0) / 4_294_967_296
  }

  /** An integer in [0, below). */
  integer(below: number): number {
    return Math.floor(this.uniform() * below)
  }

  /** An exponential variate of that mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform())
  }

  /** A standard normal variate (Box-Muller; the second of each pair is dropped to keep one word of state). */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()))
    return radius * Math.cos(2 * Math.PI * this.uniform())
  }

  /** A log-normal variate with that mean (not median); `sigma` is the deviation of its logarithm. */
  logNormal(mean: number, sigma: number): number {
    return mean * Math.exp(sigma * this.normal() - (sigma * sigma) / 2)
  }

  /** A gamma variate of mean `shape * scale` (Marsaglia and Tsang 2000; boosted below shape 1). */
  gamma(shape: number, scale: number): number {
    if (shape < 1) return this.gamma(shape + 1, scale) * (1 - this.uniform()) ** (1 / shape)
    const d = shape - 1 / 3
    const c = 1 / Math.sqrt(9 * d)
    for (;;) {
      const x = this.normal()
      const v = (1 + c * x) ** 3
      if (v > 0 && Math.log(1 - this.uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v))
        return d * v * scale
    }
  }

  /** An independent stream, named so that adding one elsewhere does not shift this one. */
  fork(name: string): Rng {
    return new Rng(hash32(name, this.#state))
  }
}

/** FNV-1a over UTF-16 units, finished with an avalanche; for seeds and prefix ids, not for security. */
export function hash32(text: string, seed = 0): number {
  let hash = 0x811c9dc5 ^ seed
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
