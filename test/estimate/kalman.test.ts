/** The linear estimator: it finds a linear truth, survives a million steady samples, and no input breaks it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  deviation,
  type LinearEstimate,
  linearEstimate,
  observe,
  predict,
  unsettle,
} from '../../src/estimate/kalman.ts'
import { Rng } from '../../src/sim/rng.ts'

function variances({ covariance, mean }: LinearEstimate): number[] {
  return mean.map((_, i) => covariance[i * mean.length + i] ?? Number.NaN)
}

function isSound(estimate: LinearEstimate): boolean {
  const { mean, covariance, priorVariance } = estimate
  const n = mean.length
  if (![...mean, ...covariance].every(Number.isFinite)) return false
  return covariance.every((value, index) => {
    const [row, column] = [Math.floor(index / n), index % n]
    if (row === column) return value > 0 && value <= (priorVariance[row] ?? 0) * (1 + 1e-9)
    return value === covariance[column * n + row]
  })
}

describe('the estimator', () => {
  it('finds a linear truth under noise', () => {
    const rng = new Rng(3)
    const truth = [12, 0.3, 40]
    const estimate = linearEstimate([5, 1, 100], [15, 1.5, 150])
    for (let i = 0; i < 2000; i++) {
      const x = [1, rng.uniform() * 100, rng.uniform() * 4]
      const y = x.reduce((sum, value, at) => sum + value * (truth[at] ?? 0), 0)
      observe(estimate, x, y * rng.logNormal(1, 0.05), 0.05 * y)
    }
    for (const x of [
      [1, 5, 0.2],
      [1, 50, 2],
      [1, 100, 0],
      [1, 0, 4],
    ]) {
      const y = x.reduce((sum, value, at) => sum + value * (truth[at] ?? 0), 0)
      expect(predict(estimate, x) / y, `at ${x}`).toBeGreaterThan(0.94)
      expect(predict(estimate, x) / y, `at ${x}`).toBeLessThan(1.06)
    }
  })

  it('survives a million steady samples and then learns another direction', () => {
    const estimate = linearEstimate([10, 1, 80], [100, 10, 800])
    for (let i = 0; i < 1_000_000; i++) observe(estimate, [1, 8, 0], 20, 2)
    expect(isSound(estimate)).toBe(true)
    expect(predict(estimate, [1, 8, 0])).toBeCloseTo(20, 1)
    for (let i = 0; i < 200; i++) observe(estimate, [1, 8, 2], 20 + 2 * 33, 2)
    expect(isSound(estimate)).toBe(true)
    expect(predict(estimate, [1, 8, 2]) - predict(estimate, [1, 8, 0])).toBeCloseTo(66, 0)
  })

  it('says how far off it was, in its own measure', () => {
    const estimate = linearEstimate([10], [3])
    expect(observe(estimate, [1], 20, 4)).toEqual({ off: 10, sigma: 5 })
    expect(observe(estimate, [1], Number.NaN, 4)).toBeUndefined()
    expect(observe(estimate, [0], 5, 0)).toBeUndefined()
  })

  it('learns afresh when it is unsettled, from what it believed', () => {
    const estimate = linearEstimate([10, 1], [100, 10])
    for (let i = 0; i < 1000; i++) observe(estimate, [1, i % 20], 20 + (i % 20), 1)
    unsettle(estimate)
    expect(predict(estimate, [1, 10])).toBeCloseTo(30, 0)
    expect(deviation(estimate, [1, 0])).toBeCloseTo(100, 6)
    for (let i = 0; i < 6; i++) observe(estimate, [1, 3 * i], 2 * (20 + 3 * i), 1)
    expect(predict(estimate, [1, 10])).toBeCloseTo(60, 0)
  })

  it('follows a truth that moves', () => {
    const estimate = linearEstimate([10, 1], [100, 10])
    for (let i = 0; i < 3000; i++) observe(estimate, [1, i % 20], 10 + (i % 20), 1)
    for (let i = 0; i < 3000; i++) observe(estimate, [1, i % 20], 20 + 2 * (i % 20), 1)
    expect(predict(estimate, [1, 10])).toBeCloseTo(40, 0)
  })

  it('gives a single wild sample little say', () => {
    const estimate = linearEstimate([10], [100])
    for (let i = 0; i < 100; i++) observe(estimate, [1], 10, 1)
    observe(estimate, [1], 1e9, 1)
    expect(predict(estimate, [1])).toBeLessThan(11.5)
  })

  it('stays sound for any input, odd ones included', () => {
    const any = fc.oneof(
      fc.double({ min: -1e4, max: 1e4, noNaN: true }),
      fc.constantFrom(0, Number.NaN, Number.POSITIVE_INFINITY, -1),
    )
    const samples = fc.array(fc.tuple(any, any, any, any), { maxLength: 200, size: 'max' })
    fc.assert(
      fc.property(samples, (rows) => {
        const estimate = linearEstimate([1, 2], [10, 20])
        for (const [a, b, y, noise] of rows) observe(estimate, [a, b], y, noise)
        expect(isSound(estimate)).toBe(true)
        expect(variances(estimate).length).toBe(2)
      }),
      { numRuns: 60 },
    )
  })
})
