/** Remembers the last things that happened to the whole: reloads, replicas, SLO states; for people who ask what changed. */
import type { Ms } from '../core/units.ts'
import type { LogFields } from './log.ts'

export interface JournalEntry {
  readonly atMs: Ms
  /** The name that its log line has. */
  readonly event: string
  readonly fields: LogFields
}

const MAX_ENTRIES = 200

export class Journal {
  readonly #entries: JournalEntry[] = []

  add(atMs: Ms, event: string, fields: LogFields): void {
    this.#entries.push({ atMs, event, fields })
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift()
  }

  /** The newest first. */
  last(limit: number): readonly JournalEntry[] {
    return this.#entries.slice(-limit).reverse()
  }
}
