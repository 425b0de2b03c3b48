/** Who waits for one pool, in order of arrival, so that whoever looks for newcomers need not look at all. */
import type { Waiter } from './waiting-room.ts'

/** One waiter's place; whoever has left keeps it until the line is closed up. */
export interface Place {
  readonly waiter: Waiter
  /** Rises with each arrival over all lines. */
  readonly serial: number
  waits: boolean
}

/** Lines of fewer places are not worth closing up. */
const SHORT_LINE = 32

export class WaitingLine {
  #places: Place[] = []
  #waiting = 0
  /** Places before it are all left. */
  #firstAt = 0

  get waiting(): number {
    return this.#waiting
  }

  add(place: Place): void {
    this.#places.push(place)
    this.#waiting++
  }

  /** The waiter of that place goes. Costs about the same however many wait. */
  leave(place: Place): void {
    place.waits = false
    this.#waiting--
    if (this.#places.length < SHORT_LINE || this.#places.length < 2 * this.#waiting) return
    this.#places = this.#places.filter(({ waits }) => waits)
    this.#firstAt = 0
  }

  /** The serial of the one that waits longest; Infinity with nobody. */
  firstSerial(): number {
    while (this.#places[this.#firstAt]?.waits === false) this.#firstAt++
    return this.#places[this.#firstAt]?.serial ?? Number.POSITIVE_INFINITY
  }

  /** Those with a higher serial, in order of arrival; all of them by default. Costs no look at the others. */
  since(serial = 0): readonly Waiter[] {
    const found: Waiter[] = []
    for (let at = this.#places.length - 1; at >= 0; at--) {
      const place = this.#places[at]
      if (place === undefined || place.serial <= serial) break
      if (place.waits) found.push(place.waiter)
    }
    return found.reverse()
  }

  /** Who waits, the latest first. */
  *latestFirst(): Generator<Place> {
    for (let at = this.#places.length - 1; at >= 0; at--) {
      const place = this.#places[at]
      if (place?.waits === true) yield place
    }
  }
}
