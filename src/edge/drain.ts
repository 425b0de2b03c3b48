/** Shutting down in order: nothing new, what runs may finish, and at the limit everything ends with a word. */
import type { Ms } from '../core/units.ts'
import type { Clock } from './clock.ts'

/** What is under way, as the drain sees it. */
export interface Draining {
  /** Resolves when nothing is under way: no upload, no request, and no answer that its client has yet to take. */
  idle(): Promise<void>
  /** Ends all that is. */
  endAll(): void
  /** Resolves when all is said, whether clients have taken it or not. */
  ended(): Promise<void>
}

export class Drain {
  readonly #what: Draining
  readonly #clock: Clock
  #hurry: (() => void) | undefined
  #ended: Promise<void> | undefined

  constructor(what: Draining, clock: Clock) {
    this.#what = what
    this.#clock = clock
  }

  get draining(): boolean {
    return this.#ended !== undefined
  }

  /** Starts the drain, or joins the one under way. Resolves when nothing is left, at `limitMs` at the latest. */
  begin(limitMs: Ms): Promise<void> {
    this.#ended ??= this.#run(limitMs)
    return this.#ended
  }

  /** No more waiting. */
  now(): void {
    this.#hurry?.()
  }

  async #run(limitMs: Ms): Promise<void> {
    const limit = new Promise<void>((resolve) => {
      this.#hurry = resolve
    })
    const cancel = this.#clock.after(limitMs, () => this.#hurry?.())
    await Promise.race([this.#what.idle(), limit])
    cancel()
    this.#what.endAll()
    await this.#what.ended()
  }
}
