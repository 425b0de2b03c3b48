/** Percentiles are samples, and as many of them as the share says are no greater. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nearestRank } from '../../src/sim/nearest-rank.ts'

describe('nearestRank', () => {
  it('is the smallest sample that the share does not exceed', () => {
    const samples = fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1 })
    const law = fc.property(samples, fc.integer({ min: 1, max: 100 }), (values, percent) => {
      const sorted = [...values].sort((a, b) => a - b)
      const found = nearestRank(sorted, percent / 100) ?? Number.NaN
      const upTo = (limit: number) => sorted.filter((value) => value <= limit).length
      expect(sorted).toContain(found)
      expect(upTo(found) * 100).toBeGreaterThanOrEqual(percent * sorted.length - 1e-6)
      expect(upTo(found - 1) * 100).toBeLessThan(percent * sorted.length + 1e-6)
    })
    fc.assert(law)
  })

  it('takes the middle of a hundred at a half, and the only one there is', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => index + 1)
    expect([nearestRank(hundred, 0.5), nearestRank(hundred, 0.99), nearestRank([7], 0.99)]).toEqual([
      50, 99, 7,
    ])
    expect(nearestRank([], 0.5)).toBeUndefined()
  })
})
