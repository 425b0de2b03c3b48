/** Carries out what the gate decides: keeps the stories under way, the gate's one timer, and the counters it is fed. */
import type { GateEffect } from '../core/effects.ts'
import type { BounceCause, GateEvent } from '../core/events.ts'
import type { SettleReport } from '../core/records.ts'
import type { ReplicaId, RequestId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { Fleet } from '../upstream/ports.ts'
import type { ClientAnswer } from './answer.ts'
import type { Clock } from './clock.ts'
import { decisionHeaders, shedMessage } from './decision-words.ts'
import type { GatePort } from './gate-port.ts'
import type { Intake } from './intake.ts'
import type { EdgeObserver } from './observer.ts'
import type { PromptSizer } from './prompt-size.ts'
import { Relay, type RelayOwner } from './relay.ts'
import type { RequestTrace } from './request-trace.ts'
import { keepAlive, mayBeItsOwn, Stories } from './stories.ts'
import { Streams } from './streams.ts'
import { WakeTimer } from './wake-timer.ts'

export interface DispatcherOptions {
  readonly gate: GatePort
  readonly fleet: Pick<Fleet, 'replica'>
  readonly clock: Clock
  readonly observer: EdgeObserver
  readonly sizer: PromptSizer
  /** The first bytes of an answer, as they go out. */
  readonly onFirstBytes?: (relay: Relay, bytes: Uint8Array) => void
}

const GATE_FAILED = 'a fault of Sluice itself; the log has it'
/** How often progress is told and silence is looked at. */
const SWEEP_MS: Ms = 100

export class Dispatcher implements RelayOwner {
  readonly #gate: GatePort
  readonly #fleet: Pick<Fleet, 'replica'>
  readonly #clock: Clock
  readonly #observer: EdgeObserver
  readonly #sizer: PromptSizer
  readonly #onFirstBytes: (relay: Relay, bytes: Uint8Array) => void
  readonly #stories = new Stories()
  readonly #streams = new Streams()
  readonly #wake: WakeTimer
  readonly #events: GateEvent[] = []
  #telling = false
  #cancelSweep: (() => void) | undefined

  constructor(options: DispatcherOptions) {
    this.#gate = options.gate
    this.#fleet = options.fleet
    this.#wake = new WakeTimer(options.clock, () => this.tell({ kind: 'tick' }))
    this.#clock = options.clock
    this.#observer = options.observer
    this.#sizer = options.sizer
    this.#onFirstBytes = options.onFirstBytes ?? (() => {})
  }

  /** Requests offered and not answered to their end. */
  get underWay(): number {
    return this.#stories.size
  }

  isUnderWay(requestId: RequestId): boolean {
    return this.#stories.get(requestId) !== undefined
  }

  /** Takes a request over: from here on exactly one answer and one settlement will come of it. */
  offer(intake: Intake, answer: ClientAnswer, trace?: RequestTrace): void {
    const { requestId } = intake.offer
    if (answer.left) {
      intake.body.release()
      return
    }
    this.#stories.add({ intake, answer, trace })
    answer.onLeft = () => this.#clientLeft(requestId)
    this.#sweepLater()
    // It may be dispatched at once: what was decoded so far belongs to the time before its prefill.
    this.tellProgress()
    this.tell({ kind: 'offer', offer: intake.offer })
  }

  /** Hands an event to the gate and carries out what it wants; events that arise meanwhile follow in order. */
  tell(event: GateEvent): void {
    this.#events.push(event)
    if (this.#telling) return
    this.#telling = true
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
        this.#decide(next)
      }
    } finally {
      this.#telling = false
    }
  }

  /** Carries out what a gate wants that answers later. */
  carryOut(effects: readonly GateEffect[]): void {
    for (const effect of effects) this.#carryOut(effect)
  }

  /** Tells what has been decoded since the last telling. */
  tellProgress(): void {
    const told = this.#streams.progress()
    if (told !== undefined) this.tell({ kind: 'progress', ...told })
  }

  /** Resolves as soon as no request is under way. */
  idle(): Promise<void> {
    return this.#stories.idle()
  }

  /** Ends whatever is under way: time is up. Waiters first, or they would take the places of the streams that end. */
  endAll(): void {
    const stories = [...this.#stories]
    for (const [requestId, story] of stories) {
      if (story.relay === undefined) this.#withdraw(requestId, 'draining', 'this Sluice is shutting down')
    }
    for (const [, story] of stories) story.relay?.drain()
  }

  /** Stops the timers. Nothing may be under way any more. */
  close(): void {
    this.#wake.cancel()
    this.#cancelSweep?.()
    this.#cancelSweep = undefined
  }

  firstToken(relay: Relay): void {
    this.#flush(relay.replica.id)
    this.tell({ kind: 'firstToken', permitId: relay.permitId, opaque: relay.tally.opaque })
  }

  committed(relay: Relay, bytes: Uint8Array): void {
    relay.intake.body.release()
    this.#onFirstBytes(relay, bytes)
  }

  bounced(relay: Relay, cause: BounceCause, message: string): void {
    this.#flush(relay.replica.id)
    this.#streams.remove(relay)
    const story = this.#stories.get(relay.intake.offer.requestId)
    if (story !== undefined) {
      delete story.relay
      story.lastFailure = { cause, message }
      story.trace?.bounced(cause, this.#clock.nowMs())
    }
    this.#observer.onBounced(relay.replica.id, cause, message)
    this.tell({ kind: 'bounce', permitId: relay.permitId, cause })
  }

  settled(relay: Relay, report: SettleReport): void {
    this.#flush(relay.replica.id)
    this.#streams.remove(relay)
    const { offer, parts } = relay.intake
    const promptTokens = report.usage?.promptTokens
    if (promptTokens !== undefined) this.#sizer.learn(offer.pool, parts, promptTokens)
    this.tell({ kind: 'settle', permitId: relay.permitId, report })
  }

  #decide(event: GateEvent): void {
    const nowMs = this.#clock.nowMs()
    try {
      this.carryOut(this.#gate.handle(event, nowMs))
    } catch (error) {
      this.#observer.onFault(error)
      this.#abandon(event)
    }
    this.#observer.onDecided(this.#clock.nowMs() - nowMs)
  }

  #carryOut(effect: GateEffect): void {
    switch (effect.kind) {
      case 'dispatch':
        this.#dispatch(effect)
        break
      case 'shed':
        this.#shed(effect)
        break
      case 'fail':
        this.#refuse(effect.requestId, 'upstream_failed', this.#failureOf(effect.requestId))
        break
      case 'drop':
        // Nobody is owed an answer; its settlement follows.
        break
      case 'settled':
        this.#observer.onSettled(effect.settlement, this.#stories.close(effect.settlement.requestId))
        break
      case 'wakeAt':
        this.#wake.at(effect.atMs)
        break
      default:
        effect satisfies never
    }
  }

  #dispatch(effect: Extract<GateEffect, { kind: 'dispatch' }>): void {
    const { requestId, permitId, replicaId, attempt, record } = effect
    const story = this.#stories.get(requestId)
    const replica = this.#fleet.replica(replicaId)
    if (story === undefined) {
      this.#observer.onDecision(record)
      const report = { outcome: 'client_left', endedAtMs: this.#clock.nowMs(), contentEvents: 0 } as const
      this.tell({ kind: 'settle', permitId, report })
      return
    }
    if (replica === undefined) {
      // It went away between the decision and now.
      this.#observer.onDecision(record)
      this.tell({ kind: 'bounce', permitId, cause: 'connect_failed' })
      return
    }
    const { intake, answer, trace, lastFailure } = story
    answer.set(decisionHeaders(record, replica.name))
    const suspect = lastFailure !== undefined && mayBeItsOwn(lastFailure)
    const clock = this.#clock
    const relay = new Relay({ permitId, intake, answer, replica, suspect, clock, owner: this })
    story.relay = relay
    this.#streams.add(relay)
    try {
      relay.open(trace?.sent({ attempt, replicaId }, this.#clock.nowMs()))
    } catch (error) {
      this.#observer.onFault(error)
      relay.bounce('connect_failed', 'the exchange could not be opened', false)
    }
    // The request is on its way before its decision is booked.
    this.#observer.onDecision(record)
  }

  #shed(effect: Extract<GateEffect, { kind: 'shed' }>): void {
    this.#observer.onDecision(effect.record)
    const story = this.#stories.get(effect.requestId)
    story?.answer.set({ ...decisionHeaders(effect.record, undefined), 'x-sluice-decision': 'shed' })
    this.#refuse(effect.requestId, effect.reason, shedMessage(effect), effect.retryAfterMs)
  }

  #refuse(
    requestId: RequestId,
    code: Parameters<ClientAnswer['refuse']>[0],
    message: string,
    retryAfterMs?: Ms,
  ): void {
    const answer = this.#stories.get(requestId)?.answer
    answer?.refuse(code, message, { retryAfterMs })
  }

  /** The gate has failed on that event, so no settlement will end its story. */
  #abandon(event: GateEvent): void {
    if (event.kind === 'settle') this.#stories.closePermit(event.permitId)
    if (event.kind !== 'offer') return
    this.#refuse(event.offer.requestId, 'internal', GATE_FAILED)
    this.#stories.close(event.offer.requestId)
  }

  #clientLeft(requestId: RequestId): void {
    const story = this.#stories.get(requestId)
    if (story?.relay !== undefined) story.relay.clientLeft()
    else if (story !== undefined) this.tell({ kind: 'cancel', requestId })
  }

  /** Takes a waiter out from our side and says why. */
  #withdraw(requestId: RequestId, code: 'draining' | 'upstream_timeout', message: string): void {
    this.#refuse(requestId, code, message)
    this.tell({ kind: 'cancel', requestId, outcome: code })
    this.#stories.close(requestId)
  }

  #failureOf(requestId: RequestId): string {
    return this.#stories.get(requestId)?.lastFailure?.message ?? 'the replica failed before any content'
  }

  #flush(replicaId: ReplicaId): void {
    const told = this.#streams.progressOf(replicaId)
    if (told !== undefined) this.tell({ kind: 'progress', ...told })
  }

  #sweepLater(): void {
    this.#cancelSweep ??= this.#clock.after(SWEEP_MS, () => {
      this.#cancelSweep = undefined
      this.#sweep()
      if (this.#stories.size > 0) this.#sweepLater()
    })
  }

  #sweep(): void {
    this.tellProgress()
    const nowMs = this.#clock.nowMs()
    for (const [requestId, story] of this.#stories) {
      const { offer, settings } = story.intake
      const expired = nowMs - offer.receivedAtMs > settings.limits.requestMs
      if (story.relay !== undefined) {
        if (expired) story.relay.expire()
        else story.relay.sweep(nowMs)
      } else if (expired) {
        const message = 'the request took longer than limits.request'
        this.#withdraw(requestId, 'upstream_timeout', message)
      } else keepAlive(story, nowMs)
    }
  }
}
