/** Gathers the tokens that workers tell of, so that the gate hears of them as seldom as from streams of its own process. */
import type { GateEvent, PermitId } from '../core/events.ts'
import type { ReplicaId } from '../core/request.ts'

export type ProgressEvent = Extract<GateEvent, { kind: 'progress' }>

export class ProgressBook {
  readonly #untold = new Map<ReplicaId, Map<PermitId, number>>()

  get isEmpty(): boolean {
    return this.#untold.size === 0
  }

  add(replicaId: ReplicaId, permitId: PermitId, contentEvents: number): void {
    let permits = this.#untold.get(replicaId)
    if (permits === undefined) {
      permits = new Map()
      this.#untold.set(replicaId, permits)
    }
    permits.set(permitId, (permits.get(permitId) ?? 0) + contentEvents)
  }

  /** What is untold of a replica, or of all; taking it marks it as told. Undefined when that is nothing. */
  take(replicaId?: ReplicaId): ProgressEvent | undefined {
    const ids = replicaId === undefined ? [...this.#untold.keys()] : [replicaId]
    const permitIds: PermitId[] = []
    const contentEvents: number[] = []
    for (const id of ids) {
      for (const [permitId, events] of this.#untold.get(id) ?? []) {
        permitIds.push(permitId)
        contentEvents.push(events)
      }
      this.#untold.delete(id)
    }
    return permitIds.length === 0 ? undefined : { kind: 'progress', permitIds, contentEvents }
  }
}
