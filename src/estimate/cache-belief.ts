/** What is believed of one replica's prefix cache: how far back it reaches, and how much of a match it yields. */
import { PassingMap } from '../core/passing-map.ts'
import type { ReplicaId } from '../core/request.ts'
import { clamp, type Ratio, type Tokens } from '../core/units.ts'

/**
 * An engine keeps the blocks that it used last. So a block is held as long as less than the cache's room was computed
 * since it was used (the stack distance of an LRU cache). That room is not known: it is what the batch leaves of the KV
 * cache, and engines may share it or switch reuse off. So it is learnt from the `cached_tokens` that engines report.
 */
export interface CacheBelief {
  readonly replicaId: ReplicaId
  /** Tokens computed there so far: the clock by which blocks age. */
  spentTokens: Tokens
  /** Blocks last used so long ago or longer are gone; Infinity until one was missed. */
  horizonTokens: Tokens
  /** The whole KV cache, which no block outlives; Infinity when unknown. */
  capacityTokens: Tokens
  /** Tokens found cached for each token of a match that was held. */
  yieldRatio: Ratio
  /** Prompts without a first token yet, by the clock with them counted in: how many of their blocks were there before. */
  readonly unbegun: PassingMap<Tokens, number>
}

/** A prompt as it was counted in when it was sent. */
export interface Sent {
  readonly belief: CacheBelief
  /** The clock of the cache with it counted in, and by how much it moved that. */
  readonly atTokens: Tokens
  readonly spentTokens: Tokens
  /** How much of it was computed there once, and how long ago its oldest part. */
  readonly believedTokens: Tokens
  readonly distanceTokens: Tokens
  /** Blocks of that, and how many of them came from prompts that had had their first tokens by then. */
  readonly blocks: number
  readonly knownBlocks: number
}

/** Less of a match than this was lost, not just cut to other blocks. */
const HELD_RATIO: Ratio = 0.5
/** A block found beyond the horizon moves it there and a bit further; one missed within draws it in. */
const BEYOND_RATIO = 1.1
const DRAWN_IN_RATIO: Ratio = 0.8
/** Share of a report in the yield. */
const SHARE: Ratio = 0.1
const MIN_YIELD: Ratio = 0.1

export function cacheBelief(replicaId: ReplicaId): CacheBelief {
  return {
    replicaId,
    spentTokens: 0,
    horizonTokens: Number.POSITIVE_INFINITY,
    capacityTokens: Number.POSITIVE_INFINITY,
    yieldRatio: 1,
    unbegun: new PassingMap(),
  }
}

/** So many tokens were computed there, prompt or answer. */
export function spent(belief: CacheBelief, tokens: Tokens): void {
  if (tokens > 0) belief.spentTokens += tokens
}

/** Tokens computed since a block was used at that point of the clock. */
export function distance({ spentTokens }: CacheBelief, usedAtTokens: Tokens): Tokens {
  return spentTokens - usedAtTokens
}

/** Whether a block should still be there after so many tokens. */
export function reaches(belief: CacheBelief, distanceTokens: Tokens): boolean {
  return distanceTokens < Math.min(belief.horizonTokens, belief.capacityTokens)
}

/** Takes an engine's own word on how much of a match it held. */
export function correctBelief(sent: Sent, heldTokens: Tokens): void {
  const { belief, believedTokens, distanceTokens, blocks, knownBlocks } = sent
  if (!(believedTokens > 0) || !(heldTokens >= 0)) return
  const heldRatio = clamp(heldTokens / believedTokens, 0, 1)
  if (heldRatio < HELD_RATIO) {
    // Of two alike that are sent at once the first is not stored yet when the engine looks for the second.
    if (knownBlocks < blocks) return
    if (distanceTokens >= belief.horizonTokens) return
    const drawnIn = Number.isFinite(belief.horizonTokens) ? belief.horizonTokens * DRAWN_IN_RATIO : 0
    belief.horizonTokens = Math.max(distanceTokens, drawnIn)
    return
  }
  if (Number.isFinite(belief.horizonTokens))
    belief.horizonTokens = Math.max(belief.horizonTokens, distanceTokens * BEYOND_RATIO)
  belief.yieldRatio = Math.max(MIN_YIELD, belief.yieldRatio + SHARE * (heldRatio - belief.yieldRatio))
}
