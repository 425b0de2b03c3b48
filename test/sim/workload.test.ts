/** The workload generator: seeded, at the rates and lengths asked for, and free of engines. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventQueue } from '../../src/sim/event-queue.ts'
import { meanTokensOf } from '../../src/sim/lengths.ts'
import { mapToRates, type RateSegment, segmentsMs, steadyRate } from '../../src/sim/rates.ts'
import { Rng } from '../../src/sim/rng.ts'
import { generateWorkload, meanLengths, type WorkloadOptions } from '../../src/sim/workload.ts'
import { WORKLOADS } from '../../src/sim/workloads.ts'

function generate(options: Partial<WorkloadOptions> = {}) {
  return [...generateWorkload({ seed: 7, segments: steadyRate(100, 100_000), ...options })]
}

function cv(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length) / mean
}

describe('workload', () => {
  it('is the same for the same seed and another for another', () => {
    expect(generate()).toEqual(generate())
    expect(generate({ seed: 8 })).not.toEqual(generate())
  })

  it('sends the same requests at another rate, only sooner', () => {
    const slow = generate({ segments: steadyRate(50, 20_000) })
    const fast = generate({ segments: steadyRate(100, 20_000) })
    for (const [at, request] of slow.entries()) {
      const { atMs, ...rest } = fast[at]!
      expect({ ...request, atMs }).toEqual({ ...rest, atMs })
      expect(request.atMs).toBeCloseTo(atMs * 2, 5)
    }
  })

  it('has the mix and the mean lengths it promises', () => {
    const requests = generate()
    expect(requests.length / 10_000).toBeCloseTo(1, 1)
    for (const entry of WORKLOADS) {
      const own = requests.filter((request) => request.className === entry.name)
      expect(own.length / requests.length).toBeCloseTo(entry.share, 1)
      const meanPrompt = own.reduce((sum, request) => sum + request.promptTokens, 0) / own.length
      expect(meanPrompt / meanTokensOf(entry.prompt), entry.name).toBeGreaterThan(0.85)
      expect(meanPrompt / meanTokensOf(entry.prompt), entry.name).toBeLessThan(1.15)
      expect(own.every((request) => request.outputTokens <= request.maxTokens)).toBe(true)
    }
    expect(meanLengths().prompt).toBeCloseTo(1385, 0)
  })

  it('scales lengths down and keeps prefixes within prompts', () => {
    const small = generate({ lengthRatio: 0.1 })
    const mean = small.reduce((sum, request) => sum + request.promptTokens, 0) / small.length
    expect(mean).toBeGreaterThan(100)
    expect(mean).toBeLessThan(180)
    for (const request of small) {
      expect(request.promptTokens).toBeGreaterThanOrEqual(1)
      expect(request.outputTokens).toBeGreaterThanOrEqual(1)
      expect(request.shared?.tokens ?? 0).toBeLessThanOrEqual(request.promptTokens)
    }
  })

  it('is Poisson or bursty as asked', () => {
    const gaps = (gapCv: number) => {
      const instants = generate({ gapCv }).map((request) => request.atMs)
      return instants.slice(1).map((atMs, at) => atMs - instants[at]!)
    }
    expect(cv(gaps(1))).toBeGreaterThan(0.95)
    expect(cv(gaps(1))).toBeLessThan(1.05)
    expect(cv(gaps(3))).toBeGreaterThan(2.6)
  })

  it('names options that make no sense', () => {
    expect(() => generate({ classes: [] })).toThrow(/at least one class/)
    expect(() => generate({ gapCv: 0 })).toThrow(/gapCv must be above 0/)
    expect(() => generate({ lengthRatio: -1 })).toThrow(/lengthRatio must be above 0/)
    expect(() => generate({ segments: steadyRate(-1, 10) })).toThrow(/rate segments/)
  })
})

const segments = fc.array(
  fc.record({
    durationMs: fc.integer({ min: 0, max: 20_000 }),
    fromPerSec: fc.integer({ min: 0, max: 50 }),
    toPerSec: fc.integer({ min: 0, max: 50 }),
  }),
  { maxLength: 5 },
)

function expectedBy(plan: readonly RateSegment[], atMs: number): number {
  let count = 0
  let startMs = 0
  for (const { durationMs, fromPerSec, toPerSec = fromPerSec } of plan) {
    const insideMs = Math.min(Math.max(atMs - startMs, 0), durationMs)
    const rateAt =
      durationMs === 0 ? fromPerSec : fromPerSec + ((toPerSec - fromPerSec) * insideMs) / durationMs
    count += (((fromPerSec + rateAt) / 2) * insideMs) / 1000
    startMs += durationMs
  }
  return count
}

describe('rates', () => {
  it('put the n-th arrival where n are expected', () => {
    fc.assert(
      fc.property(segments, (plan) => {
        const instants = [...mapToRates(plan, () => 1)]
        const total = expectedBy(plan, segmentsMs(plan))
        expect(Math.abs(instants.length - Math.floor(total + 1e-6))).toBeLessThanOrEqual(1)
        for (const [at, atMs] of instants.entries()) expect(expectedBy(plan, atMs)).toBeCloseTo(at + 1, 4)
      }),
    )
  })
})

describe('random numbers', () => {
  it('have the moments they should', () => {
    const rng = new Rng(3)
    const mean = (draw: () => number) => {
      let sum = 0
      for (let at = 0; at < 20_000; at++) sum += draw()
      return sum / 20_000
    }
    expect(mean(() => rng.uniform())).toBeCloseTo(0.5, 1)
    expect(mean(() => rng.exponential(4))).toBeCloseTo(4, 0)
    expect(mean(() => rng.logNormal(10, 0.8)) / 10).toBeCloseTo(1, 1)
    expect(mean(() => rng.gamma(0.25, 4))).toBeCloseTo(1, 1)
    expect(mean(() => rng.normal() ** 2)).toBeCloseTo(1, 1)
  })

  it('fork into streams of their own', () => {
    const root = new Rng(1)
    expect(root.fork('a').uniform()).toBe(new Rng(1).fork('a').uniform())
    expect(root.fork('a').uniform()).not.toBe(root.fork('b').uniform())
  })
})

describe('event queue', () => {
  it('gives items in order of time, and of arrival among equals', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 20 })), (instants) => {
        const queue = new EventQueue<number>()
        for (const [at, atMs] of instants.entries()) queue.push(atMs, at)
        const out: number[] = []
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) out.push(next.item)
        const expected = instants
          .map((atMs, at) => [atMs, at] as const)
          .sort((a, b) => a[0] - b[0] || a[1] - b[1])
        expect(out).toEqual(expected.map(([, at]) => at))
      }),
    )
  })
})
