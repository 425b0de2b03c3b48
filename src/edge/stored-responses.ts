/** Remembers which replica made which stored response, so that later calls by id find it. */
import { LRUCache } from 'lru-cache'
import type { ReplicaId } from '../core/request.ts'

/** Responses remembered; older ones answer 404, as they would after a restart of their engine. */
const REMEMBERED = 10_000
/** The id stands at the very beginning of the object. */
const LOOKED_AT_BYTES = 2048
const RESPONSE_ID = /"id":\s*"(resp_[A-Za-z0-9_.-]{1,160})"/

/** Who made a stored response, and for whom. */
export interface Home {
  readonly replicaId: ReplicaId
  readonly tenant: string
}

export class StoredResponses {
  readonly #homes = new LRUCache<string, Home>({ max: REMEMBERED })
  readonly #onNoted: (id: string, home: Home) => void

  /** `onNoted` is told of each response found here, for others who may be asked for it. */
  constructor(onNoted: (id: string, home: Home) => void = () => {}) {
    this.#onNoted = onNoted
  }

  /** Looks for the id in the first bytes of an answer of `/v1/responses`. */
  note(bytes: Uint8Array, home: Home): void {
    const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, LOOKED_AT_BYTES))
    const id = RESPONSE_ID.exec(head.toString('latin1'))?.[1]
    if (id === undefined) return
    this.keep(id, home)
    this.#onNoted(id, home)
  }

  /** Remembers one that was noted elsewhere. */
  keep(id: string, home: Home): void {
    this.#homes.set(id, home)
  }

  /** Where it was made, for the tenant that had it made and for nobody else. */
  find(id: string, tenant: string): ReplicaId | undefined {
    const home = this.#homes.get(id)
    return home?.tenant === tenant ? home.replicaId : undefined
  }
}
