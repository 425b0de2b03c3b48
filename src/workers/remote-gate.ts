/** A worker's gate: asks the decider, keeps what the answer needs, and decides alone while there is no decider. */

import type { GateEffect } from '../core/effects.ts'
import type { GateEvent, PermitId } from '../core/events.ts'
import type { InFlight } from '../core/ledger.ts'
import { PassingMap } from '../core/passing-map.ts'
import type { ExchangeFacts, Settlement, SettleReport } from '../core/records.ts'
import type { Offer, RequestId } from '../core/request.ts'
import { settleInFlight, settleWaiter } from '../core/settlement.ts'
import type { Ms } from '../core/units.ts'
import type { GatePort } from '../edge/gate-port.ts'
import { judge } from '../slo/judge.ts'
import { OWN_ORIGIN_MS, shiftEvent, shiftExchange, shiftOffer } from './instants.ts'
import type { FromDecider, FromWorker, PermitEvent, Serial } from './wire.ts'

type FromGate = Extract<FromDecider, { kind: 'dispatch' | 'shed' | 'fail' }>

/** Who decides on a request: the decider of that link, counted from 1, or this worker alone. */
type Decider = number
const ALONE: Decider = 0

/** A request that has been offered and is not over. */
interface Open {
  readonly serial: Serial
  readonly offer: Offer
  by: Decider
  waits: boolean
}

/** A permit under this worker's own number, since each decider counts from 1. */
interface Held {
  readonly by: Decider
  readonly permitId: PermitId
  readonly inFlight: InFlight
}

/** Ends kept for the next decider while there is none; beyond it the oldest are lost to the accounts. */
const MAX_KEPT_ENDS = 10_000

export interface RemoteGateOptions {
  /** Decides while the decider is away. */
  readonly alone: GatePort
  /** Carries out what is decided later than asked. */
  readonly carryOut: (effects: readonly GateEffect[]) => void
  readonly nowMs: () => Ms
}

export class RemoteGate implements GatePort {
  readonly #options: RemoteGateOptions
  readonly #requests = new PassingMap<RequestId, Open>()
  readonly #bySerial = new PassingMap<Serial, Open>()
  readonly #permits = new PassingMap<PermitId, Held>()
  /** Requests whose end the decider counts, until its facts have been told. */
  readonly #countedThere = new PassingMap<RequestId, Serial>()
  #keptEnds: Extract<FromWorker, { kind: 'aloneSettled' }>[] = []
  #send: ((message: FromWorker) => void) | undefined
  #links = 0
  #lastPermitId = 0
  #offered = 0
  #offeredAlone = 0

  constructor(options: RemoteGateOptions) {
    this.#options = options
  }

  /** Requests offered so far, and those of them that were decided here. */
  get counts(): { readonly requests: number; readonly aloneRequests: number } {
    return { requests: this.#offered, aloneRequests: this.#offeredAlone }
  }

  /** A decider is there: what is offered from now on goes to it. */
  connected(send: (message: FromWorker) => void): void {
    this.#links++
    this.#send = send
    for (const end of this.#keptEnds.splice(0)) send(end)
  }

  /** The decider is gone. Streams go on, and whoever waited for its answer is decided on here. */
  disconnected(): void {
    this.#send = undefined
    const waiting = [...this.#requests.values()].filter(({ waits, by }) => waits && by !== ALONE)
    for (const open of waiting) this.#options.carryOut(this.#decideAlone(open, this.#options.nowMs()))
  }

  handle(event: GateEvent, nowMs: Ms): readonly GateEffect[] {
    switch (event.kind) {
      case 'offer':
        return this.#offer(event.offer, nowMs)
      case 'firstToken':
        return this.#pass(event.permitId, (permitId) => ({ ...event, permitId }), nowMs)
      case 'progress':
        return this.#progress(event, nowMs)
      case 'settle':
        return this.#settle(event.permitId, event.report, nowMs)
      case 'bounce':
        return this.#bounce(event, nowMs)
      case 'cancel':
        return this.#cancel(event, nowMs)
      default:
        return this.#alone(event, nowMs)
    }
  }

  /** Carries out an answer of the decider. */
  answered(answer: FromGate): void {
    const open = this.#bySerial.get(answer.serial)
    if (open === undefined) {
      // Its client left while the answer was on its way.
      if (answer.kind === 'dispatch') this.#giveBack(answer.permitId)
      return
    }
    this.#options.carryOut(
      answer.kind === 'dispatch' ? this.#dispatch(answer, open) : this.#end(answer, open),
    )
  }

  /** A story is over: the decider counts it, now or when it is back. */
  settled(settlement: Settlement, facts: ExchangeFacts): void {
    const { requestId } = settlement
    const exchange = shiftExchange(facts, OWN_ORIGIN_MS)
    const serial = this.#countedThere.get(requestId)
    if (serial !== undefined) {
      this.#countedThere.delete(requestId)
      this.#send?.({ kind: 'facts', serial, exchange })
      return
    }
    const shifted = { ...settlement, offer: shiftOffer(settlement.offer, OWN_ORIGIN_MS) }
    const end = { kind: 'aloneSettled', settlement: shifted, exchange } as const
    if (this.#send !== undefined) this.#send(end)
    else if (this.#keptEnds.push(end) > MAX_KEPT_ENDS) this.#keptEnds.shift()
  }

  #offer(offer: Offer, nowMs: Ms): readonly GateEffect[] {
    this.#offered++
    // Each request is counted, so its number is its own.
    const open = { serial: this.#offered, offer, by: this.#links, waits: true }
    this.#requests.set(offer.requestId, open)
    this.#bySerial.set(open.serial, open)
    return this.#ask(open, nowMs)
  }

  /** The decider of now is asked, or this worker decides. */
  #ask(open: Open, nowMs: Ms): readonly GateEffect[] {
    if (this.#send === undefined) return this.#decideAlone(open, nowMs)
    open.by = this.#links
    this.#send({ kind: 'offer', serial: open.serial, offer: shiftOffer(open.offer, OWN_ORIGIN_MS) })
    return []
  }

  #decideAlone(open: Open, nowMs: Ms): readonly GateEffect[] {
    this.#offeredAlone++
    open.by = ALONE
    return this.#alone({ kind: 'offer', offer: open.offer }, nowMs)
  }

  #pass(permitId: PermitId, event: (permitId: PermitId) => PermitEvent, nowMs: Ms): readonly GateEffect[] {
    const held = this.#permits.get(permitId)
    if (held === undefined) return []
    if (held.by === ALONE) return this.#alone(event(held.permitId), nowMs)
    if (this.#isPresent(held.by)) this.#tell(event(held.permitId))
    return []
  }

  #progress(event: Extract<GateEvent, { kind: 'progress' }>, nowMs: Ms): readonly GateEffect[] {
    const here = { permitIds: [] as PermitId[], contentEvents: [] as number[] }
    const there = { permitIds: [] as PermitId[], contentEvents: [] as number[] }
    event.permitIds.forEach((permitId, index) => {
      const held = this.#permits.get(permitId)
      if (held === undefined) return
      const side = held.by === ALONE ? here : there
      if (held.by !== ALONE && !this.#isPresent(held.by)) return
      side.permitIds.push(held.permitId)
      side.contentEvents.push(event.contentEvents[index] ?? 0)
    })
    if (there.permitIds.length > 0) this.#tell({ kind: 'progress', ...there })
    return here.permitIds.length > 0 ? this.#alone({ kind: 'progress', ...here }, nowMs) : []
  }

  #settle(permitId: PermitId, report: SettleReport, nowMs: Ms): readonly GateEffect[] {
    const held = this.#take(permitId)
    if (held.by === ALONE) return this.#alone({ kind: 'settle', permitId: held.permitId, report }, nowMs)
    const open = this.#close(held.inFlight.requestId)
    if (this.#isPresent(held.by)) {
      this.#tell({ kind: 'settle', permitId: held.permitId, report })
      if (open !== undefined) this.#countedThere.set(open.offer.requestId, open.serial)
    }
    return [{ kind: 'settled', settlement: settleInFlight(held.inFlight, report, judge) }]
  }

  #bounce(event: Extract<GateEvent, { kind: 'bounce' }>, nowMs: Ms): readonly GateEffect[] {
    const held = this.#take(event.permitId)
    if (held.by === ALONE) return this.#alone({ ...event, permitId: held.permitId }, nowMs)
    const open = this.#requests.get(held.inFlight.requestId)
    if (open === undefined) return []
    open.waits = true
    if (this.#isPresent(held.by)) {
      this.#tell({ ...event, permitId: held.permitId })
      return []
    }
    // Whoever sent it there is gone, and with it what was known of the attempt.
    return this.#ask(open, nowMs)
  }

  #cancel(event: GateEvent & { kind: 'cancel' }, nowMs: Ms): readonly GateEffect[] {
    const { requestId, outcome = 'cancelled' } = event
    const open = this.#requests.get(requestId)
    if (open === undefined) return []
    if (open.by === ALONE) return this.#alone(event, nowMs)
    this.#close(requestId)
    this.#send?.({ kind: 'cancel', serial: open.serial, outcome })
    this.#countedThere.set(requestId, open.serial)
    const end = { offer: open.offer, attempt: 1 } as const
    return [{ kind: 'settled', settlement: settleWaiter(end, { outcome }, judge, nowMs) }]
  }

  #dispatch(answer: Extract<FromGate, { kind: 'dispatch' }>, open: Open): readonly GateEffect[] {
    const { replicaId, attempt } = answer
    const { offer } = open
    const { requestId } = offer
    open.waits = false
    const dispatchedAtMs = answer.record.atMs - OWN_ORIGIN_MS
    const record = { ...answer.record, atMs: dispatchedAtMs, offer }
    const predictedTtftMs = record.candidates[0]?.predictedTtftMs
    const permitId = this.#hold(open.by, {
      ...{ permitId: answer.permitId, requestId, replicaId, offer, attempt, dispatchedAtMs },
      enteredAtMs: offer.receivedAtMs,
      uncachedTokens: record.candidates[0]?.uncachedTokens ?? offer.promptTokens,
      ...(predictedTtftMs === undefined ? {} : { predictedTtftMs }),
      contentEvents: 0,
    })
    return [{ kind: 'dispatch', requestId, permitId, replicaId, attempt, record }]
  }

  #end(answer: Exclude<FromGate, { kind: 'dispatch' }>, { serial, offer }: Open): readonly GateEffect[] {
    const { requestId } = offer
    this.#close(requestId)
    this.#countedThere.set(requestId, serial)
    const failed = { outcome: 'upstream_failed' } as const
    const end = answer.kind === 'fail' ? failed : ({ outcome: 'shed', shedReason: answer.reason } as const)
    const settlement = settleWaiter({ offer, attempt: 1 }, end, judge, this.#options.nowMs())
    const settled = { kind: 'settled', settlement } as const
    if (answer.kind === 'fail') return [{ kind: 'fail', requestId, reason: 'upstream_failed' }, settled]
    const { serial: _, ...shed } = answer
    return [{ ...shed, requestId, record: { ...shed.record, offer } }, settled]
  }

  /** Has the gate of this worker decide, and takes its permits into the one list. */
  #alone(event: GateEvent, nowMs: Ms): readonly GateEffect[] {
    return this.#options.alone.handle(event, nowMs).map((effect) => this.#decidedAlone(effect, nowMs))
  }

  #decidedAlone(effect: GateEffect, nowMs: Ms): GateEffect {
    if (effect.kind === 'settled') this.#close(effect.settlement.requestId)
    if (effect.kind !== 'dispatch') return effect
    const { permitId, requestId, replicaId, attempt, record } = effect
    const { offer } = record
    const open = this.#requests.get(requestId)
    if (open !== undefined) open.waits = false
    const instants = { enteredAtMs: offer.receivedAtMs, dispatchedAtMs: nowMs }
    const size = { uncachedTokens: offer.promptTokens, contentEvents: 0 }
    const inFlight = { permitId, requestId, replicaId, offer, attempt, ...instants, ...size }
    return { ...effect, permitId: this.#hold(ALONE, inFlight) }
  }

  /** It is over: no answer about it is heard any more. */
  #close(requestId: RequestId): Open | undefined {
    const open = this.#requests.get(requestId)
    this.#requests.delete(requestId)
    if (open !== undefined) this.#bySerial.delete(open.serial)
    return open
  }

  #hold(by: Decider, inFlight: InFlight): PermitId {
    this.#permits.set(++this.#lastPermitId, { by, permitId: inFlight.permitId, inFlight })
    return this.#lastPermitId
  }

  #take(permitId: PermitId): Held {
    const held = this.#permits.get(permitId)
    if (held === undefined) throw new RangeError(`permit ${permitId} is not out`)
    this.#permits.delete(permitId)
    return held
  }

  #giveBack(permitId: PermitId): void {
    const report = { outcome: 'client_left', endedAtMs: this.#options.nowMs(), contentEvents: 0 } as const
    this.#tell({ kind: 'settle', permitId, report })
  }

  #isPresent(by: Decider): boolean {
    return this.#send !== undefined && by === this.#links
  }

  #tell(event: PermitEvent): void {
    this.#send?.({ kind: 'event', event: shiftEvent(event, OWN_ORIGIN_MS) })
  }
}
