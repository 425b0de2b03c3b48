/** Holds what the goodput bench says of hindsight to its words: the bound bounds, and the search finds what is there. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSluice } from '../../src/policies/sluice.ts'
import { WORKLOAD_CLASSES } from '../../src/sim/classes.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { summarize } from '../../src/sim/report.ts'
import { simulate } from '../../src/sim/run.ts'
import { stepMs } from '../../src/sim/step-time.ts'
import { generateWorkload } from '../../src/sim/workload.ts'

interface Job {
  readonly fromMs: number
  readonly toMs: number
  readonly workMs: number
}
interface Found {
  readonly good: number
  readonly excluded: readonly boolean[]
  readonly starts: number
  readonly moves: number
}
interface Bench {
  fluidOptimum(jobs: readonly Job[], fleet: { replicas: number; horizonMs: number; slots?: number }): number
  goodBound(options: object): { readonly prompts: number; readonly all: number; readonly bound: number }
  tokenPrices(profile: object, limits: object): readonly { readonly alpha: number; readonly beta: number }[]
  searchSchedule(options: object): Promise<Found>
  cheapestWithin(judged: readonly boolean[], costs: readonly number[], availableMs: number): boolean[]
}

const load = async (name: string): Promise<object> =>
  import(new URL(`../../bench/goodput/${name}.mjs`, import.meta.url).href)
const names = ['bound', 'work', 'hindsight'] as const
const bench = Object.assign({}, ...(await Promise.all(names.map(load)))) as Bench

const SLOW = profile('demo/slow')
const LIMITS = { maxNumSeqs: 16, maxNumBatchedTokens: 512 }

describe('the fluid optimum', () => {
  const fleet = { replicas: 1, horizonMs: 1000, slots: 10 }

  it('serves all that fits, and a part of what does not', () => {
    const job = { fromMs: 0, toMs: 500, workMs: 200 }
    expect(bench.fluidOptimum([job, job], fleet)).toBeCloseTo(2, 9)
    expect(bench.fluidOptimum([job, job, job], fleet)).toBeCloseTo(2.5, 9)
    expect(bench.fluidOptimum([job, job, job], { ...fleet, replicas: 2 })).toBeCloseTo(3, 9)
  })

  it('serves the cheapest where windows compete, and others where they do not', () => {
    const cheap = { fromMs: 0, toMs: 100, workMs: 50 }
    const dear = { fromMs: 0, toMs: 100, workMs: 100 }
    const elsewhere = { fromMs: 500, toMs: 600, workMs: 100 }
    expect(bench.fluidOptimum([dear, cheap], fleet)).toBeCloseTo(1.5, 9)
    expect(bench.fluidOptimum([dear, cheap, elsewhere], fleet)).toBeCloseTo(2.5, 9)
  })

  it('is no less than what serving whole requests by deadline reaches', () => {
    const jobs = fc.array(
      fc.record({
        slot: fc.integer({ min: 0, max: 8 }),
        width: fc.integer({ min: 1, max: 4 }),
        work: fc.integer({ min: 1, max: 250 }),
      }),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(jobs, (drawn) => {
        const list = drawn.map(({ slot, width, work }) => {
          return { fromMs: slot * 100, toMs: Math.min(1000, (slot + width) * 100), workMs: work }
        })
        let busyUntilMs = 0
        let whole = 0
        for (const { fromMs, toMs, workMs } of [...list].sort((a, b) => a.toMs - b.toMs)) {
          const endMs = Math.max(busyUntilMs, fromMs) + workMs
          if (endMs > toMs) continue
          busyUntilMs = endMs
          whole++
        }
        expect(bench.fluidOptimum(list, fleet)).toBeGreaterThanOrEqual(whole - 1e-9)
      }),
    )
  })
})

describe('the prices of tokens', () => {
  it('never add up to more than any step takes', () => {
    const prices = bench.tokenPrices(SLOW, LIMITS)
    expect(prices.length).toBeGreaterThan(2)
    const steps = fc.record({ b: fc.integer({ min: 0, max: 16 }), n: fc.integer({ min: 0, max: 512 }) })
    fc.assert(
      fc.property(steps, ({ b, n }) => {
        fc.pre(n + b > 0 && n + b <= 512)
        const work = { prefillTokens: n, prefillContextTokens: 0, decodeSequences: b, decodeContextTokens: 0 }
        for (const { alpha, beta } of prices) {
          expect(alpha * n + beta * b).toBeLessThanOrEqual(stepMs(SLOW, work) + 1e-9)
        }
      }),
    )
  })
})

describe('the certified bound', () => {
  const durationMs = 12_000
  const bounded = (perSec: number, seed: number) => {
    const requests = [
      ...generateWorkload({ seed, lengthRatio: 0.25, segments: steadyRate(perSec, durationMs) }),
    ]
    const result = simulate({
      replicas: [{ engine: { profile: SLOW } }, { engine: { profile: SLOW } }],
      requests,
      createScheduler: createSluice,
      drainMs: 10_000,
    })
    const attained = summarize(result, 2000, durationMs).total.attainmentRatio ?? 1
    const { bound } = bench.goodBound({
      requests: requests.map((request) => ({ ...request, slo: WORKLOAD_CLASSES[request.className] })),
      profile: SLOW,
      limits: LIMITS,
      replicas: 2,
      fromMs: 2000,
      horizonMs: durationMs + 10_000,
    })
    return { attained, bound }
  }

  it('is above what our scheduler reaches, at any load', () => {
    for (const [perSec, seed] of [
      [6, 1],
      [20, 2],
      [40, 3],
    ] as const) {
      const { attained, bound } = bounded(perSec, seed)
      expect(bound).toBeGreaterThanOrEqual(attained)
      expect(bound).toBeLessThanOrEqual(1)
    }
  })

  it('falls well below 1 in deep overload', () => {
    expect(bounded(90, 5).bound).toBeLessThan(0.8)
  })
})

describe('the search for a schedule', () => {
  // Room for 10 units of cost; whoever is let in beyond it spoils all that come after.
  const costs = [1, 2, 8, 9, 1, 3, 7, 1, 1, 1]
  const judged = costs.map(() => true)
  const replay = (_: unknown, excluded: readonly boolean[]) => {
    let spent = 0
    const flags = costs.map((cost, index) => {
      if (excluded[index]) return false
      spent += cost
      return spent <= 10
    })
    return Promise.resolve({ good: flags.filter(Boolean).length, flags })
  }
  const nobody = costs.map(() => false)
  const search = (budget: number, starts = [{ base: 'ours', excluded: nobody }]) =>
    bench.searchSchedule({ judged, costs, starts, replay, budget })

  it('gives up the dearest that fail until the rest fits', async () => {
    expect((await replay('', nobody)).good).toBe(2)
    expect((await search(12)).good).toBe(7)
  })

  it('keeps to its budget, is never worse than a start, and finds the same again', async () => {
    for (let budget = 1; budget < 12; budget++) {
      const found = await search(budget)
      expect(found.starts).toBe(1)
      expect(found.starts + found.moves).toBeLessThanOrEqual(budget)
      expect(found.good).toBeGreaterThanOrEqual(2)
      expect(await search(budget)).toEqual(found)
      expect((await replay('', found.excluded)).good).toBe(found.good)
    }
  })

  it('ends by itself when nothing can be changed', async () => {
    const all = { base: 'ours', excluded: nobody }
    const found = await bench.searchSchedule({
      judged,
      costs,
      starts: [all],
      replay: () => Promise.resolve({ good: 10, flags: judged }),
      budget: 50,
    })
    expect(found).toMatchObject({ good: 10, starts: 1, moves: 0 })
  })

  it('can begin with the cheapest that fit', () => {
    const excluded = bench.cheapestWithin([false, true, true, true, true], [0, 9, 2, 8, 3], 13)
    expect(excluded).toEqual([true, true, false, false, false])
  })
})
