/** A set that can be waited for until nothing is left in it. */
import { PassingSet } from '../core/passing-map.ts'

export class OpenSet<T> extends PassingSet<T> {
  readonly #waiting: (() => void)[] = []

  override delete(member: T): boolean {
    const wasIn = super.delete(member)
    if (this.size === 0) for (const resolve of this.#waiting.splice(0)) resolve()
    return wasIn
  }

  /** Resolves once it is empty, at once if it is. */
  async empty(): Promise<void> {
    if (this.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
