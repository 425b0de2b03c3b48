/** Bodies that come in pieces are whole at the end, and cost no more than about their size. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Pieces } from '../../src/edge/pieces.ts'

describe('pieces', () => {
  it('make up the same bytes in the same order, however they are cut', () => {
    const lengths = fc.array(fc.oneof(fc.nat(20), fc.integer({ min: 4000, max: 5000 })), { maxLength: 200 })
    fc.assert(
      fc.property(lengths, (all) => {
        const pieces = new Pieces()
        const given = all.map((length, nth) => Buffer.alloc(length, nth % 251))
        for (const piece of given) pieces.add(piece)
        expect(pieces.bytes).toBe(given.reduce((sum, { length }) => sum + length, 0))
        expect(pieces.whole().equals(Buffer.concat(given))).toBe(true)
      }),
    )
  })

  it('are not kept one by one when they are small', () => {
    const kept = new Pieces()
    for (let nth = 0; nth < 200_000; nth++) kept.add(Buffer.from([nth & 255]))
    expect(kept.held).toBeLessThan(30)
    expect(kept.whole()).toHaveLength(200_000)
  })

  it('hand a single piece on as it is', () => {
    const pieces = new Pieces()
    const only = Buffer.from('{"model":"m"}')
    pieces.add(only)
    expect(pieces.whole()).toBe(only)
  })
})
