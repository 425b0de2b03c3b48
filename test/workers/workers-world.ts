/** Workers and deciders without processes or sockets: real gates on both ends, and links that a test delivers, cuts or kills. */
import type { GateEffect } from '../../src/core/effects.ts'
import type { GateEvent, PermitId } from '../../src/core/events.ts'
import { createGate, type Gate } from '../../src/core/gate.ts'
import type { Settlement } from '../../src/core/records.ts'
import type { RequestId } from '../../src/core/request.ts'
import type { EdgeObserver } from '../../src/edge/observer.ts'
import { createLeastOutstanding } from '../../src/policies/plain/least-outstanding.ts'
import { createConcurrencyLimit } from '../../src/policies/rivals/concurrency-limit.ts'
import { judge } from '../../src/slo/judge.ts'
import { Hub } from '../../src/workers/hub.ts'
import { RemoteGate } from '../../src/workers/remote-gate.ts'
import type { Seat } from '../../src/workers/seat.ts'
import type { FromDecider, FromWorker } from '../../src/workers/wire.ts'
import { reportOf, settingsOf, someOffer } from '../core/core-rig.ts'
import { ManualClock } from '../support/manual-clock.ts'

const REPLICAS = ['r1', 'r2'].map((id) => reportOf(id))
const through = <T>(message: T): T => JSON.parse(JSON.stringify(message)) as T

/** What the dispatcher of a worker does, without sockets. */
export class WorldWorker {
  readonly gate: RemoteGate
  readonly alone: Gate
  /** Requests without an answer, with the permit that they run under. */
  readonly open = new Map<RequestId, PermitId | undefined>()
  /** How each ended here: requests are told apart by their product, since ids come again. */
  readonly ended = new Map<string, Settlement>()
  readonly outbox: FromWorker[] = []
  readonly inbox: FromDecider[] = []
  readonly #clock: ManualClock

  constructor(clock: ManualClock) {
    this.#clock = clock
    this.alone = createGate({ settings: settingsOf(), scheduler: createLeastOutstanding(), judge })
    this.gate = new RemoteGate({
      alone: this.alone,
      carryOut: (effects) => this.#carryOut(effects),
      nowMs: () => clock.nowMs(),
    })
    for (const replica of REPLICAS) this.tell({ kind: 'replicaChanged', replica })
  }

  get running(): readonly PermitId[] {
    return [...this.open.values()].filter((permitId) => permitId !== undefined)
  }
  get waiting(): readonly RequestId[] {
    return [...this.open].filter(([, permitId]) => permitId === undefined).map(([id]) => id)
  }

  tell(event: GateEvent): void {
    this.#carryOut(this.gate.handle(event, this.#clock.nowMs()))
  }

  /** As the edge does it: an id that is in use gets an addition. */
  offer(clientId: RequestId, product: string): void {
    const requestId = this.open.has(clientId) ? `${clientId}.${product}` : clientId
    this.open.set(requestId, undefined)
    const receivedAtMs = this.#clock.nowMs()
    this.tell({ kind: 'offer', offer: someOffer({ requestId, product, receivedAtMs }) })
  }

  leave(requestId: RequestId): void {
    this.tell({ kind: 'cancel', requestId })
  }

  settle(permitId: PermitId): void {
    const endedAtMs = this.#clock.nowMs()
    const report = { outcome: 'completed', endedAtMs, firstTokenAtMs: endedAtMs, contentEvents: 1 } as const
    this.tell({ kind: 'settle', permitId, report })
  }

  bounce(permitId: PermitId): void {
    for (const [id, held] of this.open) if (held === permitId) this.open.set(id, undefined)
    this.tell({ kind: 'bounce', permitId, cause: 'reset' })
  }

  #carryOut(effects: readonly GateEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === 'dispatch') {
        if (this.open.get(effect.requestId) !== undefined) throw new Error('dispatched twice')
        this.open.set(effect.requestId, effect.permitId)
      } else if (effect.kind === 'settled') {
        const { requestId } = effect.settlement
        if (!this.open.delete(requestId)) throw new Error(`${requestId} was answered twice`)
        this.ended.set(effect.settlement.offer.product, effect.settlement)
        this.gate.settled(effect.settlement, { status: 200 })
      }
    }
  }
}

export class WorkersWorld {
  readonly clock = new ManualClock(1000)
  readonly counted: Settlement[] = []
  readonly faults: unknown[] = []
  /** Products of the requests that a decider has heard of. */
  readonly offeredThere = new Set<string>()
  readonly workers: WorldWorker[] = []
  gate: Gate
  hub: Hub
  readonly #seats: (Seat | undefined)[] = []
  readonly #pids: number[] = []
  #lastPid = 0
  #lastRequest = 0

  constructor(workers: number) {
    ;({ gate: this.gate, hub: this.hub } = this.#decider())
    for (let at = 0; at < workers; at++) this.#start(at)
  }

  /** The next request, which is the product `p1`, `p2`, …; clients choose one id again and again. */
  offer(at: number): void {
    this.workers[at]?.offer('same', `p${++this.#lastRequest}`)
  }

  /** Hands over the oldest messages of both directions. */
  deliver(at: number, count: number): void {
    for (let left = count; left > 0; left--) {
      this.bringUp(at)
      this.bringDown(at)
    }
  }

  /** Hands the oldest message of a worker to the decider. */
  bringUp(at: number): void {
    const [message, seat] = [this.workers[at]?.outbox.shift(), this.#seats[at]]
    if (message !== undefined && seat !== undefined) this.#heard(seat, through(message))
  }

  /** Hands the decider's oldest message to a worker. */
  bringDown(at: number): void {
    const worker = this.workers[at]
    const message = worker?.inbox.shift()
    if (worker !== undefined && message !== undefined) hear(worker, through(message))
  }

  /** The worker dies, with what it had not sent. */
  kill(at: number): void {
    const seat = this.#seats[at]
    if (seat !== undefined) this.hub.lost(seat)
    this.#start(at)
  }

  /** The link breaks, with what is on it; the worker opens another later. */
  cut(at: number): void {
    const [worker, seat] = [this.workers[at], this.#seats[at]]
    if (worker === undefined || seat === undefined) return
    this.#seats[at] = undefined
    worker.outbox.length = 0
    worker.inbox.length = 0
    this.hub.lost(seat)
    worker.gate.disconnected()
  }

  connect(at: number): void {
    const worker = this.workers[at]
    if (worker === undefined || this.#seats[at] !== undefined) return
    const link = { send: (message: FromDecider) => void worker.inbox.push(message), close: () => {} }
    this.#seats[at] = this.hub.seat(at + 1, this.#pids[at] ?? 0, link)
    worker.gate.connected((message) => void worker.outbox.push(message))
  }

  /** The decider dies with all that it knows, and another takes its place. */
  killDecider(): void {
    for (const [at, worker] of this.workers.entries()) {
      if (this.#seats[at] === undefined) continue
      this.#seats[at] = undefined
      worker.outbox.length = 0
      worker.inbox.length = 0
      worker.gate.disconnected()
    }
    ;({ gate: this.gate, hub: this.hub } = this.#decider())
  }

  /** Lets everything come to its end. */
  finish(): void {
    for (const at of this.workers.keys()) this.connect(at)
    for (let turn = 0; turn < 200; turn++) {
      for (const [at, worker] of this.workers.entries()) {
        this.deliver(at, 50)
        for (const permitId of worker.running) worker.settle(permitId)
      }
      this.clock.advance(50)
    }
    this.hub.close()
  }

  #start(at: number): void {
    this.workers[at] = new WorldWorker(this.clock)
    this.#pids[at] = ++this.#lastPid
    this.#seats[at] = undefined
    this.connect(at)
  }

  #decider(): { readonly gate: Gate; readonly hub: Hub } {
    const scheduler = createConcurrencyLimit({ maxInFlight: 2, queueMs: 1000 })
    const gate = createGate({ settings: settingsOf(), scheduler, judge })
    const nothing = () => {}
    const observer: EdgeObserver = {
      onDecision: nothing,
      onSettled: (settlement) => this.counted.push(settlement),
      ...{ onBounced: nothing, onRejected: nothing, onClamped: nothing, onDecided: nothing },
      onFault: (error) => this.faults.push(error),
    }
    const hub = new Hub({ gate, clock: this.clock, observer })
    for (const replica of REPLICAS) hub.tell({ kind: 'replicaChanged', replica })
    return { gate, hub }
  }

  #heard(seat: Seat, message: FromWorker): void {
    if (message.kind === 'offer') {
      this.offeredThere.add(message.offer.product)
      this.hub.offered(seat, message)
    } else if (message.kind === 'cancel') this.hub.cancelled(seat, message)
    else if (message.kind === 'event') this.hub.heard(seat, message.event)
    else if (message.kind === 'facts') this.hub.facts(seat, message)
    else if (message.kind === 'aloneSettled') this.hub.aloneSettled(message)
  }
}

function hear(worker: WorldWorker, message: FromDecider): void {
  if (message.kind === 'dispatch' || message.kind === 'shed' || message.kind === 'fail')
    worker.gate.answered(message)
}
