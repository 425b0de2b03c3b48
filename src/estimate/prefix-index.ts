/** Remembers which replica has which prompt block in its cache: one bounded map, walked once for all replicas. */
import { LRUCache } from 'lru-cache'
import type { Offer, ReplicaId } from '../core/request.ts'
import type { Tokens } from '../core/units.ts'

/** Blocks remembered over all replicas; about 100 bytes each. */
const MAX_BLOCKS = 100_000

export interface PrefixIndex {
  /** Prompt tokens of the offer that each replica should have cached; replicas without any are absent. */
  cachedTokens(offer: Offer): ReadonlyMap<ReplicaId, Tokens>
  /** The replica has computed these blocks now. */
  learn(offer: Offer, replicaId: ReplicaId): void
  /** The replica's cache is gone. */
  forget(replicaId: ReplicaId): void
  readonly blocks: number
}

const NOTHING: ReadonlyMap<ReplicaId, Tokens> = new Map()

export function createPrefixIndex(maxBlocks = MAX_BLOCKS): PrefixIndex {
  const holders = new LRUCache<string, Set<ReplicaId>>({ max: maxBlocks })
  return {
    get blocks() {
      return holders.size
    },
    cachedTokens(offer) {
      if (offer.prefixHashes.length === 0) return NOTHING
      const cached = new Map<ReplicaId, Tokens>()
      let depth = 0
      for (const hash of offer.prefixHashes) {
        const replicas = holders.peek(hash)
        if (replicas === undefined) break
        for (const id of replicas) {
          // A hole further up means that the engine must recompute from there on.
          if ((cached.get(id) ?? 0) === depth * offer.prefixBlockTokens)
            cached.set(id, (depth + 1) * offer.prefixBlockTokens)
        }
        depth++
      }
      return cached
    },
    learn(offer, replicaId) {
      // From the tail to the head, so that the head is the youngest: a chain without its head is worth nothing.
      for (const hash of offer.prefixHashes.toReversed()) {
        const replicas = holders.get(hash)
        if (replicas === undefined) holders.set(hash, new Set([replicaId]))
        else replicas.add(replicaId)
      }
    },
    forget(replicaId) {
      for (const [hash, replicas] of holders.entries()) {
        if (replicas.delete(replicaId) && replicas.size === 0) holders.delete(hash)
      }
    },
  }
}
