/** Paged KV memory of one engine with reuse of common prefixes. */
import type { Ratio, Tokens } from '../core/units.ts'

/** A run of blocks with known content, shared by those who refer to it and kept for reuse when nobody does. */
interface Extent {
  readonly hash: string
  readonly blocks: number
  references: number
}

/** The blocks of one sequence. Only the cache changes it. */
export class BlockTable {
  /** Blocks with content of its own. */
  privateBlocks = 0
  /** Blocks held in all, shared ones included. */
  heldBlocks = 0
  /** Leading extents of its hash list that are settled: attached, published, or kept as private doubles. */
  settledExtents = 0
  readonly extents: Extent[] = []
}

/**
 * Counts blocks instead of numbering them: free + evictable + in use is always the total. Content is known by the
 * extent (a fixed run of blocks under one chained hash), evicted least recently used first and tail before head, as
 * vLLM does per block. Blocks without reference count as free even while their content can be reused.
 */
export class KvCache {
  readonly totalBlocks: number
  readonly blockTokens: Tokens
  #freeBlocks: number
  #evictableBlocks = 0
  #privateBlocks = 0
  #extents = new Map<string, Extent>()
  /** Extents without reference, least recently used first. */
  #evictable = new Set<Extent>()

  constructor(totalBlocks: number, blockTokens: Tokens) {
    this.totalBlocks = totalBlocks
    this.blockTokens = blockTokens
    this.#freeBlocks = totalBlocks
  }

  /** Blocks that can be had now: never used ones and those kept only for reuse. */
  get availableBlocks(): number {
    return this.#freeBlocks + this.#evictableBlocks
  }

  /** Blocks that some sequence holds, 0 to 1. */
  get usageRatio(): Ratio {
    return 1 - this.availableBlocks / this.totalBlocks
  }

  /** Blocks that some sequence holds, counted from the content side; with the available ones it makes the total. */
  get heldBlocks(): number {
    let shared = 0
    for (const extent of this.#extents.values()) if (extent.references > 0) shared += extent.blocks
    return shared + this.#privateBlocks
  }

  /** Leading extents of `hashes` that are here, not reaching past `limitTokens`; and how many of their blocks nobody holds. */
  match(
    hashes: readonly string[],
    extentTokens: Tokens,
    limitTokens: Tokens,
  ): { extents: number; idleBlocks: number } {
    let extents = 0
    let idleBlocks = 0
    for (const hash of hashes) {
      if ((extents + 1) * extentTokens > limitTokens) break
      const extent = this.#extents.get(hash)
      if (extent === undefined) break
      if (extent.references === 0) idleBlocks += extent.blocks
      extents++
    }
    return { extents, idleBlocks }
  }

  /** Refers the (empty) table to the first `count` extents, which `match` has found. */
  attach(table: BlockTable, hashes: readonly string[], count: number): void {
    for (const hash of hashes.slice(0, count)) {
      const extent = this.#extents.get(hash)
      if (extent === undefined) throw new RangeError(`extent ${hash} is not cached`)
      if (extent.references++ === 0) {
        this.#evictable.delete(extent)
        this.#evictableBlocks -= extent.blocks
      }
      table.extents.push(extent)
      table.heldBlocks += extent.blocks
      table.settledExtents++
    }
  }

  /** Gives the table room for `tokens` in all. False, and nothing taken, when there are not enough blocks. */
  grow(table: BlockTable, tokens: Tokens): boolean {
    const missing = Math.ceil(tokens / this.blockTokens) - table.heldBlocks
    if (missing <= 0) return true
    if (missing > this.availableBlocks) return false
    while (this.#freeBlocks < missing) this.#evictOldest()
    this.#freeBlocks -= missing
    table.privateBlocks += missing
    this.#privateBlocks += missing
    table.heldBlocks += missing
    return true
  }

  /** Makes the content of the table's full extents known, so that others can reuse it. */
  publish(table: BlockTable, hashes: readonly string[], extentTokens: Tokens, tokens: Tokens): void {
    while (table.settledExtents < hashes.length && (table.settledExtents + 1) * extentTokens <= tokens) {
      const hash = hashes[table.settledExtents++]
      // Content that another sequence has published meanwhile stays a private double, as in vLLM.
      if (hash === undefined || this.#extents.has(hash)) continue
      const extent = { hash, blocks: extentTokens / this.blockTokens, references: 1 }
      this.#extents.set(hash, extent)
      table.extents.push(extent)
      table.privateBlocks -= extent.blocks
      this.#privateBlocks -= extent.blocks
    }
  }

  /** Gives all blocks of the table back; it is empty and usable afterwards. */
  release(table: BlockTable): void {
    this.#freeBlocks += table.privateBlocks
    this.#privateBlocks -= table.privateBlocks
    for (const extent of table.extents.reverse()) {
      if (--extent.references > 0) continue
      this.#evictable.add(extent)
      this.#evictableBlocks += extent.blocks
    }
    table.extents.length = 0
    table.privateBlocks = 0
    table.heldBlocks = 0
    table.settledExtents = 0
  }

  #evictOldest(): void {
    const [oldest] = this.#evictable
    if (oldest === undefined) throw new RangeError('no extent to evict')
    this.#evictable.delete(oldest)
    this.#extents.delete(oldest.hash)
    this.#evictableBlocks -= oldest.blocks
    this.#freeBlocks += oldest.blocks
  }
}
