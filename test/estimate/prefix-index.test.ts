/** The prefix index: whole chains only, bounded, and nothing kept of a replica whose cache is gone. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Sent } from '../../src/estimate/cache-belief.ts'
import { createPrefixIndex, type PrefixIndex } from '../../src/estimate/prefix-index.ts'
import { someOffer } from '../core/core-rig.ts'

function offer(...prefixHashes: string[]) {
  return someOffer({ prefixHashes, prefixBlockTokens: 100, promptTokens: 1000 })
}

/** It had its first token and said what it found cached. */
function turned(index: PrefixIndex, sent: Sent, heldTokens: number): void {
  index.begun(sent)
  index.correct(sent, heldTokens)
}

describe('the prefix index', () => {
  it('counts the common head of a prompt per replica', () => {
    const index = createPrefixIndex(50)
    index.learn(offer('a', 'b', 'c'), 'r1')
    index.learn(offer('a', 'x'), 'r2')
    expect(Object.fromEntries(index.cachedTokens(offer('a', 'b', 'c', 'd')))).toEqual({ r1: 300, r2: 100 })
    expect(index.cachedTokens(offer('b', 'c')).get('r1')).toBe(200)
    expect(index.cachedTokens(offer()).size).toBe(0)
  })

  it('knows how far the blocks of a long prompt reach', () => {
    const index = createPrefixIndex()
    const hashes = Array.from({ length: 600 }, (_, at) => `h${at}`)
    const long = someOffer({ prefixHashes: hashes, prefixBlockTokens: 256, promptTokens: 180_000 })
    index.learn(long, 'r1')
    const cachedTokens = (512 + 2 * 88) * 256
    expect(index.cachedTokens(long).get('r1')).toBe(cachedTokens)
    expect(index.learn(long, 'r1').believedTokens).toBe(cachedTokens)
  })

  it('counts nothing behind a hole', () => {
    const index = createPrefixIndex(50)
    index.learn(offer('a', 'b', 'c', 'd'), 'r1')
    index.learn(offer('a', 'b'), 'r2')
    index.learn(offer('d'), 'r2')
    expect(index.cachedTokens(offer('a', 'b', 'c', 'd')).get('r2')).toBe(200)
    expect(index.cachedTokens(offer('z', 'a')).size).toBe(0)
  })

  it('forgets a replica, and blocks that nobody holds any more', () => {
    const index = createPrefixIndex(50)
    index.learn(offer('a', 'b'), 'r1')
    index.learn(offer('a'), 'r2')
    index.forget('r1')
    expect(Object.fromEntries(index.cachedTokens(offer('a', 'b')))).toEqual({ r2: 100 })
    expect(index.blocks).toBe(1)
    index.forget('r2')
    expect(index.blocks).toBe(0)
  })

  it('stays bounded and drops the tail of a chain before its head', () => {
    const index = createPrefixIndex(10)
    for (let i = 0; i < 50; i++) index.learn(offer(`${i}/0`, `${i}/1`, `${i}/2`, `${i}/3`), 'r1')
    expect(index.blocks).toBeLessThanOrEqual(10)
    // Ten blocks hold the last two chains of four and half of the one before.
    expect(index.cachedTokens(offer('47/0', '47/1', '47/2', '47/3')).get('r1')).toBe(200)
  })

  it('never promises more than was learnt', () => {
    const chain = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 6 })
    fc.assert(
      fc.property(fc.array(chain, { maxLength: 8 }), chain, (learnt, asked) => {
        const index = createPrefixIndex(50)
        for (const hashes of learnt) index.learn(offer(...hashes), 'r1')
        const known = new Set(learnt.flat())
        const depth = asked.findIndex((hash) => !known.has(hash))
        const expected = 100 * (depth === -1 ? asked.length : depth)
        expect(index.cachedTokens(offer(...asked)).get('r1') ?? 0).toBe(expected)
      }),
    )
  })

  it('believes nothing beyond the KV cache: what was computed since has crowded it out', () => {
    const index = createPrefixIndex()
    index.learn(offer('a', 'b'), 'r1', 5000)
    for (let i = 0; i < 4; i++) index.learn(offer(`x${i}`), 'r1', 5000)
    expect(index.cachedTokens(offer('a', 'b')).get('r1')).toBe(200)
    index.generated('r1', 1500)
    expect(index.cachedTokens(offer('a', 'b')).has('r1')).toBe(false)
    expect(index.cachedTokens(offer('x3')).get('r1')).toBe(100)
  })

  it('draws its horizon in where the engine missed, and out again where it held', () => {
    const index = createPrefixIndex()
    const turn = (hashes: readonly string[], heldTokens: number) => {
      turned(index, index.learn(offer(...hashes), 'r1'), heldTokens)
    }
    turn(['a', 'b'], 0)
    for (let i = 0; i < 9; i++) turn([`x${i}`], 0)
    // 9000 tokens later the chain is gone: nothing so old is believed any more, what is younger still is.
    turn(['a', 'b'], 0)
    expect(index.snapshot().r1?.horizonTokens).toBe(9000)
    for (let i = 0; i < 9; i++) turn([`y${i}`], 0)
    expect(index.cachedTokens(offer('a', 'b')).has('r1')).toBe(false)
    expect(index.cachedTokens(offer('y5')).get('r1')).toBe(100)
    // It was there after all, twice as long ago.
    for (let i = 0; i < 9; i++) turn([`z${i}`], 0)
    turn(['a', 'b'], 200)
    for (let i = 0; i < 9; i++) turn([`w${i}`], 0)
    expect(index.cachedTokens(offer('a', 'b')).get('r1')).toBeCloseTo(200, 6)
  })

  it('learns nothing from a prompt that found one like it not yet computed', () => {
    const index = createPrefixIndex()
    const [first, second] = [1, 2].map(() => index.learn(offer('a', 'b'), 'r1'))
    if (first === undefined || second === undefined) throw new Error('not sent')
    turned(index, first, 0)
    turned(index, second, 0)
    expect(index.snapshot().r1).toEqual({ yieldRatio: 1 })
    expect(index.cachedTokens(offer('a', 'b')).get('r1')).toBe(200)
  })

  it('comes to believe nothing of an engine that never reuses', () => {
    const index = createPrefixIndex()
    for (let turn = 0; turn < 60; turn++) {
      for (const chain of ['a', 'b', 'c']) {
        turned(index, index.learn(offer(chain, `${chain}/1`), 'r1'), 0)
      }
    }
    expect([...index.cachedTokens(offer('a', 'a/1')).keys()]).toEqual([])
  })

  it('yields what matches have yielded', () => {
    const index = createPrefixIndex()
    for (let turn = 0; turn < 80; turn++) {
      turned(index, index.learn(offer('a', 'b', 'c', 'd'), 'r1'), 300)
    }
    expect(index.cachedTokens(offer('a', 'b', 'c', 'd')).get('r1')).toBeCloseTo(300, 0)
    expect(index.cachedTokens(offer('a', 'b')).get('r1')).toBeCloseTo(150, 0)
  })

  it('forgets what was never computed, and keeps what was there before it', () => {
    const index = createPrefixIndex()
    const cached = () => index.cachedTokens(offer('a', 'b', 'c', 'd')).get('r1') ?? 0
    index.begun(index.learn(offer('a', 'b'), 'r1', 5000))
    for (let n = 0; n < 3; n++) {
      const longer = offer('a', 'b', 'c')
      const sent = index.learn(longer, 'r1')
      expect(cached()).toBe(300)
      index.undo(longer, sent)
      expect(cached()).toBe(200)
    }
    // As old as before: five thousand tokens crowd it out, and not one less.
    index.generated('r1', 4999)
    expect(cached()).toBe(200)
    index.generated('r1', 1)
    expect(cached()).toBe(0)
  })

  it('keeps what another one has used since, and nothing of several that were all refused', () => {
    const index = createPrefixIndex()
    const alike = offer('a', 'b')
    const [first, second, third] = [1, 2, 3].map(() => index.learn(alike, 'r1'))
    if (first === undefined || second === undefined || third === undefined) throw new Error('not sent')
    index.undo(alike, first)
    expect(index.cachedTokens(alike).get('r1')).toBe(200)
    index.undo(alike, third)
    index.undo(alike, second)
    expect(index.cachedTokens(alike).size).toBe(0)
    expect(index.blocks).toBe(0)
  })

  it('never promises more than the prompt or less than nothing, whatever engines report', () => {
    const report = fc.oneof(fc.integer({ min: -5, max: 3000 }), fc.constant(Number.NaN))
    const chain = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 6 })
    fc.assert(
      fc.property(fc.array(fc.tuple(chain, report), { maxLength: 40 }), chain, (turns, asked) => {
        const index = createPrefixIndex(50)
        for (const [hashes, heldTokens] of turns) {
          turned(index, index.learn(offer(...hashes), 'r1'), heldTokens)
          index.generated('r1', heldTokens)
        }
        const cached = index.cachedTokens(offer(...asked)).get('r1') ?? 0
        expect(cached).toBeGreaterThanOrEqual(0)
        expect(cached).toBeLessThanOrEqual(100 * asked.length)
      }),
    )
  })
})
