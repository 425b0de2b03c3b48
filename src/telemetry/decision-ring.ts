/** Remembers the last decisions and how they ended, bounded by count and by bytes, for /decisions. */
import { LRUCache } from 'lru-cache'
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
  decision: DecisionRecord | undefined
  settlement: Settlement | undefined
}

export class DecisionRing {
  /** By request, of which clients may name several alike: the latest stays. The one touched last is the newest. */
  readonly #held: LRUCache<string, Held>

  constructor(maxEntries: number, maxBytes: number) {
    this.#held = new LRUCache({ max: maxEntries, maxSize: maxBytes, sizeCalculation: bytesOf })
  }

  get size(): number {
    return this.#held.size
  }

  /** About as much memory as the entries take. */
  get bytes(): number {
    return this.#held.calculatedSize
  }

  /** Takes a decision and returns what is kept of it: no prefix hashes, and only the candidates to be shown. */
  decided(record: DecisionRecord): DecisionRecord {
    const { requestId } = record.offer
    const known = this.#known(record.offer)
    const candidates = shownCandidates(record.candidates, record.verdict)
    const decision = { ...record, offer: known?.decision?.offer ?? withoutHashes(record.offer), candidates }
    this.#held.set(requestId, { decision, settlement: known?.settlement })
    return decision
  }

  settled(settlement: Settlement): void {
    const { requestId } = settlement
    const { receivedAtMs } = settlement.offer
    if ((offerOf(this.#held.peek(requestId))?.receivedAtMs ?? receivedAtMs) > receivedAtMs) return
    const decision = this.#known(settlement.offer)?.decision
    const offer = decision?.offer ?? withoutHashes(settlement.offer)
    this.#held.set(requestId, { decision, settlement: { ...settlement, offer } })
  }

  /** What is held of that very request, and not of an earlier one with its id. */
  #known({ requestId, receivedAtMs }: Offer): Held | undefined {
    const held = this.#held.peek(requestId)
    return offerOf(held)?.receivedAtMs === receivedAtMs ? held : undefined
  }

  /** Matching entries, newest first. */
  last(limit: number, filter: RingFilter = {}): readonly RingEntry[] {
    const found: RingEntry[] = []
    for (const [requestId, held] of this.#held.entries()) {
      if (found.length >= limit) break
      if (!matches(requestId, held, filter)) continue
      const { decision, settlement } = held
      found.push({
        requestId,
        ...(decision === undefined ? {} : { decision }),
        ...(settlement === undefined ? {} : { settlement }),
      })
    }
    return found
  }
}

function offerOf(held: Held | undefined): Offer | undefined {
  return held?.decision?.offer ?? held?.settlement?.offer
}

function bytesOf({ decision }: Held, requestId: string): number {
  return ENTRY_BYTES + requestId.length * 4 + (decision?.candidates.length ?? 0) * CANDIDATE_BYTES
}

function withoutHashes(offer: Offer): Offer {
  return offer.prefixHashes.length === 0 ? offer : { ...offer, prefixHashes: NO_HASHES }
}

function matches(itsId: string, entry: Held, { requestId, className, verdict }: RingFilter): boolean {
  if (requestId !== undefined && itsId !== requestId) return false
  if (className !== undefined && offerOf(entry)?.slo.name !== className) return false
  const { settlement } = entry
  const verdicts: readonly (string | undefined)[] = [
    entry.decision?.verdict.kind,
    settlement?.verdict.kind,
    settlement?.verdict.kind === 'bad' && settlement.outcome !== 'shed' ? 'missed' : undefined,
  ]
  return verdict === undefined || verdicts.includes(verdict)
}
