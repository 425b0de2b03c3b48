/** Calibration: quantiles that cover what they say, in order, apart by load where there is evidence, and never stuck. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Calibration,
  calibration,
  factor,
  type Level,
  learnError,
  remembered,
  restart,
} from '../../src/estimate/calibration.ts'
import { Rng } from '../../src/sim/rng.ts'

const SHARES = [
  ['p50', 0.5],
  ['p80', 0.8],
  ['p95', 0.95],
] as const
const LEVELS = SHARES.map(([level]) => level)

/** Learns that many pairs of 100 ms predicted, and counts how often each level held beforehand. */
function cover(errors: Calibration, observe: (turn: number) => number, turns: number, ofLoad = 0) {
  const held: Record<Level, number> = { p50: 0, p80: 0, p95: 0 }
  for (let turn = 0; turn < turns; turn++) {
    const observedMs = observe(turn)
    for (const level of LEVELS) if (observedMs <= 100 * factor(errors, ofLoad, level, turn)) held[level]++
    learnError(errors, ofLoad, observedMs, 100, turn)
  }
  return { p50: held.p50 / turns, p80: held.p80 / turns, p95: held.p95 / turns }
}

describe('calibration', () => {
  it.each([0.05, 0.3, 0.8])('covers what it says of steady noise of deviation %d', (sigma) => {
    const rng = new Rng(9)
    const errors = calibration()
    cover(errors, () => 130 * rng.logNormal(1, sigma), 300)
    const held = cover(errors, () => 130 * rng.logNormal(1, sigma), 5000)
    for (const [level, share] of SHARES) {
      expect(held[level], level).toBeGreaterThan(share - 0.02)
      expect(held[level], level).toBeLessThan(share + 0.02)
    }
  })

  it('covers what it says while the error drifts to four times and back', () => {
    const rng = new Rng(4)
    const errors = calibration()
    const drifting = (turn: number) => 100 * 4 ** Math.sin(turn / 400) * rng.logNormal(1, 0.2)
    cover(errors, drifting, 300)
    const held = cover(errors, drifting, 5000)
    for (const [level, share] of SHARES) {
      expect(held[level], level).toBeGreaterThan(share - 0.05)
      expect(held[level], level).toBeLessThan(share + 0.05)
    }
  })

  it('is usable at once and right after some twenty samples', () => {
    const rng = new Rng(2)
    const errors = calibration()
    expect(factor(errors, 0, 'p50', 0)).toBe(1)
    expect(factor(errors, 0, 'p80', 0)).toBeGreaterThan(1.2)
    cover(errors, () => 200 * rng.logNormal(1, 0.1), 20)
    for (const level of LEVELS) {
      expect(factor(errors, 0, level, 20)).toBeGreaterThan(1.8)
      expect(factor(errors, 0, level, 20)).toBeLessThan(2.6)
    }
  })

  it('tells loads apart once it has seen enough of one, and goes by the pool until then', () => {
    const errors = calibration()
    for (let i = 0; i < 49; i++) {
      learnError(errors, 1, 100, 100, i)
      learnError(errors, 2, 200, 100, i)
    }
    expect(factor(errors, 1, 'p50', 50)).toBe(factor(errors, 7, 'p50', 50))
    for (let i = 49; i < 60; i++) {
      learnError(errors, 1, 100, 100, i)
      learnError(errors, 2, 200, 100, i)
    }
    expect(factor(errors, 1, 'p50', 60)).toBeCloseTo(1, 6)
    expect(factor(errors, 2, 'p50', 60)).toBeCloseTo(2, 6)
  })

  it('lets dark errors fade when nothing is learnt any more, and forgets a load that was starved', () => {
    const errors = calibration()
    for (let i = 0; i < 60; i++) {
      learnError(errors, 1, 300, 100, i)
      learnError(errors, 2, 50, 100, i)
      learnError(errors, 3, 50, 100, i)
    }
    expect(factor(errors, 1, 'p50', 60)).toBeCloseTo(3, 6)
    // The load was refused for a minute: others are served, and it is judged as they are.
    for (let atMs = 60; atMs <= 60_060; atMs += 500) learnError(errors, 2, 50, 100, atMs)
    expect(factor(errors, 1, 'p50', 60_060)).toBeCloseTo(0.5, 6)
    // Nothing at all was served.
    const silent = calibration()
    for (let i = 0; i < 60; i++) learnError(silent, 1, 400, 100, 0)
    expect(factor(silent, 1, 'p50', 60_000)).toBeCloseTo(4, 6)
    expect(factor(silent, 1, 'p50', 120_000)).toBeCloseTo(2, 6)
    expect(factor(silent, 1, 'p50', 600_000)).toBeLessThan(1.01)
  })

  it('starts anew when the engine is another one', () => {
    const errors = calibration()
    for (let i = 0; i < 300; i++) learnError(errors, 1, 300, 100, i)
    expect(remembered(errors)).toBe(200)
    restart(errors)
    expect(remembered(errors)).toBe(0)
    expect(factor(errors, 1, 'p50', 300)).toBe(1)
  })

  it('keeps its quantiles in order, finite and bounded for anything', () => {
    const ms = fc.oneof(
      fc.double({ min: -10, max: 1e6, noNaN: true }),
      fc.constantFrom(Number.NaN, 0, Infinity),
    )
    const rows = fc.array(fc.tuple(ms, ms, fc.nat(3), fc.nat(200_000)), { maxLength: 150, size: 'max' })
    fc.assert(
      fc.property(rows, (all) => {
        const errors = calibration()
        let nowMs = 0
        for (const [observedMs, predictedMs, ofLoad, passedMs] of all) {
          nowMs += passedMs
          learnError(errors, ofLoad, observedMs, predictedMs, nowMs)
          const [p50 = 0, p80 = 0, p95 = 0] = LEVELS.map((level) => factor(errors, ofLoad, level, nowMs))
          expect(0.19 < p50 && p50 <= p80 && p80 <= p95 && p95 < 5.01).toBe(true)
        }
        expect(remembered(errors)).toBeLessThanOrEqual(200)
      }),
      { numRuns: 60 },
    )
  })
})
