/** One replica that does what it is told to, and shows it to whoever learns, as the gate would. */
import { type InFlight, ReplicaLedger } from '../../src/core/ledger.ts'
import type { SettleReport } from '../../src/core/records.ts'
import type { ReplicaReport } from '../../src/core/replica.ts'
import type { Offer } from '../../src/core/request.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'

/** `Learnt`, or a group of it. */
export interface Learner {
  dispatched(inFlight: InFlight, ledger: ReplicaLedger, nowMs: number): void
  firstToken(inFlight: InFlight, ledger: ReplicaLedger, nowMs: number): void
  progress(ledger: ReplicaLedger, tokens: number, nowMs: number): void
  released(inFlight: InFlight, ledger: ReplicaLedger, report: SettleReport | undefined, nowMs: number): void
}

/** A step, the way of a request there and back, and a token of its prompt, in ms. */
const STEP_MS = 20
const OVERHEAD_MS = 10
const PER_TOKEN_MS = 0.1

/** The most prompt tokens in a step. */
const CHUNK_TOKENS = 2048

/** How long a prompt alone takes to its first token, in ms. */
export const promptMs = (tokens: number): number => OVERHEAD_MS + stepsMs(tokens)

function stepsMs(tokens: number): number {
  return STEP_MS * Math.ceil(tokens / CHUNK_TOKENS) + PER_TOKEN_MS * tokens
}

export class ShownReplica {
  readonly ledger: ReplicaLedger
  nowMs = 0
  /** Everything takes this many times as long. */
  slowness = 1
  readonly #learner: Learner
  readonly #noise: () => number
  readonly #inFlights = new Map<number, InFlight>()
  #permitId = 0

  /** `noise` is drawn for each span of time and stretches it. */
  constructor(learner: Learner, report: Partial<ReplicaReport> = {}, noise = () => 1) {
    this.ledger = new ReplicaLedger(reportOf('r1', report))
    this.#learner = learner
    this.#noise = noise
  }

  /** So many requests, one after the other. */
  serve(requests: number): void {
    for (let n = 0; n < requests; n++) {
      const id = this.send()
      this.begin(id)
      for (let round = 0; round < 4; round++) this.stream([id], 8)
      this.end(id)
    }
  }

  /** Prompts are of 200 to 1340 tokens unless it is said. */
  send(change: Partial<Offer> = {}, predictedTtftMs = 40): number {
    const { ledger, nowMs } = this
    const permitId = ++this.#permitId
    const offer = someOffer({ receivedAtMs: nowMs, promptTokens: 200 + 60 * (permitId % 20), ...change })
    const inFlight = inFlightOf(permitId, offer, { dispatchedAtMs: nowMs, predictedTtftMs })
    ledger.dispatch(inFlight)
    this.#learner.dispatched(inFlight, ledger, nowMs)
    this.#inFlights.set(permitId, inFlight)
    return permitId
  }

  /** Its first token, after the time that its prompt takes and those of `ahead`, which were sent before it. */
  begin(id: number, ahead: readonly number[] = []): void {
    const inFlight = this.#get(id)
    const { promptTokens, sequences } = inFlight.offer
    let spanMs = promptMs(promptTokens)
    for (const tokens of ahead) spanMs += stepsMs(tokens)
    this.#pass(spanMs)
    this.#learner.firstToken(inFlight, this.ledger, this.nowMs)
    this.ledger.firstToken(id, this.nowMs)
    if (sequences > 1) this.#tell([id], (sequences - 1) / sequences)
  }

  /** Its first token, behind which nothing can be read. */
  beginOpaque(id: number): void {
    this.#get(id).opaque = true
    this.begin(id)
  }

  /** An answer that does not stream is taken to decode now. */
  assume(id: number): void {
    this.ledger.firstToken(id, this.nowMs)
  }

  /** So many steps of those streams. */
  stream(ids: readonly number[], steps: number): void {
    this.#pass(steps * STEP_MS)
    this.#tell(ids, steps)
  }

  bounce(id: number): void {
    const inFlight = this.#get(id)
    this.ledger.release(id)
    this.#learner.released(inFlight, this.ledger, undefined, this.nowMs)
    this.#inFlights.delete(id)
  }

  end(id: number): void {
    const inFlight = this.#get(id)
    const { firstTokenAtMs = this.nowMs, contentEvents } = inFlight
    const endedAtMs = this.nowMs
    const usage = { outputTokens: 1 + contentEvents }
    this.ledger.release(id)
    const times = { firstTokenAtMs, lastTokenAtMs: endedAtMs, endedAtMs }
    const report = { outcome: 'completed', ...times, contentEvents: usage.outputTokens, usage } as const
    this.#learner.released(inFlight, this.ledger, report, endedAtMs)
    this.#inFlights.delete(id)
  }

  #get(id: number): InFlight {
    const inFlight = this.#inFlights.get(id)
    if (inFlight === undefined) throw new Error(`${id} is not in flight`)
    return inFlight
  }

  /** Each of their sequences has made so many tokens. */
  #tell(ids: readonly number[], each: number): void {
    let events = 0
    for (const id of ids) {
      const inFlight = this.#get(id)
      this.ledger.progress(inFlight, each * inFlight.offer.sequences, this.nowMs)
      events += each * inFlight.offer.sequences
    }
    this.#learner.progress(this.ledger, events, this.nowMs)
  }

  #pass(spanMs: number): void {
    this.nowMs += this.slowness * this.#noise() * spanMs
  }
}
