/** The dispatcher of a virtual run: carries out the gate's effects on engine models and tells the gate what came of it. */
import type { GateEffect } from '../core/effects.ts'
import type { BounceCause, GateEvent } from '../core/events.ts'
import type { Gate } from '../core/gate.ts'
import type { Settlement, SettleOutcome } from '../core/records.ts'
import type { Offer } from '../core/request.ts'
import { MIN_RETRY_MS } from '../core/retry-advice.ts'
import type { Ms } from '../core/units.ts'
import type { Advice, Sending } from './clients.ts'
import type { SequenceView, StepReport } from './engine-types.ts'
import { toEngineRequest } from './offer.ts'
import type { SimOutcome } from './run-types.ts'
import { ProgressReports } from './sim-progress.ts'
import type { Flight, ReplicaOfRun } from './sim-replica.ts'

/** How often the dispatcher tells the gate of decode progress, in ms. */
const PROGRESS_PERIOD_MS: Ms = 100

/** A request between its offer and its settlement. */
export interface Story extends Sending {
  readonly gateIndex: number
  readonly hashes: readonly string[]
  engineMs: Ms
  flight?: Flight
  /** What its client was told when it was refused. */
  advice?: Advice
}

/** What the dispatcher asks to be called back for. */
export type DispatcherEvent =
  | { readonly kind: 'open'; readonly flight: Flight }
  | { readonly kind: 'engine'; readonly replica: ReplicaOfRun }
  | { readonly kind: 'progress' }
  | { readonly kind: 'wake'; readonly gateIndex: number; readonly wish: number }

interface DispatcherParts {
  readonly gates: readonly Gate[]
  readonly replicas: readonly ReplicaOfRun[]
  readonly queue: { push(atMs: Ms, event: DispatcherEvent): void }
  readonly networkMs: Ms
  readonly reportsProgress: boolean
  readonly onEffect: (effect: GateEffect, nowMs: Ms) => void
  readonly onOutcome: (outcome: SimOutcome) => void
  /** The request's story is over. */
  readonly onEnd: (story: Story, outcome: Settlement['outcome']) => void
}

export class SimDispatcher {
  readonly stories = new Map<string, Story>()
  readonly #parts: DispatcherParts
  readonly #progress: ProgressReports
  readonly #wishes: number[]
  #flights = 0
  #progressPlanned = false
  #nowMs: Ms = 0

  constructor(parts: DispatcherParts) {
    this.#parts = parts
    this.#progress = new ProgressReports(parts.gates.length, (gateIndex, event) =>
      this.tell(gateIndex, event),
    )
    this.#wishes = parts.gates.map(() => 0)
  }

  /** Every call below happens at that instant until the next one is set. */
  setNow(nowMs: Ms): void {
    this.#nowMs = nowMs
  }

  /** Offers a request; what was decoded so far belongs to the time before its prefill, so it is told first. */
  offer(gateIndex: number, offer: Offer): void {
    for (const replica of this.#parts.replicas) this.#progress.flush(replica)
    this.tell(gateIndex, { kind: 'offer', offer })
  }

  handle(event: DispatcherEvent): void {
    switch (event.kind) {
      case 'open':
        this.#open(event.flight)
        break
      case 'engine':
        this.#advance(event.replica)
        break
      case 'progress':
        this.#progressPlanned = false
        for (const replica of this.#parts.replicas) this.#progress.flush(replica)
        this.#planProgress()
        break
      case 'wake':
        if (this.#wishes[event.gateIndex] === event.wish) this.tell(event.gateIndex, { kind: 'tick' })
        break
      default:
        event satisfies never
    }
  }

  /** The replica's process is gone: streams with content break, the others come back. */
  kill(replica: ReplicaOfRun): void {
    const flights = [...replica.flights.values()]
    for (const flight of flights) this.#chargeEngine(flight)
    replica.die()
    for (const flight of flights) {
      if (flight.contentEvents > 0) this.#settle(flight, 'truncated')
      else this.#bounce(flight, 'reset')
    }
  }

  tellAll(event: GateEvent): void {
    for (let gateIndex = 0; gateIndex < this.#parts.gates.length; gateIndex++) this.tell(gateIndex, event)
  }

  tell(gateIndex: number, event: GateEvent): void {
    const effects = this.#parts.gates[gateIndex]?.handle(event, this.#nowMs) ?? []
    for (const effect of effects) {
      this.#parts.onEffect(effect, this.#nowMs)
      this.#carryOut(gateIndex, effect)
    }
  }

  #carryOut(gateIndex: number, effect: GateEffect): void {
    if (effect.kind === 'wakeAt') {
      const wish = (this.#wishes[gateIndex] ?? 0) + 1
      this.#wishes[gateIndex] = wish
      this.#parts.queue.push(Math.max(effect.atMs, this.#nowMs), { kind: 'wake', gateIndex, wish })
    } else if (effect.kind === 'dispatch') {
      this.#dispatch(gateIndex, effect)
    } else if (effect.kind === 'shed' || effect.kind === 'fail') {
      const story = this.stories.get(effect.requestId)
      const retryAfterMs = effect.kind === 'shed' ? effect.retryAfterMs : MIN_RETRY_MS
      if (story !== undefined) story.advice = { retryAfterMs }
    } else if (effect.kind === 'settled') {
      this.#end(effect.settlement)
    }
  }

  #end(settlement: Settlement): void {
    const story = this.stories.get(settlement.requestId)
    if (story === undefined) throw new RangeError(`${settlement.requestId} has ended already`)
    this.#parts.onOutcome({ settlement, engineMs: story.engineMs })
    this.stories.delete(settlement.requestId)
    this.#parts.onEnd(story, settlement.outcome)
  }

  #dispatch(gateIndex: number, effect: GateEffect & { kind: 'dispatch' }): void {
    const replica = this.#parts.replicas.find((candidate) => candidate.id === effect.replicaId)
    const story = this.stories.get(effect.requestId)
    if (replica === undefined || story === undefined)
      throw new RangeError(`cannot dispatch ${effect.requestId}`)
    const flight: Flight = {
      gateIndex,
      permitId: effect.permitId,
      offer: effect.record.offer,
      engineId: `${gateIndex}:${effect.permitId}`,
      replica,
      unreportedEvents: 0,
      contentEvents: 0,
      outputTokens: 0,
      cachedTokens: 0,
    }
    story.flight = flight
    replica.flights.set(flight.engineId, flight)
    this.#flights++
    this.#planProgress()
    this.#parts.queue.push(this.#nowMs + this.#parts.networkMs, { kind: 'open', flight })
  }

  #open(flight: Flight): void {
    const { replica, engineId } = flight
    const story = this.stories.get(flight.offer.requestId)
    if (story === undefined || !replica.flights.has(engineId)) return
    if (replica.engine === undefined) {
      this.#bounce(flight, 'connect_failed')
      return
    }
    this.#advance(replica)
    const answer = replica.engine.submit(toEngineRequest(story.request, engineId, story.hashes), this.#nowMs)
    if (answer === 'over_context') this.#settle(flight, 'client_error')
    else if (answer !== 'accepted') this.#bounce(flight, 'engine_full')
    this.#planEngine(replica)
  }

  #advance(replica: ReplicaOfRun): void {
    replica.engine?.advanceTo(this.#nowMs, (report) => this.#step(replica, report))
    this.#planEngine(replica)
  }

  #planEngine(replica: ReplicaOfRun): void {
    const atMs = replica.engine?.nextEventAtMs()
    if (atMs === undefined || atMs === replica.plannedAtMs) return
    replica.plannedAtMs = atMs
    this.#parts.queue.push(atMs, { kind: 'engine', replica })
  }

  #step(replica: ReplicaOfRun, report: StepReport): void {
    for (const sequence of report.emitted) {
      const flight = replica.flights.get(sequence.requestId)
      if (flight === undefined) continue
      this.#token(flight, sequence)
    }
    for (const sequence of report.finished) {
      const flight = replica.flights.get(sequence.requestId)
      if (flight === undefined || sequence.unfinishedSiblings > 0) continue
      this.#addEngineMs(flight, sequence.engineMs)
      this.#settle(flight, 'completed')
    }
  }

  #token(flight: Flight, sequence: SequenceView): void {
    flight.contentEvents++
    flight.outputTokens += sequence.emittedTokens
    flight.lastTokenAtMs = this.#nowMs
    if (flight.firstTokenAtMs === undefined) {
      flight.firstTokenAtMs = this.#nowMs
      flight.cachedTokens = sequence.cachedTokens
      if (flight.offer.streamed) {
        this.#progress.flush(flight.replica)
        this.tell(flight.gateIndex, { kind: 'firstToken', permitId: flight.permitId })
      }
    }
    // Nobody sees the tokens of a whole answer before its end.
    if (this.#parts.reportsProgress && flight.offer.streamed) this.#progress.note(flight)
  }

  #planProgress(): void {
    if (!this.#parts.reportsProgress || this.#progressPlanned || this.#flights === 0) return
    this.#progressPlanned = true
    this.#parts.queue.push(this.#nowMs + PROGRESS_PERIOD_MS, { kind: 'progress' })
  }

  #settle(flight: Flight, outcome: SettleOutcome): void {
    this.#progress.flush(flight.replica)
    this.#close(flight)
    const { firstTokenAtMs, lastTokenAtMs, contentEvents, outputTokens, cachedTokens } = flight
    const promptTokens = this.stories.get(flight.offer.requestId)?.request.promptTokens ?? 0
    this.tell(flight.gateIndex, {
      kind: 'settle',
      permitId: flight.permitId,
      report: {
        outcome,
        endedAtMs: this.#nowMs,
        ...(firstTokenAtMs === undefined ? {} : { firstTokenAtMs }),
        ...(lastTokenAtMs === undefined ? {} : { lastTokenAtMs }),
        contentEvents,
        ...(outcome === 'completed' ? { usage: { promptTokens, outputTokens, cachedTokens } } : {}),
      },
    })
  }

  #bounce(flight: Flight, cause: BounceCause): void {
    this.#close(flight)
    this.tell(flight.gateIndex, { kind: 'bounce', permitId: flight.permitId, cause })
  }

  #close(flight: Flight): void {
    flight.replica.flights.delete(flight.engineId)
    flight.unreportedEvents = 0
    this.#flights--
    const story = this.stories.get(flight.offer.requestId)
    if (story !== undefined) delete story.flight
  }

  /** The client goes, wherever its request is. */
  leave(requestId: string): void {
    const story = this.stories.get(requestId)
    if (story === undefined) return
    const { flight } = story
    if (flight === undefined) {
      this.tell(story.gateIndex, { kind: 'cancel', requestId })
      return
    }
    this.#chargeEngine(flight)
    flight.replica.engine?.abort(flight.engineId)
    this.#settle(flight, 'client_left')
    this.#planEngine(flight.replica)
  }

  /** Books the engine time of a stream that does not end by itself. */
  #chargeEngine(flight: Flight): void {
    this.#addEngineMs(flight, flight.replica.engine?.engineMsOf(flight.engineId) ?? 0)
  }

  #addEngineMs(flight: Flight, engineMs: Ms): void {
    const story = this.stories.get(flight.offer.requestId)
    if (story !== undefined) story.engineMs += engineMs
  }
}
