/** A counter's child with its labels bound, made cheap for what is counted with every request. */

/** It sums up here and tells at a scrape: prom-client looks labels up at each increment. */
export class BoundCounter {
  readonly #child: { inc(value: number): void }
  #untold = 0

  constructor(child: { inc(value: number): void }) {
    this.#child = child
    child.inc(0)
  }

  inc(value = 1): void {
    this.#untold += value
  }

  tell(): void {
    if (this.#untold > 0) this.#child.inc(this.#untold)
    this.#untold = 0
  }
}
