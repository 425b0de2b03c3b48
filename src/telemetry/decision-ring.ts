/** Remembers the last decisions and how they ended, bounded by count and by bytes, for /decisions. */
import type { DecisionRecord, Settlement } from '../core/records.ts'
import type { Offer } from '../core/request.ts'
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
  /** `admit`, `shed`, or `good`, `bad`, `excluded`; `missed`: served, and bad. */
  readonly verdict?: string
}

/** Rough sizes of what an entry holds, in bytes; prefix hashes are not kept. */
const ENTRY_BYTES = 1500
const CANDIDATE_BYTES = 200

const NO_HASHES: readonly string[] = []

interface Held {
  readonly requestId: string
  decision: DecisionRecord | undefined
  settlement: Settlement | undefined
  bytes: number
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

  /** Takes a decision and returns what is kept of it: no prefix hashes, and only the candidates to be shown. */
  decided(record: DecisionRecord): DecisionRecord {
    const held = this.#entry(record.offer.requestId)
    const candidates = shownCandidates(record.candidates, record.verdict)
    held.decision = { ...record, offer: held.decision?.offer ?? withoutHashes(record.offer), candidates }
    this.#hold(held)
    return held.decision
  }

  settled(settlement: Settlement): void {
    const held = this.#entry(settlement.requestId)
    held.settlement = { ...settlement, offer: held.decision?.offer ?? withoutHashes(settlement.offer) }
    this.#hold(held)
  }

  /** Matching entries, newest first. */
  last(limit: number, filter: RingFilter = {}): readonly RingEntry[] {
    const found: RingEntry[] = []
    for (const held of [...this.#held.values()].reverse()) {
      if (found.length >= limit) break
      if (!matches(held, filter)) continue
      const { requestId, decision, settlement } = held
      found.push({
        requestId,
        ...(decision === undefined ? {} : { decision }),
        ...(settlement === undefined ? {} : { settlement }),
      })
    }
    return found
  }

  /** The entry of a request, taken out to be put in again as the newest. */
  #entry(requestId: string): Held {
    const held = this.#held.get(requestId)
    if (held === undefined) return { requestId, decision: undefined, settlement: undefined, bytes: 0 }
    this.#drop(requestId)
    return held
  }

  #hold(held: Held): void {
    held.bytes =
      ENTRY_BYTES + held.requestId.length * 4 + (held.decision?.candidates.length ?? 0) * CANDIDATE_BYTES
    this.#held.set(held.requestId, held)
    this.#bytes += held.bytes
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

function withoutHashes(offer: Offer): Offer {
  return offer.prefixHashes.length === 0 ? offer : { ...offer, prefixHashes: NO_HASHES }
}

function matches(entry: Held, { requestId, className, verdict }: RingFilter): boolean {
  const offer = entry.decision?.offer ?? entry.settlement?.offer
  if (requestId !== undefined && entry.requestId !== requestId) return false
  if (className !== undefined && offer?.slo.name !== className) return false
  const { settlement } = entry
  const verdicts: readonly (string | undefined)[] = [
    entry.decision?.verdict.kind,
    settlement?.verdict.kind,
    settlement?.verdict.kind === 'bad' && settlement.outcome !== 'shed' ? 'missed' : undefined,
  ]
  return verdict === undefined || verdicts.includes(verdict)
}
