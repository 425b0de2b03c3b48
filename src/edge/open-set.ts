/** A set that can be waited for until nothing is left in it. */
export class OpenSet<T> {
  readonly #members = new Set<T>()
  readonly #waiting: (() => void)[] = []

  get size(): number {
    return this.#members.size
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#members.values()
  }

  add(member: T): void {
    this.#members.add(member)
  }

  delete(member: T): void {
    this.#members.delete(member)
    if (this.#members.size === 0) for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Resolves once it is empty, at once if it is. */
  async empty(): Promise<void> {
    if (this.#members.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
