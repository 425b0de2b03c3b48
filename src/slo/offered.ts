/** Keeps what was offered to each model lately, by class: how often, how large, and how much answer it took. */
import type { OfferedStream } from '../core/demand.ts'
import type { DecisionRecord, Settlement } from '../core/records.ts'
import type { SloClass } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'
import { RollingSums } from './rolling-sums.ts'
import { ForwardClock, HOUR_MS, MINUTE_MS } from './windows.ts'

/** Rates follow demand within minutes; sizes are steadier, and few requests may end in five minutes. */
const RATE_WINDOW_MS: Ms = 5 * MINUTE_MS
const SIZE_WINDOW_MS: Ms = HOUR_MS
/** A rate over less than this is a guess. */
const LEAST_COVERED_MS: Ms = 30_000

const OFFERS = 0
const PROMPT = 1
const UNCACHED = 2
const SEQUENCES = 3
const ENDED = 0
const OUTPUT = 1

interface Stream {
  readonly model: string
  readonly className: string
  slo: SloClass
  readonly offers: RollingSums
  readonly answers: RollingSums
}

export class OfferedDemand {
  readonly #clock = new ForwardClock()
  readonly #streams = new Map<string, Stream>()
  readonly #startMs: Ms

  constructor(nowMs: Ms) {
    this.#startMs = this.#clock.at(nowMs)
  }

  /** Drops what is no name of the configuration any more. */
  configure(models: readonly string[], classes: readonly string[]): void {
    for (const [id, { model, className }] of this.#streams) {
      if (!models.includes(model) || !classes.includes(className)) this.#streams.delete(id)
    }
  }

  /** Counts the first decision on a request. `model` and `className` must be names of the configuration. */
  decided(model: string, className: string, record: DecisionRecord, nowMs: Ms): void {
    if (record.attempt !== 1) return
    const atMs = this.#clock.at(nowMs)
    const { offer } = record
    const stream = this.#stream(model, className, offer.slo)
    stream.slo = offer.slo
    const promptTokens = wholeOrZero(offer.promptTokens * offer.sequences)
    const uncached = wholeOrZero(uncachedTokens(record))
    const sequences = wholeOrZero(offer.sequences)
    stream.offers.addAll([OFFERS, 1, PROMPT, promptTokens, UNCACHED, uncached, SEQUENCES, sequences], atMs)
  }

  /** Learns from an answer that came whole how long answers are. */
  settled(model: string, className: string, { outcome, outputTokens }: Settlement, nowMs: Ms): void {
    const stream = this.#streams.get(idOf(model, className))
    if (stream === undefined || outcome !== 'completed') return
    stream.answers.addAll([ENDED, 1, OUTPUT, wholeOrZero(outputTokens)], this.#clock.at(nowMs))
  }

  /** Undefined while too little was seen to tell; empty when nothing is asked. */
  of(model: string, nowMs: Ms): readonly OfferedStream[] | undefined {
    const atMs = this.#clock.at(nowMs)
    const coveredMs = Math.min(atMs - this.#startMs, RATE_WINDOW_MS)
    if (coveredMs < LEAST_COVERED_MS) return undefined
    const streams = [...this.#streams.values()].filter((stream) => stream.model === model)
    const asked = streams.filter((stream) => (stream.offers.at(atMs)[OFFERS] ?? 0) > 0)
    const anyOutput = meanOutput(streams, atMs)
    if (asked.length > 0 && anyOutput === undefined) return undefined
    return asked.map((stream) => {
      const [offers = 1, prompt = 0, uncached = 0, sequences = 1] = stream.offers.at(atMs)
      return {
        slo: stream.slo,
        requestsPerSec: (offers * 1000) / coveredMs,
        promptTokens: prompt / Math.max(1, sequences),
        uncachedTokens: uncached / offers,
        outputTokens: meanOutput([stream], atMs) ?? anyOutput ?? 0,
        sequences: Math.max(1, sequences / offers),
      }
    })
  }

  #stream(model: string, className: string, slo: SloClass): Stream {
    const id = idOf(model, className)
    const found = this.#streams.get(id)
    if (found !== undefined) return found
    const made = {
      model,
      className,
      slo,
      offers: new RollingSums(4, RATE_WINDOW_MS, 20, true, this.#startMs),
      answers: new RollingSums(2, SIZE_WINDOW_MS, 30, true, this.#startMs),
    }
    this.#streams.set(id, made)
    return made
  }
}

/** What the prompt costs where it went, or would cost at best for one that was refused. */
function uncachedTokens({ candidates, offer, verdict }: DecisionRecord): Tokens {
  const chosen = verdict.kind === 'admit' ? verdict.replicaId : undefined
  const there = candidates.find(({ replicaId }) => replicaId === chosen)
  if (there !== undefined) return there.uncachedTokens
  return Math.min(offer.promptTokens, ...candidates.map((candidate) => candidate.uncachedTokens))
}

function meanOutput(streams: readonly Stream[], atMs: Ms): Tokens | undefined {
  let ended = 0
  let output = 0
  for (const { answers } of streams) {
    const sums = answers.at(atMs)
    ended += sums[ENDED] ?? 0
    output += sums[OUTPUT] ?? 0
  }
  return ended === 0 ? undefined : output / ended
}

function wholeOrZero(value: number): number {
  return Number.isFinite(value) && value > 0 ? Math.round(value) : 0
}

function idOf(model: string, className: string): string {
  return `${model}\n${className}`
}
