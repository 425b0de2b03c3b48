/** Remembers which replica has which prompt block in its cache: one bounded map, walked once for all replicas. */
import { reachOf } from '../core/prefix-blocks.ts'
import type { Offer, ReplicaId } from '../core/request.ts'
import type { Tokens } from '../core/units.ts'
import {
  type CacheBelief,
  cacheBelief,
  correctBelief,
  distance,
  reaches,
  type Sent,
  spent,
} from './cache-belief.ts'
import { HeldBlocks } from './held-blocks.ts'

/** Blocks remembered over all replicas; about 100 bytes each. */
const MAX_BLOCKS = 100_000

export interface PrefixIndex {
  /** Prompt tokens of the offer that each replica should have cached; replicas without any are absent. */
  cachedTokens(offer: Offer): ReadonlyMap<ReplicaId, Tokens>
  /**
   * The replica gets this prompt now. `capacityTokens` is its whole KV cache, where known. What is returned is for the
   * three below.
   */
  learn(offer: Offer, replicaId: ReplicaId, capacityTokens?: Tokens): Sent
  /** Its first token has come, or it is over. */
  begun(sent: Sent): void
  /** It was never computed: what the map has of it is undone. `offer` is the one that was learnt. */
  undo(offer: Offer, sent: Sent): void
  /** The engine has said how much of the prompt it held, in the tokens that the offer counts. */
  correct(sent: Sent, heldTokens: Tokens): void
  /** The replica has generated so many tokens: they crowd out what it held. */
  generated(replicaId: ReplicaId, tokens: Tokens): void
  /** The replica's cache is gone. */
  forget(replicaId: ReplicaId): void
  readonly blocks: number
  /** What is believed of each cache, for people. */
  snapshot(): Readonly<Record<ReplicaId, { horizonTokens?: Tokens; yieldRatio: number }>>
}

/** The head of a prompt that one replica holds. */
interface Chain {
  readonly belief: CacheBelief
  blocks: number
}

const NOTHING: ReadonlyMap<ReplicaId, Tokens> = new Map()

export function createPrefixIndex(maxBlocks = MAX_BLOCKS): PrefixIndex {
  return new BlockMap(maxBlocks)
}

class BlockMap implements PrefixIndex {
  /** By block: the cache of each replica that computed it, and how much it had computed in all by then. */
  readonly #held: HeldBlocks<CacheBelief>
  readonly #beliefs = new Map<ReplicaId, CacheBelief>()

  constructor(maxBlocks: number) {
    this.#held = new HeldBlocks(maxBlocks)
  }

  get blocks(): number {
    return this.#held.size
  }

  cachedTokens({ prefixHashes, prefixBlockTokens }: Offer): ReadonlyMap<ReplicaId, Tokens> {
    if (prefixHashes.length === 0) return NOTHING
    const cached = new Map<ReplicaId, Tokens>()
    for (const { belief, blocks } of this.#chainsOf(prefixHashes)) {
      if (blocks > 0) cached.set(belief.replicaId, reachOf(blocks) * prefixBlockTokens * belief.yieldRatio)
    }
    return cached
  }

  learn(offer: Offer, replicaId: ReplicaId, capacityTokens?: Tokens): Sent {
    const belief = this.#beliefOf(replicaId)
    if (capacityTokens !== undefined) belief.capacityTokens = capacityTokens
    const { believedTokens, distanceTokens, blocks, knownBlocks } = this.#reuseOf(offer, belief)
    const held = reaches(belief, distanceTokens) ? believedTokens : 0
    const beforeTokens = belief.spentTokens
    spent(belief, offer.promptTokens - held)
    const atTokens = belief.spentTokens
    belief.unbegun.set(atTokens, knownBlocks)
    // From the tail to the head, so that the head is the youngest: a chain without its head is worth nothing.
    for (const hash of offer.prefixHashes.toReversed()) this.#held.use(hash, belief, atTokens)
    return {
      belief,
      atTokens,
      spentTokens: atTokens - beforeTokens,
      believedTokens,
      distanceTokens,
      blocks,
      knownBlocks,
    }
  }

  begun({ belief, atTokens }: Sent): void {
    belief.unbegun.delete(atTokens)
  }

  undo({ prefixHashes }: Offer, { belief, atTokens, spentTokens, distanceTokens, knownBlocks }: Sent): void {
    belief.spentTokens -= spentTokens
    // Others have used what has another clock since.
    for (let at = prefixHashes.length - 1; at >= 0; at--) {
      const hash = prefixHashes[at] ?? ''
      const place = this.#held.find(hash)
      if (place === undefined || this.#held.usedAt(place, belief) !== atTokens) continue
      // What was there before is as old again as its oldest part was.
      if (at < knownBlocks) this.#held.use(hash, belief, atTokens - spentTokens - distanceTokens)
      else this.#held.drop(place, belief)
    }
  }

  correct(sent: Sent, heldTokens: Tokens): void {
    correctBelief(sent, heldTokens)
  }

  generated(replicaId: ReplicaId, tokens: Tokens): void {
    spent(this.#beliefOf(replicaId), tokens)
  }

  forget(replicaId: ReplicaId): void {
    const belief = this.#beliefs.get(replicaId)
    this.#beliefs.delete(replicaId)
    if (belief !== undefined) this.#held.forget(belief)
  }

  snapshot(): Readonly<Record<ReplicaId, { horizonTokens?: Tokens; yieldRatio: number }>> {
    const rows = [...this.#beliefs].map(([id, { horizonTokens, yieldRatio }]) => {
      const horizon = Number.isFinite(horizonTokens) ? { horizonTokens } : {}
      return [id, { ...horizon, yieldRatio }]
    })
    return Object.fromEntries(rows)
  }

  /** What each holder of the first block has of those that follow it. */
  #chainsOf(hashes: readonly string[]): readonly Chain[] {
    const first = hashes[0] === undefined ? undefined : this.#held.find(hashes[0])
    if (first === undefined) return []
    const chains = this.#held.holdersAt(first).map((belief): Chain => ({ belief, blocks: 0 }))
    let growing: readonly Chain[] = chains
    for (const hash of hashes) {
      const place = growing.length === 0 ? undefined : this.#held.find(hash)
      if (place === undefined) break
      // A hole means that the engine must recompute from there on.
      growing = growing.filter((chain) => {
        const usedAt = this.#held.usedAt(place, chain.belief)
        if (usedAt === undefined || !reaches(chain.belief, distance(chain.belief, usedAt))) return false
        chain.blocks++
        return true
      })
    }
    return chains
  }

  #beliefOf(replicaId: ReplicaId): CacheBelief {
    const known = this.#beliefs.get(replicaId)
    if (known !== undefined) return known
    const belief = cacheBelief(replicaId)
    this.#beliefs.set(replicaId, belief)
    return belief
  }

  /** The blocks from the head on that the replica computed once, whatever it may have lost since. */
  #reuseOf(
    offer: Offer,
    belief: CacheBelief,
  ): Pick<Sent, 'believedTokens' | 'distanceTokens' | 'blocks' | 'knownBlocks'> {
    let blocks = 0
    let distanceTokens = 0
    let oldestAtTokens = Number.POSITIVE_INFINITY
    for (const hash of offer.prefixHashes) {
      const place = this.#held.find(hash)
      const usedAt = place === undefined ? undefined : this.#held.usedAt(place, belief)
      if (usedAt === undefined) break
      distanceTokens = Math.max(distanceTokens, distance(belief, usedAt))
      oldestAtTokens = Math.min(oldestAtTokens, usedAt)
      blocks++
    }
    const believedTokens = Math.min(offer.promptTokens, reachOf(blocks) * offer.prefixBlockTokens)
    const knownBlocks = Math.min(blocks, belief.unbegun.get(oldestAtTokens) ?? blocks)
    return { believedTokens, distanceTokens, blocks, knownBlocks }
  }
}
