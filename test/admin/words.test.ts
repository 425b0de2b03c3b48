/** Numbers as people read them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  listed,
  shownAttainment,
  shownBudget,
  shownCount,
  shownObjective,
  shownSpan,
  shownTimes,
} from '../../src/admin/words.ts'

describe('words for numbers', () => {
  it('never call less than everything 100 %', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), (ratio) => {
        fc.pre(ratio < 1 - 1e-9)
        expect(Number.parseFloat(shownAttainment(ratio))).toBeLessThan(100)
      }),
    )
    expect(shownAttainment(1)).toBe('100 %')
    expect(shownAttainment(0.9999)).toBe('99.99 %')
    expect(shownAttainment(0.99999)).toBe('99.99 %')
    expect(shownAttainment(0.5)).toBe('50.0 %')
    expect(shownAttainment(undefined)).toBe('–')
  })

  it('say objectives as short as they are written', () => {
    expect([0.99, 0.995, 0.9995, 1].map(shownObjective)).toEqual(['99 %', '99.5 %', '99.95 %', '100 %'])
  })

  it('say what is left of a budget, or how often it is spent', () => {
    expect([1, 0.256, 0, -0.2, -49, undefined].map(shownBudget)).toEqual([
      '100 %',
      '25 %',
      '0 %',
      'spent 1.2×',
      'spent 50×',
      '–',
    ])
    expect([0, 14.44, 250, Number.POSITIVE_INFINITY].map(shownTimes)).toEqual(['0×', '14.4×', '250×', '∞×'])
  })

  it('shorten counts, spans and lists', () => {
    expect([0, 9999, 12_400, 3_100_000].map(shownCount)).toEqual(['0', '9999', '12.4k', '3.1M'])
    expect([4000, 12 * 60_000, 5 * 3_600_000, 3 * 86_400_000].map(shownSpan)).toEqual([
      '4 s',
      '12 min',
      '5 h',
      '3 d',
    ])
    expect([[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map(listed)).toEqual(['', 'a', 'a and b', 'a, b and c'])
  })
})
