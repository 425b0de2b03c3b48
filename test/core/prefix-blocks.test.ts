/** Hashed blocks: the same cuts whatever follows, fine at the head, few for any length. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { blockEnds, FIRST_BLOCK_TOKENS, reachOf } from '../../src/core/prefix-blocks.ts'

const units = fc.integer({ min: 0, max: 20_000 })

describe('hashed blocks', () => {
  it('are cut alike in any two prompts, as far as both go', () => {
    fc.assert(
      fc.property(units, units, (one, other) => {
        const [short, long] = [Math.min(one, other), Math.max(one, other)].map((length) => blockEnds(length))
        expect(long?.slice(0, short?.length)).toEqual(short)
      }),
    )
  })

  it('miss no more than a first block, or a 256th of the prompt, up to two million tokens', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7680 }), (length) => {
        const missed = length - (blockEnds(length).at(-1) ?? 0)
        expect(missed).toBeLessThanOrEqual(length / 256)
        if (length * FIRST_BLOCK_TOKENS <= 131_072) expect(missed).toBe(0)
      }),
    )
  })

  it('are few for any length', () => {
    expect(blockEnds(4096)).toHaveLength(512 + 512 + 512 + 64)
    expect(blockEnds(1e9)).toHaveLength(2048)
    expect(reachOf(2048) * FIRST_BLOCK_TOKENS).toBe(1_966_080)
  })

  it('reach as far as their ends say', () => {
    const ends = blockEnds(10_000)
    expect(ends.map((_, at) => reachOf(at + 1))).toEqual(ends)
    expect(reachOf(0)).toBe(0)
  })
})
