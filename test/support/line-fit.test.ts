/** The fit that tells a leak from noise. */
import { describe, expect, it } from 'vitest'
import { Rng } from '../../src/sim/rng.ts'
import { fitLine } from './line-fit.ts'

const xs = Array.from({ length: 50 }, (_, at) => at * 20)

describe('a fitted line', () => {
  it('has the slope of a line and no doubt of it', () => {
    const { slope, slopeError } = fitLine(
      xs,
      xs.map((x) => 3 * x + 7),
    )
    expect(slope).toBeCloseTo(3)
    expect(slopeError).toBeCloseTo(0)
  })

  it('finds a slope under noise within some standard errors, and none where there is none', () => {
    const rng = new Rng(5)
    const noisy = (rise: number) =>
      fitLine(
        xs,
        xs.map((x) => rise * x + 1e5 * rng.normal()),
      )
    for (const rise of [0, 1000]) {
      const { slope, slopeError } = noisy(rise)
      expect(Math.abs(slope - rise)).toBeLessThan(4 * slopeError)
      expect(slopeError).toBeGreaterThan(0)
    }
  })

  it('wants three samples at different places', () => {
    expect(() => fitLine([1, 2], [1, 2])).toThrow('three pairs')
    expect(() => fitLine([1, 1, 1], [1, 2, 3])).toThrow('one x')
  })
})
