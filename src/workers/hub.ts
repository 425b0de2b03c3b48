/** The decider's front: hands workers' events to the one gate, and what it wants to the worker whose request it is. */

import type { GateEffect } from '../core/effects.ts'
import type { GateEvent } from '../core/events.ts'
import { PassingMap } from '../core/passing-map.ts'
import type { DecisionRecord, Settlement } from '../core/records.ts'
import type { ReplicaId, RequestId } from '../core/request.ts'
import type { GateState } from '../core/scheduler.ts'
import type { Ms } from '../core/units.ts'
import type { Clock } from '../edge/clock.ts'
import type { GatePort } from '../edge/gate-port.ts'
import type { EdgeObserver } from '../edge/observer.ts'
import { WakeTimer } from '../edge/wake-timer.ts'
import { brokenOffReport } from './broken-off.ts'
import { OWN_ORIGIN_MS, shiftEvent, shiftExchange, shiftOffer } from './instants.ts'
import { ProgressBook, type ProgressEvent } from './progress-book.ts'
import { Seat, type SeatLink } from './seat.ts'
import type { FromDecider, FromWorker, PermitEvent, Serial, SlimRecord } from './wire.ts'

/** How often the gate is told of tokens when nothing else happens, as by an edge of its own process. */
const PROGRESS_MS: Ms = 100

export interface HubOptions {
  readonly gate: GatePort & { readonly state: GateState }
  readonly clock: Clock
  readonly observer: EdgeObserver
}

export class Hub {
  readonly seats = new Map<number, Seat>()
  readonly #options: HubOptions
  readonly #wake: WakeTimer
  readonly #seatOf = new PassingMap<RequestId, Seat>()
  readonly #events: GateEvent[] = []
  readonly #progress = new ProgressBook()
  #stopFlush: (() => void) | undefined
  #telling = false

  constructor(options: HubOptions) {
    this.#options = options
    this.#wake = new WakeTimer(options.clock, () => this.tell({ kind: 'tick' }))
  }

  /** Requests offered and not over. */
  get underWay(): number {
    return this.#seatOf.size
  }

  /** Hands an event to the gate and passes on what it wants; events that arise meanwhile follow in order. */
  tell(event: GateEvent): void {
    this.#events.push(event)
    if (this.#telling) return
    this.#telling = true
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift())
        this.#decide(next)
    } finally {
      this.#telling = false
    }
  }

  /** A worker has said who it is. Whoever sat there before is gone. */
  seat(worker: number, pid: number, link: SeatLink): Seat {
    const before = this.seats.get(worker)
    before?.cut('the worker has opened another link')
    // The same one goes on with its streams and will tell how they end.
    if (before !== undefined && before.pid !== pid) this.#count(before)
    const seat = new Seat(worker, pid, link)
    this.seats.set(worker, seat)
    return seat
  }

  /** The link of a seat is over: its waiters leave and its permits come back, each once. */
  lost(seat: Seat): { readonly waiting: number; readonly permits: number } {
    if (!seat.up) return { waiting: 0, permits: 0 }
    this.#flush()
    seat.up = false
    const waiting = [...seat.requests].filter(([, { permitId, settlement }]) => !permitId && !settlement)
    const permits = [...seat.permits.keys()]
    // Waiters first, or they would be given the places of the streams that end.
    for (const [requestId] of waiting) this.tell({ kind: 'cancel', requestId, outcome: 'draining' })
    for (const permitId of permits) this.#release(seat, permitId)
    for (const [requestId, { settlement, facts }] of [...seat.requests]) {
      if (settlement !== undefined) this.#options.observer.onSettled(settlement, facts ?? {})
      this.#forget(requestId)
    }
    return { waiting: waiting.length, permits: permits.length }
  }

  /** A worker has taken a request in. The gate knows it by the id that clients see, made unique among all workers. */
  offered(seat: Seat, { serial, offer }: Extract<FromWorker, { kind: 'offer' }>): void {
    const shown = offer.requestId
    let requestId = shown
    for (let turn = 1; this.#seatOf.has(requestId); turn++) requestId = `${shown}.w${seat.worker}-${turn}`
    this.#seatOf.set(requestId, seat)
    seat.add(requestId, serial)
    this.#flush()
    this.tell({ kind: 'offer', offer: { ...shiftOffer(offer, -OWN_ORIGIN_MS), requestId } })
  }

  /** A request of that worker waits no longer. */
  cancelled(seat: Seat, { serial, outcome }: Extract<FromWorker, { kind: 'cancel' }>): void {
    const requestId = seat.nameOf(serial)
    if (requestId === undefined) return
    this.tell({ kind: 'cancel', requestId, ...(outcome === undefined ? {} : { outcome }) })
  }

  /** An event of a permit as a worker tells it: in machine time. */
  heard(seat: Seat, event: PermitEvent): void {
    const own = shiftEvent(event, -OWN_ORIGIN_MS)
    switch (own.kind) {
      case 'progress':
        this.#progressed(seat, own)
        break
      case 'settle':
      case 'bounce':
      case 'firstToken': {
        const permit = seat.permits.get(own.permitId)
        if (permit === undefined) break
        this.#flush(permit.replicaId)
        if (own.kind !== 'firstToken') this.#takeBack(seat, own.permitId)
        this.tell(own)
        break
      }
      default:
        own satisfies never
    }
  }

  /** What the log is to say of a request: counts it, or waits for its end. */
  facts(seat: Seat, { serial, exchange }: Extract<FromWorker, { kind: 'facts' }>): void {
    const requestId = seat.nameOf(serial)
    const request = requestId === undefined ? undefined : seat.requests.get(requestId)
    if (requestId === undefined || request === undefined) return
    request.facts = shiftExchange(exchange, -OWN_ORIGIN_MS)
    this.#join(seat, requestId)
  }

  /** The end of a request that a worker decided on alone. */
  aloneSettled({ settlement, exchange }: Extract<FromWorker, { kind: 'aloneSettled' }>): void {
    const offer = shiftOffer(settlement.offer, -OWN_ORIGIN_MS)
    this.#options.observer.onSettled({ ...settlement, offer }, shiftExchange(exchange, -OWN_ORIGIN_MS))
  }

  broadcast(message: FromDecider, except?: Seat): void {
    for (const seat of this.seats.values()) if (seat !== except) seat.send(message)
  }

  /** Nobody comes back any more. */
  close(): void {
    this.#wake.cancel()
    this.#stopFlush?.()
    for (const seat of this.seats.values()) {
      seat.cut('this Sluice is shutting down')
      this.#count(seat)
    }
  }

  #progressed(seat: Seat, { permitIds, contentEvents }: ProgressEvent): void {
    permitIds.forEach((permitId, index) => {
      const permit = seat.permits.get(permitId)
      if (permit !== undefined) this.#progress.add(permit, contentEvents[index] ?? 0)
    })
    this.#stopFlush ??= this.#options.clock.after(PROGRESS_MS, () => this.#flush())
  }

  /** Tells the gate what was decoded at a replica, or at all of them, before it hears of anything later. */
  #flush(replicaId?: ReplicaId): void {
    if (replicaId === undefined) {
      this.#stopFlush?.()
      this.#stopFlush = undefined
    }
    const told = this.#progress.take(replicaId)
    if (told !== undefined) this.tell(told)
  }

  #takeBack(seat: Seat, permitId: number): void {
    const requestId = seat.permits.get(permitId)?.requestId ?? ''
    seat.permits.delete(permitId)
    delete seat.requests.get(requestId)?.permitId
  }

  #release(seat: Seat, permitId: number): void {
    const ledger = this.#options.gate.state.replicas.get(seat.permits.get(permitId)?.replicaId ?? '')
    const decoding = ledger?.decoding.get(permitId)
    this.#takeBack(seat, permitId)
    const report = brokenOffReport(decoding, this.#options.clock.nowMs())
    this.tell({ kind: 'settle', permitId, report })
  }

  #decide(event: GateEvent): void {
    const { gate, clock, observer } = this.#options
    const nowMs = clock.nowMs()
    try {
      for (const effect of gate.handle(event, nowMs)) this.#passOn(effect)
    } catch (error) {
      observer.onFault(error)
      if (event.kind === 'offer') this.#abandon(event.offer.requestId)
    }
    observer.onDecided(clock.nowMs() - nowMs)
  }

  #passOn(effect: GateEffect): void {
    switch (effect.kind) {
      case 'dispatch':
        this.#dispatch(effect)
        break
      case 'shed': {
        const { requestId, record, ...rest } = effect
        this.#options.observer.onDecision(record)
        this.#answer(requestId, (serial) => ({ ...rest, serial, record: slim(record) }))
        break
      }
      case 'fail':
        this.#answer(effect.requestId, (serial) => ({ kind: 'fail', serial }))
        break
      case 'drop':
        // Nobody is owed an answer; its settlement follows.
        break
      case 'settled':
        this.#settled(effect.settlement)
        break
      case 'wakeAt':
        this.#wake.at(effect.atMs)
        break
      default:
        effect satisfies never
    }
  }

  #dispatch({ requestId, record, ...rest }: Extract<GateEffect, { kind: 'dispatch' }>): void {
    const { permitId, replicaId } = rest
    const seat = this.#seatOf.get(requestId)
    const request = seat?.requests.get(requestId)
    if (seat !== undefined && request !== undefined) {
      request.permitId = permitId
      seat.permits.set(permitId, { permitId, requestId, replicaId, untoldEvents: 0 })
      seat.send({ ...rest, serial: request.serial, record: slim(record) })
    } else {
      const endedAtMs = this.#options.clock.nowMs()
      this.tell({
        kind: 'settle',
        permitId,
        report: { outcome: 'client_left', endedAtMs, contentEvents: 0 },
      })
    }
    this.#options.observer.onDecision(record)
  }

  #answer(requestId: RequestId, message: (serial: Serial) => FromDecider): void {
    const seat = this.#seatOf.get(requestId)
    const request = seat?.requests.get(requestId)
    if (request !== undefined) seat?.send(message(request.serial))
  }

  #settled(settlement: Settlement): void {
    const { requestId } = settlement
    const seat = this.#seatOf.get(requestId)
    const request = seat?.requests.get(requestId)
    if (seat === undefined || request === undefined) {
      this.#options.observer.onSettled(settlement, {})
    } else if (seat.up) {
      request.settlement = settlement
      this.#join(seat, requestId)
    } else {
      seat.madeUp.push(settlement)
      this.#forget(requestId)
    }
  }

  #join(seat: Seat, requestId: RequestId): void {
    const { settlement, facts } = seat.requests.get(requestId) ?? {}
    if (settlement === undefined || facts === undefined) return
    this.#forget(requestId)
    this.#options.observer.onSettled(settlement, facts)
  }

  /** The gate has failed on that offer: it knows nothing of it, so the worker ends it. */
  #abandon(requestId: RequestId): void {
    this.#answer(requestId, (serial) => ({ kind: 'fail', serial }))
    this.#forget(requestId)
  }

  #forget(requestId: RequestId): void {
    this.#seatOf.get(requestId)?.forget(requestId)
    this.#seatOf.delete(requestId)
  }

  #count(seat: Seat): void {
    for (const settlement of seat.madeUp.splice(0)) this.#options.observer.onSettled(settlement, {})
  }
}

/** Headers tell of the chosen replica only. */
function slim({ offer: _, ...record }: DecisionRecord): SlimRecord {
  const { verdict, candidates, atMs } = record
  const chosen = verdict.kind === 'admit' ? verdict.replicaId : undefined
  const kept = candidates.filter(({ replicaId }) => replicaId === chosen)
  return { ...record, atMs: atMs + OWN_ORIGIN_MS, candidates: kept }
}
