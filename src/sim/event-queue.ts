/** A priority queue of timed items: earliest first, and first in, first out among equals. */
import type { Ms } from '../core/units.ts'

interface Entry<Item> {
  readonly atMs: Ms
  readonly order: number
  readonly item: Item
}

/** A binary heap. Push and pop cost O(log n). */
export class EventQueue<Item> {
  #entries: Entry<Item>[] = []
  #order = 0

  push(atMs: Ms, item: Item): void {
    const entry = { atMs, order: this.#order++, item }
    const entries = this.#entries
    let at = entries.length
    entries.push(entry)
    while (at > 0) {
      const parentAt = (at - 1) >> 1
      const parent = entries[parentAt]
      if (parent === undefined || isSooner(parent, entry)) break
      entries[at] = parent
      at = parentAt
    }
    entries[at] = entry
  }

  /** Takes the earliest item out, or undefined when there is none. */
  pop(): { readonly atMs: Ms; readonly item: Item } | undefined {
    const entries = this.#entries
    const first = entries[0]
    const last = entries.pop()
    if (first !== undefined && last !== undefined && first !== last) this.#sink(last)
    return first
  }

  #sink(entry: Entry<Item>): void {
    const entries = this.#entries
    let at = 0
    for (;;) {
      let childAt = 2 * at + 1
      let child = entries[childAt]
      if (child === undefined) break
      const right = entries[childAt + 1]
      if (right !== undefined && isSooner(right, child)) {
        child = right
        childAt++
      }
      if (isSooner(entry, child)) break
      entries[at] = child
      at = childAt
    }
    entries[at] = entry
  }
}

function isSooner<Item>(a: Entry<Item>, b: Entry<Item>): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
