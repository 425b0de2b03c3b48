/** The weight that load balancers are told: it finds what a fleet can carry, does not swing, and never ejects. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  headroomRatio,
  LEAST_WEIGHT_RATIO,
  UpstreamWeight,
  weightPercent,
} from '../../src/slo/upstream-weight.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/slo/windows.ts'

const STEP_MS = 10_000

describe('headroomRatio', () => {
  it('is the share that can be kept while some model is short, else the least headroom', () => {
    const of = (requestsPerSec: number, ratio: number) => ({ requestsPerSec, ratio })
    expect(headroomRatio([of(3, 2), of(1, 0.5)])).toBeCloseTo(3.5 / 4)
    expect(headroomRatio([of(3, 2), of(1, 1.25)])).toBe(1.25)
    expect(headroomRatio([of(0, 0), of(1, 3)])).toBe(3)
    expect(headroomRatio([of(0, 1)])).toBeUndefined()
  })
})

describe('the weight of an instance', () => {
  it('settles where its fleet can carry what it gets, with demand seen as a mean of five minutes', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.2, max: 3, noNaN: true }), (capacity) => {
        const weight = new UpstreamWeight(0)
        const weights: number[] = []
        for (let nowMs = STEP_MS; nowMs <= 3 * HOUR_MS; nowMs += STEP_MS) {
          weights.push(weight.ratio)
          const seen = weights.slice(-30)
          const demand = seen.reduce((sum, value) => sum + value, 0) / seen.length
          weight.update(capacity / demand, nowMs)
        }
        const last = weights.slice(-360)
        const fits = Math.min(1, capacity)
        for (const value of last) expect(Math.abs(value / fits - 1)).toBeLessThan(0.13)
        expect(Math.max(...last) - Math.min(...last)).toBeLessThan(0.02)
      }),
      { numRuns: 40 },
    )
  })

  it('stays where the difference is small, and never falls below a tenth', () => {
    const weight = new UpstreamWeight(0)
    for (let at = 1; at <= 100; at++) weight.update(at % 2 === 0 ? 0.96 : 1.09, at * STEP_MS)
    expect(weight.ratio).toBe(1)
    for (let at = 101; at <= 1000; at++) weight.update(0, at * STEP_MS)
    expect(weight.ratio).toBe(LEAST_WEIGHT_RATIO)
    expect(weightPercent(weight.ratio)).toBe(10)
  })

  it('moves by little at once, whatever it is told and however the clock jumps', () => {
    const weight = new UpstreamWeight(0)
    weight.update(0, STEP_MS)
    expect(weight.ratio).toBeGreaterThan(0.97)
    weight.update(0, 100 * HOUR_MS)
    expect(weight.ratio).toBeGreaterThan(0.4)
    const before = weight.ratio
    weight.update(0, 0)
    expect(weight.ratio).toBe(before)
  })

  it('goes back to its usual share while nobody knows', () => {
    const weight = new UpstreamWeight(0)
    weight.update(0.5, 10 * MINUTE_MS)
    expect(weight.ratio).toBeLessThan(0.9)
    weight.update(undefined, 20 * MINUTE_MS)
    expect(weight.ratio).toBe(1)
  })
})
