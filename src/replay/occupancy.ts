/** What a replica had on hand at each moment of a log: sequences that decoded, their context, prompts computed so far. */
import { attentionPairs } from '../core/attention.ts'
import type { Ms, Tokens } from '../core/units.ts'
import type { LoggedRequest } from './logged-request.ts'

/** Means over a stretch of time. */
export interface Load {
  readonly sequences: number
  readonly contextTokens: Tokens
}

export interface Prefilled {
  readonly tokens: Tokens
  readonly pairs: number
  readonly chunks: number
}

/** When a request was with its replica; undefined when it never was with one. */
export interface Stay {
  readonly fromMs: Ms
  /** Its first token; where nobody saw one, the end. */
  readonly firstTokenMs: Ms
  readonly toMs: Ms
}

export function stayOf(request: LoggedRequest): Stay | undefined {
  const { replica, arrivedAtMs, queueMs, ttftMs, e2eMs } = request
  if (replica === undefined) return undefined
  const toMs = arrivedAtMs + e2eMs
  const fromMs = Math.min(arrivedAtMs + queueMs, toMs)
  const firstTokenMs = Math.min(toMs, arrivedAtMs + (ttftMs ?? e2eMs))
  return { fromMs, firstTokenMs: Math.max(fromMs, firstTokenMs), toMs }
}

/** A quantity that changes in steps, with its integral, so that means over any stretch are two look-ups. */
class StepCurve {
  readonly #times: Float64Array
  readonly #values: Float64Array
  readonly #integrals: Float64Array

  constructor(changes: readonly (readonly [atMs: Ms, by: number])[]) {
    const sorted = [...changes].sort(([a], [b]) => a - b)
    this.#times = Float64Array.from(sorted, ([atMs]) => atMs)
    this.#values = new Float64Array(sorted.length)
    this.#integrals = new Float64Array(sorted.length)
    let value = 0
    let integral = 0
    sorted.forEach(([atMs, by], at) => {
      integral += value * (atMs - (this.#times[at - 1] ?? atMs))
      value += by
      this.#values[at] = value
      this.#integrals[at] = integral
    })
  }

  /** The value just after that instant. */
  at(atMs: Ms): number {
    const before = this.#lastAt(atMs)
    return before < 0 ? 0 : (this.#values[before] ?? 0)
  }

  mean(fromMs: Ms, toMs: Ms): number {
    return toMs <= fromMs
      ? this.at(fromMs)
      : (this.#integral(toMs) - this.#integral(fromMs)) / (toMs - fromMs)
  }

  #integral(atMs: Ms): number {
    const before = this.#lastAt(atMs)
    if (before < 0) return 0
    return (
      (this.#integrals[before] ?? 0) + (this.#values[before] ?? 0) * (atMs - (this.#times[before] ?? atMs))
    )
  }

  /** The place of the last change at or before that instant; -1 when there is none. */
  #lastAt(atMs: Ms): number {
    let low = 0
    let high = this.#times.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#times[middle] ?? 0) <= atMs) low = middle + 1
      else high = middle
    }
    return low - 1
  }
}

export class Occupancy {
  readonly #sequences: StepCurve
  readonly #context: StepCurve
  readonly #prefilling: StepCurve
  readonly #prefilled: StepCurve
  readonly #pairs: StepCurve
  readonly #chunks: StepCurve

  /** Of the requests of one replica. `chunkTokens` of a prompt are computed in one step. */
  constructor(requests: readonly LoggedRequest[], chunkTokens: Tokens) {
    const sequences: [Ms, number][] = []
    const context: [Ms, number][] = []
    const prefilling: [Ms, number][] = []
    const prefilled: [Ms, number][] = []
    const pairs: [Ms, number][] = []
    const chunks: [Ms, number][] = []
    for (const request of requests) {
      const stay = stayOf(request)
      if (stay === undefined) continue
      const { fromMs, toMs } = stay
      // An answer that did not stream may have decoded all the time; nobody saw when it began to.
      const firstMs = request.ttftMs === undefined ? fromMs : stay.firstTokenMs
      const held = request.promptTokens + request.outputTokens / 2
      sequences.push([firstMs, request.sequences], [toMs, -request.sequences])
      context.push([firstMs, held], [toMs, -held])
      prefilling.push([fromMs, 1], [firstMs, -1])
      prefilled.push([firstMs, request.uncachedTokens])
      pairs.push([firstMs, attentionPairs(request.promptTokens, request.uncachedTokens)])
      chunks.push([firstMs, chunksOf(request.uncachedTokens, chunkTokens)])
    }
    this.#sequences = new StepCurve(sequences)
    this.#context = new StepCurve(context)
    this.#prefilling = new StepCurve(prefilling)
    this.#prefilled = new StepCurve(prefilled)
    this.#pairs = new StepCurve(pairs)
    this.#chunks = new StepCurve(chunks)
  }

  load(fromMs: Ms, toMs: Ms): Load {
    return { sequences: this.#sequences.mean(fromMs, toMs), contextTokens: this.#context.mean(fromMs, toMs) }
  }

  /** Prompt tokens, their `attentionPairs` and chunks, whose first token came after `fromMs` and until `toMs`. */
  prefilled(fromMs: Ms, toMs: Ms): Prefilled {
    return {
      tokens: this.#prefilled.at(toMs) - this.#prefilled.at(fromMs),
      pairs: this.#pairs.at(toMs) - this.#pairs.at(fromMs),
      chunks: this.#chunks.at(toMs) - this.#chunks.at(fromMs),
    }
  }

  /** How many requests were without first token just after that instant. */
  prefillingAt(atMs: Ms): number {
    return this.#prefilling.at(atMs)
  }
}

export function chunksOf(tokens: Tokens, chunkTokens: Tokens): number {
  return Math.max(1, Math.ceil(tokens / chunkTokens))
}
