/** Prediction error: quantiles that cover what they say, stay in order, and follow a change. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { learnError, predictionError } from '../../src/estimate/prediction-error.ts'
import { Rng } from '../../src/sim/rng.ts'

describe('the prediction error', () => {
  it.each([
    ['p50', 0.5, 0.3],
    ['p80', 0.8, 0.3],
    ['p95', 0.95, 0.3],
    ['p80', 0.8, 0.8],
  ] as const)('covers %s of stationary noise (%d, sigma %d)', (level, share, sigma) => {
    const rng = new Rng(9)
    const error = predictionError()
    let covered = 0
    for (let i = 0; i < 6000; i++) {
      const observed = 100 * rng.logNormal(1, sigma)
      if (i >= 1000 && observed <= 100 * error.quantiles[level]) covered++
      learnError(error, observed, 100)
    }
    expect(covered / 5000).toBeGreaterThan(share - 0.04)
    expect(covered / 5000).toBeLessThan(share + 0.04)
  })

  it('keeps its quantiles in order and finite for anything', () => {
    const ms = fc.oneof(
      fc.double({ min: -10, max: 1e6, noNaN: true }),
      fc.constantFrom(Number.NaN, 0, Infinity),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(ms, ms), { maxLength: 100 }), (pairs) => {
        const error = predictionError()
        for (const [observed, predicted] of pairs) {
          learnError(error, observed, predicted)
          const { p50, p80, p95 } = error.quantiles
          expect(0 < p50 && p50 <= p80 && p80 <= p95 && p95 <= 5).toBe(true)
          expect(Number.isFinite(error.absLogError)).toBe(true)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('finds out quickly that predictions are off by a factor, and that they are right again', () => {
    const error = predictionError()
    for (let i = 0; i < 60; i++) learnError(error, 300, 100)
    expect(error.absLogError).toBeGreaterThan(1)
    expect(error.quantiles.p50).toBeGreaterThan(2)
    for (let i = 0; i < 200; i++) learnError(error, 100, 100)
    expect(error.absLogError).toBeLessThan(0.01)
    expect(error.quantiles.p80).toBeLessThan(1.2)
  })
})
