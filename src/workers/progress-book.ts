/** Gathers the tokens that workers tell of, so that the gate hears of them as seldom as from streams of its own process. */
import type { GateEvent } from '../core/events.ts'
import type { ReplicaId } from '../core/request.ts'
import type { SeatPermit } from './seat.ts'

export type ProgressEvent = Extract<GateEvent, { kind: 'progress' }>

export class ProgressBook {
  /** Each permit with something untold, once. */
  readonly #untold = new Map<ReplicaId, SeatPermit[]>()

  add(permit: SeatPermit, contentEvents: number): void {
    if (permit.untoldEvents === 0) {
      const permits = this.#untold.get(permit.replicaId)
      if (permits === undefined) this.#untold.set(permit.replicaId, [permit])
      else permits.push(permit)
    }
    permit.untoldEvents += contentEvents
  }

  /** What is untold of a replica, or of all; taking it marks it as told. Undefined when that is nothing. */
  take(replicaId?: ReplicaId): ProgressEvent | undefined {
    const permits =
      replicaId === undefined ? [...this.#untold.values()].flat() : (this.#untold.get(replicaId) ?? [])
    if (permits.length === 0) return undefined
    if (replicaId === undefined) this.#untold.clear()
    else this.#untold.delete(replicaId)
    const told: ProgressEvent = {
      kind: 'progress',
      permitIds: permits.map(({ permitId }) => permitId),
      contentEvents: permits.map(({ untoldEvents }) => untoldEvents),
    }
    for (const permit of permits) permit.untoldEvents = 0
    return told
  }
}
