/** Where a prompt is cut into hashed blocks: alike from its head on, and more coarsely far in, so that any length takes few. */
import type { Tokens } from './units.ts'

/** One of the first blocks, in tokens; engines cache in smaller ones, so a match misses less than one of these. */
export const FIRST_BLOCK_TOKENS: Tokens = 256
/**
 * Blocks of one size; as many of twice that size follow. So a block is never more than 1/256 of what lies before it,
 * and prompts of up to 131 072 tokens have the finest blocks throughout.
 */
const BLOCKS_OF_A_SIZE = 512
/** Of four sizes: some two million tokens, as long as the longest contexts; what comes behind is not hashed. */
const MAX_BLOCKS = 4 * BLOCKS_OF_A_SIZE

/** How far so many blocks reach from the head of a prompt, counted in first blocks. */
export function reachOf(blocks: number): number {
  const size = 2 ** Math.floor(blocks / BLOCKS_OF_A_SIZE)
  return BLOCKS_OF_A_SIZE * (size - 1) + (blocks % BLOCKS_OF_A_SIZE) * size
}

/** Where each block of a prompt ends that is as long as so many first blocks. */
export function blockEnds(firstBlocks: number): readonly number[] {
  const ends: number[] = []
  for (let blocks = 1; blocks <= MAX_BLOCKS && reachOf(blocks) <= firstBlocks; blocks++)
    ends.push(reachOf(blocks))
  return ends
}
