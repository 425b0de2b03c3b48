/** Rolling sums and quantiles against a naive list of everything that happened. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { QUANTILE_ERROR_RATIO, RollingQuantiles } from '../../src/slo/rolling-quantiles.ts'
import { RollingSums } from '../../src/slo/rolling-sums.ts'
import { DAY_MS, ForwardClock, HOUR_MS } from '../../src/slo/windows.ts'

const anySteps = fc.array(
  fc.record({
    stepMs: fc.oneof(fc.nat({ max: 150 }), fc.nat({ max: 3000 })),
    field: fc.nat({ max: 2 }),
    amount: fc.nat({ max: 9 }),
  }),
  { maxLength: 80, size: 'max' },
)

describe('RollingSums', () => {
  it('holds what happened within the span, and at most one slice more', () => {
    fc.assert(
      fc.property(anySteps, fc.nat({ max: 10_000 }), (steps, startMs) => {
        const sums = new RollingSums(3, 1000, 10, false, startMs)
        const all: { atMs: number; field: number; amount: number }[] = []
        let nowMs = startMs
        for (const { stepMs, field, amount } of steps) {
          nowMs += stepMs
          sums.add(field, amount, nowMs)
          all.push({ atMs: nowMs, field, amount })
          const since = (spanMs: number): number[] =>
            [0, 1, 2].map((of) =>
              all
                .filter((a) => a.field === of && a.atMs > nowMs - spanMs)
                .reduce((sum, a) => sum + a.amount, 0),
            )
          const seen = Array.from(sums.at(nowMs))
          for (const of of [0, 1, 2]) {
            expect(seen[of]).toBeGreaterThanOrEqual(since(1000)[of] ?? 0)
            expect(seen[of]).toBeLessThanOrEqual(since(1100)[of] ?? 0)
          }
        }
      }),
    )
  })

  it('is the same after a snapshot and a restore, aged by the time away', () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        const first = new RollingSums(3, 1000, 10, false, 0)
        let nowMs = 0
        for (const { stepMs, field, amount } of steps) {
          nowMs += stepMs
          first.add(field, amount, nowMs)
        }
        const second = new RollingSums(3, 1000, 10, true, 77)
        second.restore(first.rows(nowMs), first.sliceMs, 0, 77)
        expect(second.at(77)).toEqual(first.at(nowMs))
        const aged = new RollingSums(3, 1000, 10, false, 77)
        aged.restore(first.rows(nowMs), first.sliceMs, 300, 77)
        expect(aged.at(77)).toEqual(first.at(nowMs + 300))
      }),
    )
  })

  it('forgets all after a leap, in bounded work', () => {
    const sums = new RollingSums(1, 1000, 10, false, 0)
    sums.add(0, 5, 0)
    expect(sums.at(1e15)[0]).toBe(0)
  })

  it('covers no more than it has seen', () => {
    const sums = new RollingSums(1, 1000, 10, false, 5000)
    expect(sums.coveredMs(5200)).toBe(200)
    expect(sums.coveredMs(9950)).toBe(1050)
  })
})

describe('RollingQuantiles', () => {
  it('keeps each quantile within the stated error of a true sample', () => {
    const samples = fc.array(fc.double({ min: 0.2, max: 600_000, noNaN: true }), {
      minLength: 1,
      maxLength: 200,
      size: 'max',
    })
    fc.assert(
      fc.property(samples, (values) => {
        const quantiles = new RollingQuantiles(30 * DAY_MS, 0)
        for (const value of values) quantiles.add(value, 0)
        const told = quantiles.over('5m', 0)
        const sorted = [...values].sort((a, b) => a - b)
        for (const [share, ms] of [
          [0.5, told?.p50Ms],
          [0.9, told?.p90Ms],
          [0.99, told?.p99Ms],
        ] as const) {
          const truth = sorted[Math.ceil(share * sorted.length) - 1] ?? 0
          expect(Math.abs((ms ?? 0) - truth)).toBeLessThanOrEqual(truth * (QUANTILE_ERROR_RATIO + 1e-9))
        }
      }),
    )
  })

  it('has none without samples, leaves out what is no number and takes the extremes', () => {
    const quantiles = new RollingQuantiles(30 * DAY_MS, 0)
    quantiles.add(Number.NaN, 0)
    quantiles.add(Number.POSITIVE_INFINITY, 0)
    expect(quantiles.over('5m', 0)).toBeUndefined()
    quantiles.add(0, 0)
    quantiles.add(1e12, 0)
    expect(quantiles.over('5m', 0)?.samples).toBe(2)
    expect(quantiles.over('5m', 3_000_000)).toBeUndefined()
    expect(quantiles.over('1h', 3_000_000)?.samples).toBe(2)
    expect(quantiles.over('1h', 2 * HOUR_MS)).toBeUndefined()
    expect(quantiles.over('6h', 2 * HOUR_MS)?.samples).toBe(2)
    expect(quantiles.over('period', 29 * DAY_MS)?.samples).toBe(2)
    expect(quantiles.over('period', 33 * DAY_MS)).toBeUndefined()
  })
})

describe('ForwardClock', () => {
  it('never runs back, keeps pace after a step back, and takes jitter as no time', () => {
    const clock = new ForwardClock()
    expect([1000, 2000, 1990, 2000, 2010].map((nowMs) => clock.at(nowMs))).toEqual([
      0, 1000, 1000, 1000, 1010,
    ])
    expect([-900_000, -899_000, Number.NaN, -898_000].map((nowMs) => clock.at(nowMs))).toEqual([
      1010, 2010, 2010, 3010,
    ])
  })
})
