/** Remembers the last decisions and how they ended, bounded by count and by bytes, for /decisions. */
import type { DecisionRecord, Settlement } from '../core/records.ts'
import { shownCandidates } from './request-line.ts'

export interface RingEntry {
  readonly requestId: string
  /** The last decision made for the request; a client that left the waiting room has none. */
  readonly decision?: DecisionRecord
  readonly settlement?: Settlement
}

export interface RingFilter {
  readonly requestId?: string
  readonly className?: string
  /** `admit`, `shed`, or `good`, `bad`, `excluded`. */
  readonly verdict?: string
}

/** Rough sizes of what an entry holds, in bytes; prefix hashes are not kept. */
const ENTRY_BYTES = 1500
const CANDIDATE_BYTES = 200

interface Held extends RingEntry {
  readonly bytes: number
}

export class DecisionRing {
  readonly #maxEntries: number
  readonly #maxBytes: number
  /** By request, oldest first: a map keeps the order in which keys came. */
  readonly #held = new Map<string, Held>()
  #bytes = 0

  constructor(maxEntries: number, maxBytes: number) {
    this.#maxEntries = maxEntries
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#held.size
  }

  /** About as much memory as the entries take. */
  get bytes(): number {
    return this.#bytes
  }

  decided(record: DecisionRecord): void {
    const { requestId } = record.offer
    const candidates = shownCandidates(record.candidates, record.verdict)
    const decision: DecisionRecord = { ...record, offer: { ...record.offer, prefixHashes: [] }, candidates }
    this.#hold({ ...this.#held.get(requestId), requestId, decision })
  }

  settled(settlement: Settlement): void {
    const { requestId } = settlement
    const kept: Settlement = { ...settlement, offer: { ...settlement.offer, prefixHashes: [] } }
    this.#hold({ ...this.#held.get(requestId), requestId, settlement: kept })
  }

  /** The decision that a request waits on, while the ring still holds it. */
  decisionOf(requestId: string): DecisionRecord | undefined {
    return this.#held.get(requestId)?.decision
  }

  /** Matching entries, newest first. */
  last(limit: number, filter: RingFilter = {}): readonly RingEntry[] {
    const found: RingEntry[] = []
    for (const held of [...this.#held.values()].reverse()) {
      if (found.length >= limit) break
      const { bytes: _, ...entry } = held
      if (matches(entry, filter)) found.push(entry)
    }
    return found
  }

  #hold(entry: RingEntry): void {
    this.#drop(entry.requestId)
    const bytes =
      ENTRY_BYTES + entry.requestId.length * 4 + (entry.decision?.candidates.length ?? 0) * CANDIDATE_BYTES
    this.#held.set(entry.requestId, { ...entry, bytes })
    this.#bytes += bytes
    for (const oldest of this.#held.keys()) {
      if (this.#held.size <= this.#maxEntries && this.#bytes <= this.#maxBytes) break
      this.#drop(oldest)
    }
  }

  #drop(requestId: string): void {
    const held = this.#held.get(requestId)
    if (held === undefined) return
    this.#bytes -= held.bytes
    this.#held.delete(requestId)
  }
}

function matches(entry: RingEntry, { requestId, className, verdict }: RingFilter): boolean {
  const offer = entry.decision?.offer ?? entry.settlement?.offer
  if (requestId !== undefined && entry.requestId !== requestId) return false
  if (className !== undefined && offer?.slo.name !== className) return false
  const verdicts: readonly (string | undefined)[] = [
    entry.decision?.verdict.kind,
    entry.settlement?.verdict.kind,
  ]
  return verdict === undefined || verdicts.includes(verdict)
}
