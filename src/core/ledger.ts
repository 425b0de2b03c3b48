/** The books of one replica: every permit out, what it still has to prefill, what it decodes and has in KV. */
import { offerPairs } from './attention.ts'
import type { PermitId } from './events.ts'
import { PassingMap } from './passing-map.ts'
import type { ReplicaReport } from './replica.ts'
import type { Offer, ReplicaId, RequestId } from './request.ts'
import type { Ms, Tokens } from './units.ts'

/** One request on its way through a replica. Only the ledger changes it. */
export interface InFlight {
  readonly permitId: PermitId
  readonly requestId: RequestId
  readonly replicaId: ReplicaId
  readonly offer: Offer
  readonly attempt: 1 | 2
  readonly enteredAtMs: Ms
  readonly dispatchedAtMs: Ms
  /** Prompt tokens that the engine has to compute, as believed at dispatch. */
  readonly uncachedTokens: Tokens
  /** Predicted at dispatch, from receipt to first token, in ms. */
  readonly predictedTtftMs?: Ms
  firstTokenAtMs?: Ms
  lastTokenAtMs?: Ms
  contentEvents: number
  /** It streams, but nobody can read what: its tokens are not told. */
  opaque?: true
  /** Uncached tokens of the prompts without first token that it found there when it was sent. */
  tokensAhead?: Tokens
  /** Times that progress had been told there when it was sent. */
  tellsBefore?: number
  /** It was the first there, and one behind it has begun to stream. */
  overtaken?: true
}

/** Times that progress was told of which a ledger knows what came since. */
const TELLS_KEPT = 64

export class ReplicaLedger {
  readonly replicaId: ReplicaId
  report: ReplicaReport
  #prefilling = new PassingMap<PermitId, InFlight>()
  #decoding = new PassingMap<PermitId, InFlight>()
  /** Undefined when it must be looked up again. */
  #head: InFlight | undefined
  #backlogTokens: Tokens = 0
  #backlogPairs = 0
  #prefillingSequences = 0
  #decodingSequences = 0
  #visibleSequences = 0
  #contextTokens: Tokens = 0
  #events = 0
  #tells = 0
  #toldAtMs: Ms = Number.NEGATIVE_INFINITY
  /** Content events before each of the last tells. */
  readonly #eventsBefore = new Array<number>(TELLS_KEPT).fill(0)
  #version = 0
  /** Until then the engine has told us that it is full. */
  fullUntilAtMs: Ms = Number.NEGATIVE_INFINITY
  lastTokenAtMs: Ms = Number.NEGATIVE_INFINITY
  lastFirstTokenAtMs: Ms = Number.NEGATIVE_INFINITY

  constructor(report: ReplicaReport) {
    this.replicaId = report.replicaId
    this.report = report
  }

  /** Dispatched and without first token, in order of dispatch. */
  get prefilling(): ReadonlyMap<PermitId, InFlight> {
    return this.#prefilling
  }
  /** The first of them: the engine is at it. */
  get head(): InFlight | undefined {
    this.#head ??= this.#prefilling.values().next().value
    return this.#head
  }
  /** Streaming, in order of their first token. */
  get decoding(): ReadonlyMap<PermitId, InFlight> {
    return this.#decoding
  }
  get inFlightRequests(): number {
    return this.#prefilling.size + this.#decoding.size
  }
  get inFlightSequences(): number {
    return this.#prefillingSequences + this.#decodingSequences
  }
  get decodingSequences(): number {
    return this.#decodingSequences
  }
  /** Those of them whose tokens are told as they come. */
  get visibleSequences(): number {
    return this.#visibleSequences
  }
  /** Uncached prompt tokens sent there and without first token. */
  get backlogTokens(): Tokens {
    return this.#backlogTokens
  }
  /** Their `attentionPairs`, of each prompt by itself. */
  get backlogPairs(): number {
    return this.#backlogPairs
  }
  /** Prompt and generated tokens of everything in flight there. */
  get contextTokens(): Tokens {
    return this.#contextTokens
  }
  /** Rises when a permit comes, moves on or goes: caches of stall and KV profile hang on it. */
  get version(): number {
    return this.#version
  }

  dispatch(inFlight: InFlight): void {
    inFlight.tokensAhead = this.#backlogTokens
    inFlight.tellsBefore = this.#tells
    this.#prefilling.set(inFlight.permitId, inFlight)
    this.#backlogTokens += inFlight.uncachedTokens
    this.#backlogPairs += pairsOf(inFlight)
    this.#prefillingSequences += inFlight.offer.sequences
    this.#contextTokens += inFlight.offer.promptTokens
    this.#version++
  }

  /** Moves a permit from prefilling to decoding; a second call for it changes nothing. */
  firstToken(permitId: PermitId, nowMs: Ms): boolean {
    const inFlight = this.#prefilling.get(permitId)
    if (inFlight === undefined) return false
    const { head } = this
    // What does not stream is only taken to have begun.
    if (head !== undefined && head !== inFlight && inFlight.offer.streamed) head.overtaken = true
    this.#leavePrefill(inFlight)
    inFlight.firstTokenAtMs = nowMs
    inFlight.lastTokenAtMs = nowMs
    this.#decoding.set(permitId, inFlight)
    this.#decodingSequences += inFlight.offer.sequences
    this.#visibleSequences += visibleSequences(inFlight)
    this.lastTokenAtMs = nowMs
    this.lastFirstTokenAtMs = nowMs
    this.#version++
    return true
  }

  /** Books content events of a permit; a token more of context each. */
  progress(inFlight: InFlight, contentEvents: number, nowMs: Ms): void {
    if (nowMs !== this.#toldAtMs) {
      this.#eventsBefore[this.#tells % TELLS_KEPT] = this.#events
      this.#tells++
      this.#toldAtMs = nowMs
    }
    inFlight.contentEvents += contentEvents
    inFlight.lastTokenAtMs = nowMs
    this.#contextTokens += contentEvents
    this.#events += contentEvents
    this.lastTokenAtMs = nowMs
  }

  /**
   * Content events that streams there have made since that prompt was sent: what was first told afterwards may be of
   * before, and is left out (with workers a second tell may hold a little more of it). Of a prompt sent long ago they are
   * only the last.
   */
  eventsSince({ tellsBefore = this.#tells }: InFlight): number {
    const from = Math.max(tellsBefore + 1, this.#tells - TELLS_KEPT)
    return from < this.#tells ? this.#events - (this.#eventsBefore[from % TELLS_KEPT] ?? this.#events) : 0
  }

  /** Takes a permit out of the books. Throws when it is not in them. */
  release(permitId: PermitId): InFlight {
    const inFlight = this.#prefilling.get(permitId) ?? this.#decoding.get(permitId)
    if (inFlight === undefined) throw new RangeError(`permit ${permitId} is not out at ${this.replicaId}`)
    if (this.#prefilling.has(permitId)) this.#leavePrefill(inFlight)
    else {
      this.#decoding.delete(permitId)
      this.#decodingSequences -= inFlight.offer.sequences
      this.#visibleSequences -= visibleSequences(inFlight)
    }
    this.#contextTokens -= inFlight.offer.promptTokens + inFlight.contentEvents
    this.#version++
    if (this.inFlightRequests === 0) this.#contextTokens = 0
    return inFlight
  }

  #leavePrefill(inFlight: InFlight): void {
    this.#prefilling.delete(inFlight.permitId)
    if (this.#head === inFlight) this.#head = undefined
    this.#prefillingSequences -= inFlight.offer.sequences
    this.#backlogTokens -= inFlight.uncachedTokens
    this.#backlogPairs -= pairsOf(inFlight)
    if (this.#prefilling.size > 0) return
    this.#backlogTokens = 0
    this.#backlogPairs = 0
  }
}

/** Its sequences, once they decode, whose tokens are told as they come: all or none. */
export function visibleSequences({ offer, opaque }: InFlight): number {
  return offer.streamed && opaque !== true ? offer.sequences : 0
}

/** Its `attentionPairs`. */
export function pairsOf({ offer, uncachedTokens }: InFlight): number {
  return offerPairs(offer, uncachedTokens)
}
