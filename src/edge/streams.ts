/** The attempts under way by replica, and the progress that the gate has not been told of. */
import type { PermitId } from '../core/events.ts'
import { PassingMap, PassingSet } from '../core/passing-map.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Relay } from './relay.ts'

/** Content events since the last telling, as parallel arrays. */
export interface Progress {
  readonly permitIds: readonly PermitId[]
  readonly contentEvents: readonly number[]
}

export class Streams {
  readonly #byReplica = new PassingMap<ReplicaId, PassingSet<Relay>>()

  add(relay: Relay): void {
    const relays = this.#byReplica.get(relay.replica.id)
    if (relays === undefined) this.#byReplica.set(relay.replica.id, new PassingSet<Relay>().add(relay))
    else relays.add(relay)
  }

  remove(relay: Relay): void {
    const relays = this.#byReplica.get(relay.replica.id)
    relays?.delete(relay)
    if (relays?.size === 0) this.#byReplica.delete(relay.replica.id)
  }

  /** What all streams have to tell; reading it marks it as told. Undefined when that is nothing. */
  progress(): Progress | undefined {
    return take(this.#byReplica.values())
  }

  /** The same for one replica, so that its first tokens and ends are seen after the progress that came before. */
  progressOf(replicaId: ReplicaId): Progress | undefined {
    const relays = this.#byReplica.get(replicaId)
    return relays === undefined ? undefined : take([relays])
  }
}

function take(groups: Iterable<Iterable<Relay>>): Progress | undefined {
  const permitIds: PermitId[] = []
  const contentEvents: number[] = []
  for (const relays of groups) {
    for (const relay of relays) {
      if (!relay.progresses) continue
      const { tally } = relay
      permitIds.push(relay.permitId)
      contentEvents.push(tally.untoldEvents)
      tally.untoldEvents = 0
    }
  }
  return permitIds.length === 0 ? undefined : { permitIds, contentEvents }
}
