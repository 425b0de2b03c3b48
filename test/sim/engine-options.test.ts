/** What the options of the engine model do: speculation, whole prompts, pools behind one address, speed. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createEngine } from '../../src/sim/engine-pools.ts'
import type {
  EngineRequest,
  ReplicaEngineOptions,
  SimEngine,
  StepReport,
} from '../../src/sim/engine-types.ts'
import { profile } from '../../src/sim/profiles.ts'

const H100 = profile('Llama-3.1-8B/H100-80G-SXM/tp1')
const SLOW = profile('demo/slow')

function request(id: string, promptTokens: number, outputTokens: number): EngineRequest {
  return { id, promptTokens, outputTokens: [outputTokens] }
}

interface Seen {
  readonly firstAtMs: number
  readonly endedAtMs: number
  readonly tokens: number
  readonly cachedTokens: number
}

/** Runs all that is inside to its end; what came of each request. */
function drain(
  engine: SimEngine,
  onStep: (report: StepReport) => void = () => {},
): ReadonlyMap<string, Seen> {
  const seen = new Map<string, Seen>()
  engine.advanceTo(1e9, (report) => {
    onStep(report)
    for (const { requestId, emittedTokens, cachedTokens } of report.emitted) {
      const before = seen.get(requestId)
      seen.set(requestId, {
        firstAtMs: before?.firstAtMs ?? report.endedAtMs,
        endedAtMs: report.endedAtMs,
        tokens: (before?.tokens ?? 0) + emittedTokens,
        cachedTokens,
      })
    }
  })
  return seen
}

/** The longest pause of a stream before whose engine those prompts come together. */
function worstGapMs(options: ReplicaEngineOptions, prompts: readonly number[]): number {
  const engine = createEngine(options)
  engine.submit(request('stream', 20, 60), 0)
  engine.advanceTo(300, () => {})
  for (const [at, promptTokens] of prompts.entries()) engine.submit(request(`p${at}`, promptTokens, 1), 300)
  let lastAtMs = 0
  let worstMs = 0
  drain(engine, (report) => {
    if (!report.emitted.some(({ requestId }) => requestId === 'stream')) return
    if (lastAtMs > 0) worstMs = Math.max(worstMs, report.endedAtMs - lastAtMs)
    lastAtMs = report.endedAtMs
  })
  return worstMs
}

describe('speculation', () => {
  const speculative = { draftTokens: 4, acceptanceRatio: 0.7, draftCostRatio: 0.05 }

  /** Output tokens a second of `batch` sequences that decode together. */
  function tokensPerSec(batch: number, options: Partial<ReplicaEngineOptions>): number {
    const engine = createEngine({ profile: H100, maxNumSeqs: 512, maxNumBatchedTokens: 8192, ...options })
    for (let at = 0; at < batch; at++) engine.submit(request(`r${at}`, 16, 400), 0)
    const seen = [...drain(engine).values()]
    const tokens = seen.reduce((sum, each) => sum + each.tokens, 0)
    return (tokens * 1000) / Math.max(...seen.map(({ endedAtMs }) => endedAtMs))
  }

  it('helps a small batch and hurts a full one', () => {
    const gain = (batch: number) => tokensPerSec(batch, { speculative }) / tokensPerSec(batch, {})
    expect(gain(1)).toBeGreaterThan(1.8)
    expect(gain(512)).toBeLessThan(0.8)
  })

  it('makes as many tokens a step as the acceptance promises', () => {
    const engine = createEngine({ profile: H100, speculative })
    engine.submit(request('a', 16, 20_000), 0)
    let steps = 0
    drain(engine, (report) => {
      if (report.decodeTokens > 0) steps++
    })
    // (1 - a^5) / (1 - a), Leviathan et al. 2023.
    expect(20_000 / steps / ((1 - 0.7 ** 5) / 0.3)).toBeCloseTo(1, 1)
  })

  it('ends every request with the tokens asked for, whatever it guesses', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 8 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer(),
        (outputs, draftTokens, acceptanceRatio, seed) => {
          const engine = createEngine({
            profile: SLOW,
            seed,
            kvBlocks: 16,
            maxNumSeqs: 4,
            maxNumBatchedTokens: 40,
            maxModelLenTokens: 200,
            speculative: { draftTokens, acceptanceRatio, draftCostRatio: 0 },
          })
          for (const [at, output] of outputs.entries()) engine.submit(request(`r${at}`, 60, output), 0)
          let budget = 0
          const seen = drain(engine, (report) => {
            budget = Math.max(budget, report.prefillTokens + report.decodeTokens)
          })
          expect(outputs.map((_, at) => seen.get(`r${at}`)?.tokens)).toEqual(outputs)
          expect(budget).toBeLessThanOrEqual(40)
          expect(engine.gauges().kvUsageRatio).toBe(0)
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('whole prompts', () => {
  const whole = { profile: SLOW, chunkedPrefill: false, maxModelLenTokens: 2000, kvBlocks: 500 }

  it('are computed in one step each, however long', () => {
    const engine = createEngine(whole)
    engine.submit(request('a', 1800, 2), 0)
    const prefills: number[] = []
    drain(engine, ({ prefillTokens }) => prefills.push(prefillTokens))
    expect(prefills).toEqual([1800, 0])
  })

  it('wait for a step that has room for all of them', () => {
    const engine = createEngine(whole)
    for (const id of ['a', 'b', 'c']) engine.submit(request(id, 900, 1), 0)
    const prefills: number[] = []
    drain(engine, ({ prefillTokens }) => prefills.push(prefillTokens))
    expect(prefills).toEqual([1800, 900])
  })

  it('stall a running stream for longer than chunks do', () => {
    const gapMs = (chunkedPrefill: boolean) => worstGapMs({ ...whole, chunkedPrefill }, [1800])
    expect(gapMs(false)).toBeGreaterThan(2.5 * gapMs(true))
  })

  it('need a budget that takes the longest', () => {
    expect(() => createEngine({ ...whole, maxNumBatchedTokens: 512 })).toThrow(/or long prompts never start/)
  })
})

describe('pools behind one address', () => {
  const disaggregated = { prefillEngines: 1, decodeEngines: 2, transferBaseMs: 3, transferPerTokenMs: 0.01 }
  const pools = { profile: SLOW, disaggregated }

  it('take prefill, transfer and one more step for the first token', () => {
    const engine = createEngine(pools)
    engine.submit(request('a', 500, 3), 0)
    const { firstAtMs = 0, tokens, endedAtMs = 0 } = drain(engine).get('a') ?? {}
    const overheadMs = SLOW.requestOverheadMs
    const prefillMs = 20 + 0.25 * 500 + 0.5 + 500 * 250 * 1e-6
    // The last prompt token is computed where the answer is made.
    const lastMs = 26 + 0.5 + 499.5 * 1e-6
    expect(firstAtMs).toBeCloseTo(overheadMs + prefillMs + 3 + 5 + overheadMs + lastMs, 6)
    expect(tokens).toBe(3)
    expect(endedAtMs - firstAtMs).toBeCloseTo(2 * (25 + 0.5 + 0.5) + 1003 * 1e-5, 6)
  })

  it('keep prompts out of the way of streams', () => {
    const prompts = [2000, 2000, 2000, 2000, 2000]
    const apart = { ...pools, disaggregated: { ...disaggregated, decodeEngines: 1 } }
    expect(worstGapMs({ profile: SLOW }, prompts)).toBeGreaterThan(100)
    expect(worstGapMs(apart, prompts)).toBeLessThan(35)
  })

  it('send one transfer at a time', () => {
    const engine = createEngine({ ...pools, disaggregated: { ...disaggregated, transferBaseMs: 1000 } })
    for (const id of ['a', 'b']) engine.submit(request(id, 50, 1), 0)
    const seen = drain(engine)
    expect((seen.get('b')?.firstAtMs ?? 0) - (seen.get('a')?.firstAtMs ?? 0)).toBeGreaterThan(990)
  })

  it('end every request once or let it go, and lose no time and no block', () => {
    const plan = fc.array(
      fc.record({
        atMs: fc.integer({ min: 0, max: 2000 }),
        promptTokens: fc.integer({ min: 1, max: 150 }),
        outputTokens: fc.integer({ min: 1, max: 40 }),
        abortAfterMs: fc.option(fc.integer({ min: 0, max: 800 }), { nil: undefined, freq: 3 }),
      }),
      { minLength: 1, maxLength: 20 },
    )
    fc.assert(
      fc.property(plan, (arrivals) => {
        const engine = createEngine({ ...pools, kvBlocks: 40, maxNumSeqs: 4, maxModelLenTokens: 200 })
        const actions = arrivals.flatMap(({ atMs, promptTokens, outputTokens, abortAfterMs }, at) => [
          { atMs, act: () => void engine.submit(request(`r${at}`, promptTokens, outputTokens), atMs) },
          ...(abortAfterMs === undefined
            ? []
            : [
                { atMs: atMs + abortAfterMs, act: () => void (engine.abort(`r${at}`) && gone.add(`r${at}`)) },
              ]),
        ])
        const gone = new Set<string>()
        const tokens = new Map<string, number>()
        const finished: string[] = []
        const onStep = (report: StepReport) => {
          for (const { requestId, emittedTokens } of report.emitted) {
            tokens.set(requestId, (tokens.get(requestId) ?? 0) + emittedTokens)
          }
          finished.push(...report.finished.map(({ requestId }) => requestId))
        }
        for (const { atMs, act } of actions.toSorted((a, b) => a.atMs - b.atMs)) {
          engine.advanceTo(atMs, onStep)
          act()
        }
        engine.advanceTo(1e9, onStep)
        expect(engine.nextEventAtMs()).toBeUndefined()
        expect(new Set(finished).size).toBe(finished.length)
        for (const [at, { outputTokens }] of arrivals.entries()) {
          if (gone.has(`r${at}`)) continue
          expect(finished).toContain(`r${at}`)
          expect(tokens.get(`r${at}`)).toBe(outputTokens)
        }
        const { kvUsageRatio, runningSequences, waitingSequences } = engine.gauges()
        expect([kvUsageRatio, runningSequences, waitingSequences]).toEqual([0, 0, 0])
      }),
      { numRuns: 60 },
    )
  })

  it('refuse what can never fit, and pools of nobody', () => {
    expect(createEngine({ ...pools, maxModelLenTokens: 100 }).submit(request('a', 90, 11), 0)).toBe(
      'over_context',
    )
    expect(() => createEngine({ ...pools, disaggregated: { ...disaggregated, decodeEngines: 0 } })).toThrow(
      /at least one engine for prompts and one for answers/,
    )
  })
})

describe('asynchronous scheduling', () => {
  function ttft(asyncScheduling: boolean, sentAtMs: number, streams: number): number {
    const engine = createEngine({ profile: SLOW, asyncScheduling })
    if (streams > 0) engine.submit(request('stream', 20, 60), 0)
    engine.advanceTo(sentAtMs, () => {})
    engine.submit(request('own', 20, 2), sentAtMs)
    return (drain(engine).get('own')?.firstAtMs ?? 0) - sentAtMs
  }

  it('makes who comes during a step wait for one more, and nobody else', () => {
    expect(ttft(true, 300, 0)).toBe(ttft(false, 300, 0))
    const stepMs = 26
    expect(ttft(true, 300, 1) - ttft(false, 300, 1)).toBeCloseTo(stepMs, 0)
  })

  it('ends the same requests with the same tokens', () => {
    const ends = (asyncScheduling: boolean) => {
      const engine = createEngine({ profile: SLOW, asyncScheduling, maxNumSeqs: 2 })
      for (let at = 0; at < 6; at++) {
        engine.advanceTo(at * 20, () => {})
        engine.submit(request(`r${at}`, 200 + at, 1 + at), at * 20)
      }
      return [...drain(engine)].map(([id, { tokens }]) => [id, tokens]).toSorted()
    }
    expect(ends(true)).toEqual(ends(false))
  })
})

describe('speed', () => {
  it('holds for steps that begin after the change', () => {
    const engine = createEngine({ profile: SLOW })
    engine.submit(request('a', 10, 40), 0)
    const ends: number[] = []
    engine.advanceTo(400, ({ endedAtMs }) => ends.push(endedAtMs))
    engine.setSpeed(0.5)
    engine.advanceTo(1e9, ({ endedAtMs }) => ends.push(endedAtMs))
    const gaps = ends.slice(1).map((endMs, at) => endMs - (ends[at] ?? 0))
    expect(gaps[2]).toBeCloseTo(26, 0)
    expect(gaps.at(-1)).toBeCloseTo(52, 0)
  })
})
