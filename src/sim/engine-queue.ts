/** The engine's own waiting queue, first come first served or by priority. */
import type { Sequence } from './engine-sequence.ts'

export class EngineQueue {
  readonly #byPriority: boolean
  #items: Sequence[] = []

  constructor(policy: 'fcfs' | 'priority') {
    this.#byPriority = policy === 'priority'
  }

  get length(): number {
    return this.#items.length
  }

  head(): Sequence | undefined {
    return this.#items[0]
  }

  push(sequence: Sequence): void {
    if (!this.#byPriority) {
      this.#items.push(sequence)
      return
    }
    let low = 0
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.#items[middle]
      if (other !== undefined && runsSooner(sequence, other)) high = middle
      else low = middle + 1
    }
    this.#items.splice(low, 0, sequence)
  }

  /** Puts a preempted sequence back: at the head, or where its priority belongs. */
  putBack(sequence: Sequence): void {
    if (this.#byPriority) this.push(sequence)
    else this.#items.unshift(sequence)
  }

  shift(): void {
    this.#items.shift()
  }

  remove(sequence: Sequence): void {
    const at = this.#items.indexOf(sequence)
    if (at >= 0) this.#items.splice(at, 1)
  }
}

/** The order of the `priority` policy: lower priority value, then earlier arrival. */
export function runsSooner(a: Sequence, b: Sequence): boolean {
  return a.priority === b.priority ? a.order < b.order : a.priority < b.priority
}
