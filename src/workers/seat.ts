/** One worker as the decider knows it: its link, its requests and permits, and the ends that wait for their facts. */

import type { PermitId } from '../core/events.ts'
import { PassingMap } from '../core/passing-map.ts'
import type { ExchangeFacts, Settlement } from '../core/records.ts'
import type { ReplicaId, RequestId } from '../core/request.ts'
import type { FromDecider, Serial, WorkerHealth } from './wire.ts'

/** The decider's end of a link, as a seat uses it. */
export interface SeatLink {
  send(message: FromDecider): void
  /** Ends it; whoever made it hears of that. */
  close(why: string): void
}

/** A request of the seat under the gate's name for it. */
export interface SeatRequest {
  /** The worker's name for it. */
  readonly serial: Serial
  permitId?: PermitId
  settlement?: Settlement
  facts?: ExchangeFacts
}

/** A permit of the seat. */
export interface SeatPermit {
  readonly permitId: PermitId
  /** The gate's name. */
  readonly requestId: RequestId
  readonly replicaId: ReplicaId
  /** Tokens told by the worker that the gate has not heard of. */
  untoldEvents: number
}

export class Seat {
  readonly worker: number
  readonly pid: number
  /** By the gate's name. */
  readonly requests = new PassingMap<RequestId, SeatRequest>()
  readonly permits = new PassingMap<PermitId, SeatPermit>()
  /** Ends that the decider made up when the link broke; they count only if the worker is really gone. */
  readonly madeUp: Settlement[] = []
  health: WorkerHealth | undefined
  readonly #link: SeatLink
  readonly #names = new PassingMap<Serial, RequestId>()
  up = true

  constructor(worker: number, pid: number, link: SeatLink) {
    this.worker = worker
    this.pid = pid
    this.#link = link
  }

  send(message: FromDecider): void {
    if (this.up) this.#link.send(message)
  }

  /** Ends the link; whoever listens to it hears of that. */
  cut(why: string): void {
    this.#link.close(why)
  }

  add(requestId: RequestId, serial: Serial): void {
    this.requests.set(requestId, { serial })
    this.#names.set(serial, requestId)
  }

  /** The gate's name of a request that the worker names. */
  nameOf(serial: Serial): RequestId | undefined {
    return this.#names.get(serial)
  }

  forget(requestId: RequestId): void {
    const request = this.requests.get(requestId)
    if (request === undefined) return
    this.requests.delete(requestId)
    this.#names.delete(request.serial)
  }
}
