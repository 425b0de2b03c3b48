/** Holds requests that are neither admitted nor shed, bounded by count, bytes and tokens. */
import type { InFlight } from './ledger.ts'
import { PassingMap } from './passing-map.ts'
import type { Offer, PoolId, ReplicaId, RequestId } from './request.ts'
import type { Ms, Tokens } from './units.ts'
import { type Place, WaitingLine } from './waiting-line.ts'

/** A request that waits here, perhaps for the second time. */
export interface Waiter {
  readonly offer: Offer
  readonly attempt: 1 | 2
  /** When it was first offered; a reroute keeps it. */
  readonly enteredAtMs: Ms
  /** When it must leave unserved whatever the predictions say. */
  readonly expiresAtMs: Ms
  /** Replicas that have failed it. */
  readonly excluded: readonly ReplicaId[]
}

/** A first attempt; it leaves when its class or its client has waited long enough. */
export function newWaiter(offer: Offer, nowMs: Ms): Waiter {
  return { offer, attempt: 1, enteredAtMs: nowMs, expiresAtMs: expiryAtMs(offer, nowMs, 0), excluded: [] }
}

/**
 * A second attempt of what comes back at `nowMs`. Time with the replica that failed was no waiting, so what was left of
 * its patience at that dispatch is left still; deadlines of class and client count on from receipt.
 */
export function secondWaiter(
  { offer, enteredAtMs, dispatchedAtMs }: Pick<InFlight, 'offer' | 'enteredAtMs' | 'dispatchedAtMs'>,
  excluded: readonly ReplicaId[],
  nowMs: Ms,
): Waiter {
  const expiresAtMs = expiryAtMs(offer, nowMs, dispatchedAtMs - enteredAtMs)
  return { offer, attempt: 2, enteredAtMs, expiresAtMs, excluded }
}

/** `waitedMs`: what of the class's patience was spent before. */
function expiryAtMs(offer: Offer, nowMs: Ms, waitedMs: Ms): Ms {
  const patienceMs = offer.slo.maxWaitMs - waitedMs
  return Math.min(nowMs + patienceMs, offer.clientDeadlineAtMs ?? Number.POSITIVE_INFINITY)
}

export class WaitingRoom {
  #waiters = new PassingMap<RequestId, Waiter>()
  readonly #places = new PassingMap<RequestId, Place>()
  /** By pool; absent where nobody waits. */
  readonly #lines = new PassingMap<PoolId, WaitingLine>()
  #bytes = 0
  #tokens: Tokens = 0
  #added = 0
  /** The next expiry; undefined when it must be looked up again. */
  #soonestExpiryAtMs: Ms | undefined

  get requests(): number {
    return this.#waiters.size
  }
  get bytes(): number {
    return this.#bytes
  }
  get tokens(): Tokens {
    return this.#tokens
  }

  /** Requests added so far; a plan over the others still holds while it stays the same. */
  get added(): number {
    return this.#added
  }

  /** Pools that somebody waits for; whose first has waited longest comes first. */
  pools(): readonly PoolId[] {
    const pools = [...this.#lines]
    if (pools.length > 1) pools.sort(([, a], [, b]) => a.firstSerial() - b.firstSerial())
    return pools.map(([pool]) => pool)
  }

  /** Those who wait for that pool in order of arrival: all, or those who came after `added` had been added. */
  of(pool: PoolId, added = 0): readonly Waiter[] {
    return this.#lines.get(pool)?.since(added) ?? []
  }

  /** How many wait for that pool. */
  countOf(pool: PoolId): number {
    return this.#lines.get(pool)?.waiting ?? 0
  }

  /** Who waits, the latest first. */
  *latestFirst(): Generator<Waiter> {
    const all = [...this.#lines.values()]
    const [only] = all
    if (only !== undefined && all.length === 1) {
      for (const { waiter } of only.latestFirst()) yield waiter
      return
    }
    const lines = all.map((line) => {
      const places = line.latestFirst()
      return { places, next: places.next() }
    })
    for (;;) {
      const [first, ...others] = lines.filter(({ next }) => next.done !== true)
      if (first === undefined) return
      const serialOf = (line: typeof first): number => (line.next.value as Place).serial
      const latest = others.reduce((one, other) => (serialOf(other) > serialOf(one) ? other : one), first)
      yield (latest.next.value as Place).waiter
      latest.next = latest.places.next()
    }
  }

  /** Throws when a request of that id waits: a caller's bug. */
  checkNew(requestId: RequestId): void {
    if (this.#waiters.has(requestId)) throw new RangeError(`request ${requestId} waits already`)
  }

  /** Adds a waiter. A second one with the same id is a caller's bug. */
  add(waiter: Waiter): void {
    const { requestId, bodyBytes, promptTokens, pool } = waiter.offer
    this.checkNew(requestId)
    this.#waiters.set(requestId, waiter)
    this.#added++
    const place = { waiter, serial: this.#added, waits: true }
    this.#places.set(requestId, place)
    const line = this.#lines.get(pool) ?? new WaitingLine()
    this.#lines.set(pool, line)
    line.add(place)
    this.#bytes += bodyBytes
    this.#tokens += promptTokens
    if (this.#waiters.size === 1) this.#soonestExpiryAtMs = waiter.expiresAtMs
    else if (this.#soonestExpiryAtMs !== undefined)
      this.#soonestExpiryAtMs = Math.min(this.#soonestExpiryAtMs, waiter.expiresAtMs)
  }

  /** Removes and returns it, or undefined when it does not wait. */
  remove(requestId: RequestId): Waiter | undefined {
    const waiter = this.#waiters.get(requestId)
    if (waiter === undefined) return undefined
    this.#waiters.delete(requestId)
    this.#leaveLine(requestId, waiter.offer.pool)
    if (waiter.expiresAtMs === this.#soonestExpiryAtMs) this.#soonestExpiryAtMs = undefined
    this.#bytes -= waiter.offer.bodyBytes
    this.#tokens = this.#waiters.size === 0 ? 0 : this.#tokens - waiter.offer.promptTokens
    return waiter
  }

  #leaveLine(requestId: RequestId, pool: PoolId): void {
    const place = this.#places.get(requestId)
    const line = this.#lines.get(pool)
    if (place === undefined || line === undefined) return
    this.#places.delete(requestId)
    line.leave(place)
    if (line.waiting === 0) this.#lines.delete(pool)
  }

  get(requestId: RequestId): Waiter | undefined {
    return this.#waiters.get(requestId)
  }

  /** Waiters in order of arrival. */
  [Symbol.iterator](): IterableIterator<Waiter> {
    return this.#waiters.values()
  }

  /** The instant at which the next waiter expires, or undefined when nobody waits. */
  nextExpiryAtMs(): Ms | undefined {
    if (this.#waiters.size === 0) return undefined
    if (this.#soonestExpiryAtMs !== undefined) return this.#soonestExpiryAtMs
    let soonestAtMs = Number.POSITIVE_INFINITY
    for (const { expiresAtMs } of this.#waiters.values()) soonestAtMs = Math.min(soonestAtMs, expiresAtMs)
    this.#soonestExpiryAtMs = soonestAtMs
    return soonestAtMs
  }
}
