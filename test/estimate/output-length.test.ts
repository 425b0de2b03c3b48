/** Output lengths: what is left of an answer, its caps, and answers that always run to their cap. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  learnCutOff,
  learnLength,
  outputLengths,
  PRIOR_OUTPUT_TOKENS,
  remainingTokens,
  remainingWithin,
} from '../../src/estimate/output-length.ts'
import { Rng } from '../../src/sim/rng.ts'

const NO_LIMITS = {}

describe('output lengths', () => {
  it('assume something before anything was seen, within the caps', () => {
    const lengths = outputLengths()
    expect(remainingTokens(lengths, 0, NO_LIMITS, 0.5)).toBe(PRIOR_OUTPUT_TOKENS)
    expect(remainingTokens(lengths, 0, { maxOutputTokens: 40 }, 0.5)).toBe(40)
    expect(remainingTokens(lengths, 35, { maxOutputTokens: 40 }, 0.5)).toBe(5)
    expect(remainingTokens(lengths, 0, { minOutputTokens: 900 }, 0.5)).toBe(900)
  })

  it('come close to the quantiles of what was seen', () => {
    const rng = new Rng(5)
    const lengths = outputLengths()
    for (let i = 0; i < 4000; i++) learnLength(lengths, rng.logNormal(200, 0.9), NO_LIMITS)
    const median = 200 * Math.exp(-(0.9 ** 2) / 2)
    const at = (quantile: number) => remainingTokens(lengths, 0, NO_LIMITS, quantile)
    for (const [quantile, z] of [
      [0.3, -0.524],
      [0.5, 0],
      [0.75, 0.674],
    ] as const) {
      const ratio = at(quantile) / (median * Math.exp(0.9 * z))
      expect(ratio, `quantile ${quantile}`).toBeGreaterThan(0.8)
      expect(ratio, `quantile ${quantile}`).toBeLessThan(1.25)
    }
  })

  it('come close to the mean length of those that got so far', () => {
    const rng = new Rng(8)
    const seen = Array.from({ length: 4000 }, () => rng.logNormal(200, 0.9))
    const [whole, cut] = [outputLengths(), outputLengths()]
    for (const tokens of seen) {
      learnLength(whole, tokens, NO_LIMITS)
      const leavesAt = rng.logNormal(2500, 0.5)
      if (tokens <= leavesAt) learnLength(cut, tokens, NO_LIMITS)
      else learnCutOff(cut, leavesAt, NO_LIMITS)
    }
    for (const soFar of [0, 100, 300]) {
      const longer = seen.slice(-1000).filter((tokens) => tokens > soFar)
      const mean = longer.reduce((sum, tokens) => sum + tokens, 0) / longer.length
      for (const lengths of [whole, cut]) {
        const left = remainingWithin(lengths, soFar, Number.POSITIVE_INFINITY, 0, 'mean')
        const ratio = (soFar + left) / mean
        expect(ratio, `after ${soFar}`).toBeGreaterThan(0.75)
        expect(ratio, `after ${soFar}`).toBeLessThan(1.33)
      }
    }
  })

  it('expect a longer whole answer the longer it has run', () => {
    const rng = new Rng(6)
    const lengths = outputLengths()
    for (let i = 0; i < 1000; i++) learnLength(lengths, rng.logNormal(150, 1), NO_LIMITS)
    let before = 0
    for (let soFar = 0; soFar < 3000; soFar += 7) {
      const whole = soFar + remainingTokens(lengths, soFar, NO_LIMITS, 0.5)
      expect(whole).toBeGreaterThanOrEqual(before - 1e-9)
      expect(whole).toBeGreaterThan(soFar)
      before = whole
    }
  })

  it('see that answers always run to their cap, whatever it is', () => {
    const varied = outputLengths()
    const fixed = outputLengths()
    for (let i = 0; i < 50; i++) {
      const cap = 20 + 13 * i
      learnLength(varied, cap, { maxOutputTokens: cap })
      learnLength(fixed, 1000, { maxOutputTokens: 1000 })
    }
    for (const [made, cap] of [
      [0, 700],
      [300, 700],
      [0, 33],
    ] as const)
      expect(remainingTokens(varied, made, { maxOutputTokens: cap }, 0.3)).toBeCloseTo(cap - made, 6)
    for (const made of [0, 500, 960])
      expect(remainingTokens(fixed, made, { maxOutputTokens: 1000 }, 0.3)).toBeCloseTo(1000 - made, 6)
  })

  it('are not made short by clients that leave long answers', () => {
    const rng = new Rng(11)
    const [whole, fair, naive] = [outputLengths(), outputLengths(), outputLengths()]
    for (let i = 0; i < 4000; i++) {
      const tokens = rng.logNormal(300, 0.8)
      const leavesAt = rng.logNormal(350, 0.5)
      learnLength(whole, tokens, NO_LIMITS)
      if (tokens <= leavesAt) {
        learnLength(fair, tokens, NO_LIMITS)
        learnLength(naive, tokens, NO_LIMITS)
      } else learnCutOff(fair, leavesAt, NO_LIMITS)
    }
    for (const [soFar, quantile] of [
      [0, 0.5],
      [0, 0.75],
      [200, 0.5],
    ] as const) {
      const at = (lengths: typeof whole) => remainingTokens(lengths, soFar, NO_LIMITS, quantile)
      expect(at(fair) / at(whole), `${soFar} at ${quantile}`).toBeGreaterThan(0.8)
      expect(at(fair) / at(whole), `${soFar} at ${quantile}`).toBeLessThan(1.25)
      expect(at(naive), `${soFar} at ${quantile}`).toBeLessThan(at(fair))
    }
  })

  it('say the most that was seen when all longer answers were cut off', () => {
    const lengths = outputLengths()
    for (let i = 0; i < 20; i++) learnLength(lengths, 10, NO_LIMITS)
    for (let i = 0; i < 60; i++) learnCutOff(lengths, 500, NO_LIMITS)
    expect(remainingTokens(lengths, 0, NO_LIMITS, 0.2)).toBeLessThan(15)
    expect(remainingTokens(lengths, 0, NO_LIMITS, 0.5)).toBeGreaterThan(400)
  })

  it('keep to the limits for anything', () => {
    const tokens = fc.double({ min: 0.5, max: 70_000, noNaN: true })
    const limit = fc.option(fc.integer({ min: 0, max: 50_000 }), { nil: undefined })
    fc.assert(
      fc.property(
        fc.array(tokens, { maxLength: 30 }),
        limit,
        limit,
        limit,
        fc.double({ min: 0, max: 60_000, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (seen, seenCap, cap, floor, soFar, quantile) => {
          const lengths = outputLengths()
          for (const one of seen) learnLength(lengths, one, { maxOutputTokens: seenCap })
          const left = remainingTokens(
            lengths,
            soFar,
            { maxOutputTokens: cap, minOutputTokens: floor },
            quantile,
          )
          expect(left).toBeGreaterThanOrEqual(1)
          if (cap !== undefined) expect(left).toBeLessThanOrEqual(Math.max(1, cap - soFar))
          else if (floor !== undefined) expect(left).toBeGreaterThanOrEqual(Math.max(1, floor - soFar))
          expect(Number.isFinite(left)).toBe(true)
        },
      ),
      { numRuns: 80 },
    )
  })

  it('say one token of an answer whose cap is 0, where others run to theirs', () => {
    const lengths = outputLengths()
    for (let i = 0; i < 20; i++) learnLength(lengths, 100, { maxOutputTokens: 100 })
    for (const quantile of [0.3, 0.5, 1])
      expect(remainingTokens(lengths, 0, { maxOutputTokens: 0 }, quantile)).toBe(1)
  })

  it('take no notice of odd lengths', () => {
    const lengths = outputLengths()
    for (const odd of [0, -5, Number.NaN]) {
      learnLength(lengths, odd, { maxOutputTokens: 10 })
      learnCutOff(lengths, odd, { maxOutputTokens: 10 })
    }
    expect(lengths.tokens.samples).toBe(0)
    expect(remainingTokens(lengths, 0, NO_LIMITS, 0.5)).toBe(PRIOR_OUTPUT_TOKENS)
  })
})
