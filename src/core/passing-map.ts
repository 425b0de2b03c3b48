/** A map and a set for what comes and goes with each request, that let go of what has gone. */

/** Entries set, beside as many as there are, until a new map takes over: often enough, and next to no work. */
const RENEWED_AFTER = 64

/**
 * When V8 moves the entries of a map to a new table, the old table points to the new one. Once a garbage collection has
 * promoted a table, it keeps all its successors alive with whatever was in them, dead as they are, until the whole heap
 * is collected: of a map in steady use everything that passes through is copied and promoted, at four times the cost.
 * A new map now and then cuts that chain. What iterates may delete meanwhile, and may not set.
 */
export class PassingMap<K, V> implements ReadonlyMap<K, V> {
  #map = new Map<K, V>()
  #setSince = 0

  get size(): number {
    return this.#map.size
  }

  get(key: K): V | undefined {
    return this.#map.get(key)
  }

  has(key: K): boolean {
    return this.#map.has(key)
  }

  set(key: K, value: V): this {
    if (this.#setSince++ > RENEWED_AFTER + this.#map.size) {
      this.#map = new Map(this.#map)
      this.#setSince = 0
    }
    this.#map.set(key, value)
    return this
  }

  delete(key: K): boolean {
    return this.#map.delete(key)
  }

  keys(): MapIterator<K> {
    return this.#map.keys()
  }

  values(): MapIterator<V> {
    return this.#map.values()
  }

  entries(): MapIterator<[K, V]> {
    return this.#map.entries()
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#map.entries()
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.#map) visit(value, key, this)
  }
}

/** The same as a set. */
export class PassingSet<T> implements Iterable<T> {
  readonly #members = new PassingMap<T, true>()

  get size(): number {
    return this.#members.size
  }

  add(member: T): this {
    this.#members.set(member, true)
    return this
  }

  delete(member: T): boolean {
    return this.#members.delete(member)
  }

  [Symbol.iterator](): MapIterator<T> {
    return this.#members.keys()
  }
}
