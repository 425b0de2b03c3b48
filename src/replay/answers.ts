/** Guesses how long the answers would have been that a log does not show whole, from those of the same kind that it does. */
import type { Tokens } from '../core/units.ts'
import { hash32 } from '../sim/rng.ts'
import type { LoggedRequest } from './logged-request.ts'

/** What is taken where no answer of the whole log came whole. */
const NOBODY_KNOWS_TOKENS: Tokens = 128

/** Output tokens over all sequences of a request, whole or guessed; the same request gets the same guess each time. */
export class Answers {
  readonly #whole = new Map<string, Float64Array>()

  constructor(requests: readonly LoggedRequest[]) {
    const gathered = new Map<string, Tokens[]>()
    for (const request of requests) {
      if (request.outcome !== 'completed' || request.outputTokens === 0) continue
      for (const key of keysOf(request)) {
        const own = gathered.get(key)
        if (own === undefined) gathered.set(key, [request.outputTokens])
        else own.push(request.outputTokens)
      }
    }
    for (const [key, tokens] of gathered) this.#whole.set(key, Float64Array.from(tokens).sort())
  }

  tokensOf(request: LoggedRequest): Tokens {
    const { outcome, outputTokens, ttftMs } = request
    // Who left in the middle of a stream took so much of the engine and no more.
    const taken = outcome === 'completed' || (outcome === 'client_left' && ttftMs !== undefined)
    if (taken && outputTokens > 0) return outputTokens
    const guess = this.#guess(request)
    const most = (request.maxOutputTokens ?? Number.POSITIVE_INFINITY) * request.sequences
    return Math.max(1, outputTokens, Math.min(guess, most))
  }

  /** One of the known answers that are longer than what was seen of this one. */
  #guess(request: LoggedRequest): Tokens {
    const known = keysOf(request)
      .map((key) => this.#whole.get(key))
      .find((lengths) => lengths !== undefined)
    if (known === undefined) return NOBODY_KNOWS_TOKENS
    const shorter = known.findIndex((tokens) => tokens > request.outputTokens)
    const from = shorter < 0 ? known.length - 1 : shorter
    return known[from + (hash32(request.id) % (known.length - from))] ?? NOBODY_KNOWS_TOKENS
  }
}

/** From the narrowest kind to the widest. */
function keysOf({ model, className, route }: LoggedRequest): readonly string[] {
  return [`${model}\n${className}\n${route}`, `${model}\n${className}`, model, '']
}
