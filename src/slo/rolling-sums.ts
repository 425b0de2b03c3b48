/** Sums of several counters over the last stretch of time, in a ring of slices of fixed size. */
import type { Ms } from '../core/units.ts'

/** One slice that holds something: its age in slices (0: the current one) and its counters. */
export type SliceRow = readonly [ageSlices: number, ...values: number[]]

/** Counters are whole numbers, so that what expires leaves nothing behind. Time must not run backwards. */
export class RollingSums {
  readonly sliceMs: Ms
  readonly #fields: number
  readonly #slots: number
  readonly #cells: Float64Array | Uint32Array
  readonly #sums: Float64Array
  readonly #startMs: Ms
  #head: number

  /** `slices` of `spanMs / slices` each, and the current one. `wide` is for counters that may pass 2^32 in a slice. */
  constructor(fields: number, spanMs: Ms, slices: number, wide: boolean, nowMs: Ms) {
    this.#fields = fields
    this.#slots = slices + 1
    this.sliceMs = spanMs / slices
    const cells = fields * this.#slots
    this.#cells = wide ? new Float64Array(cells) : new Uint32Array(cells)
    this.#sums = new Float64Array(fields)
    this.#startMs = nowMs
    this.#head = Math.floor(nowMs / this.sliceMs)
  }

  add(field: number, amount: number, nowMs: Ms): void {
    this.#advance(nowMs)
    this.#put(this.#head, field, amount)
  }

  /** Adds several counters at one instant: a field, its amount, the next field, its amount. */
  addAll(pairs: readonly number[], nowMs: Ms): void {
    this.#advance(nowMs)
    for (let at = 0; at < pairs.length; at += 2) this.#put(this.#head, pairs[at] ?? 0, pairs[at + 1] ?? 0)
  }

  /** The sums now. The array is reused by the next call. */
  at(nowMs: Ms): Float64Array {
    this.#advance(nowMs)
    return this.#sums
  }

  /** How much time the sums cover, in ms: less than the span while the ring is young. */
  coveredMs(nowMs: Ms): Ms {
    const reachesBackToMs = (Math.floor(nowMs / this.sliceMs) - this.#slots + 1) * this.sliceMs
    return nowMs - Math.max(this.#startMs, reachesBackToMs)
  }

  /** All slices that hold something, for a snapshot. */
  rows(nowMs: Ms): SliceRow[] {
    this.#advance(nowMs)
    const rows: SliceRow[] = []
    for (let age = 0; age < this.#slots; age++) {
      const start = this.#cell(this.#head - age)
      const values = Array.from(this.#cells.subarray(start, start + this.#fields))
      if (values.some((value) => value !== 0)) rows.push([age, ...values])
    }
    return rows
  }

  /** Adds rows of a ring with that slice size, taken `awayMs` ago. What is too old by now is left out. */
  restore(rows: readonly SliceRow[], sliceMs: Ms, awayMs: Ms, nowMs: Ms): void {
    this.#advance(nowMs)
    for (const [ageSlices, ...values] of rows) {
      const age = Math.floor((ageSlices * sliceMs + awayMs) / this.sliceMs)
      if (age >= this.#slots) continue
      values.slice(0, this.#fields).forEach((value, field) => {
        this.#put(this.#head - age, field, value)
      })
    }
  }

  #put(slice: number, field: number, amount: number): void {
    const cell = this.#cell(slice) + field
    this.#cells[cell] = (this.#cells[cell] ?? 0) + amount
    this.#sums[field] = (this.#sums[field] ?? 0) + amount
  }

  #advance(nowMs: Ms): void {
    const slice = Math.floor(nowMs / this.sliceMs)
    if (slice <= this.#head) return
    if (slice - this.#head >= this.#slots) {
      this.#cells.fill(0)
      this.#sums.fill(0)
    } else {
      for (let next = this.#head + 1; next <= slice; next++) this.#expire(this.#cell(next))
    }
    this.#head = slice
  }

  #expire(start: number): void {
    for (let field = 0; field < this.#fields; field++) {
      this.#sums[field] = (this.#sums[field] ?? 0) - (this.#cells[start + field] ?? 0)
      this.#cells[start + field] = 0
    }
  }

  #cell(slice: number): number {
    return (((slice % this.#slots) + this.#slots) % this.#slots) * this.#fields
  }
}
