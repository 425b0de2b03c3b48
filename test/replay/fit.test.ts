/** What a log teaches of its engines: the costs that the engines which wrote it had. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { attentionPairs } from '../../src/core/attention.ts'
import { UNKNOWN_ENGINE } from '../../src/estimate/step-model.ts'
import { Answers } from '../../src/replay/answers.ts'
import { fitEngine } from '../../src/replay/engine-fit.ts'
import { dot, fitParameters } from '../../src/replay/least-squares.ts'
import { LogBook } from '../../src/replay/log-book.ts'
import type { LoggedRequest } from '../../src/replay/logged-request.ts'
import { HASHED_BLOCKS, RUN_TOKENS, SharedPrefixes } from '../../src/replay/shared-prefixes.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import { simulatedLog } from './simulated-log.ts'

function requestsOf(lines: readonly string[]): readonly LoggedRequest[] {
  const book = new LogBook()
  for (const line of lines) book.take(line, 'log')
  return book.close().requests
}

describe('fitParameters', () => {
  const weights = fc.double({ min: 0.1, max: 10, noNaN: true })

  it('finds the parameters that made the observations, past some that are far off', () => {
    fc.assert(
      fc.property(fc.tuple(weights, weights, weights), fc.integer(), (truth, seed) => {
        let state = seed | 0
        const next = () => {
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
          return (state >>> 0) / 2 ** 32
        }
        const observations = Array.from({ length: 120 }, (_, at) => {
          const x = [1, next() * 5, next() * 5]
          return { x, y: dot(truth, x) * (at % 20 === 0 ? 30 : 1), sigma: 0.5 }
        })
        const found = fitParameters(observations, [1, 1, 1], [100, 100, 100])
        for (const [at, value] of truth.entries())
          expect(Math.abs((found[at] ?? 0) - value)).toBeLessThan(0.5)
      }),
      { numRuns: 50 },
    )
  })

  it('stays at its guess where nothing tells, and at its floors where less would fit', () => {
    const observations = Array.from({ length: 50 }, (_, at) => ({ x: [at, -at, 0], y: 3 * at, sigma: 1 }))
    const [first = 0, second = 0, third = 0] = fitParameters(observations, [1, 0.5, 7], [10, 10, 10])
    expect(first - second).toBeCloseTo(3, 1)
    expect(second).toBeGreaterThanOrEqual(0)
    expect(third).toBeCloseTo(7)
    const negative = observations.map(({ x: [at = 0], sigma }) => ({ x: [at], y: -at, sigma }))
    expect(fitParameters(negative, [1], [10])).toEqual([0])
  })
})

describe('an engine fit', () => {
  it('finds what the simulated engines cost, from another guess', () => {
    const fit = fitEngine(requestsOf(simulatedLog(5, 60_000)), UNKNOWN_ENGINE, 512)
    const { decode, prefill, stepOverheadMs } = profile('demo/slow')
    const stepMs = (sequences: number) => decode.baseMs + stepOverheadMs + decode.perSequenceMs * sequences
    for (const sequences of [1, 4, 8]) {
      const fitted = (fit?.baseMs ?? 0) + (fit?.perSequenceMs ?? 0) * sequences
      expect(fitted / stepMs(sequences)).toBeGreaterThan(0.9)
      expect(fitted / stepMs(sequences)).toBeLessThan(1.1)
    }
    const prompt = (tokens: number) => prefill.baseMs + prefill.perTokenMs * tokens
    const fittedPrompt = (tokens: number) =>
      (fit?.baseMs ?? 0) + (fit?.perChunkMs ?? 0) + (fit?.perPrefillTokenMs ?? 0) * tokens
    for (const tokens of [100, 500]) {
      expect(fittedPrompt(tokens) / prompt(tokens)).toBeGreaterThan(0.8)
      expect(fittedPrompt(tokens) / prompt(tokens)).toBeLessThan(1.2)
    }
    expect(fit?.paceErrorRatio).toBeLessThan(0.05)
  })

  it('finds what attention costs where prompts are long', () => {
    const engine = profile('Llama-3.1-8B/H100-80G-SXM/tp1')
    const lines = simulatedLog(1, 90_000, {
      replicas: [{ engine: { profile: engine, jitterRatio: 0.05, prefixCaching: false } }],
      requests: generateWorkload({ seed: 5, lengthRatio: 12, segments: steadyRate(0.7, 90_000) }),
    })
    const fit = fitEngine(requestsOf(lines), UNKNOWN_ENGINE, 8192)
    const ownMs = (tokens: number) =>
      (fit?.perPrefillTokenMs ?? 0) * tokens + (fit?.perPairMs ?? 0) * attentionPairs(tokens)
    const { perTokenMs, perTokenContextMs } = engine.prefill
    for (const tokens of [16_000, 32_000, 64_000]) {
      const trueMs = perTokenMs * tokens + perTokenContextMs * attentionPairs(tokens)
      expect(Math.abs(Math.log(ownMs(tokens) / trueMs)), `${tokens}`).toBeLessThan(0.2)
    }
  })

  it('says nothing of a handful of answers', () => {
    expect(fitEngine(requestsOf(simulatedLog(5, 2000)), UNKNOWN_ENGINE, 512)).toBeUndefined()
  })
})

const [ANY] = requestsOf(simulatedLog(5, 1000))
function requestWith(change: Partial<LoggedRequest>): LoggedRequest {
  if (ANY === undefined) throw new Error('an empty log')
  return { ...ANY, model: 'm', className: 'c', route: 'chat', sequences: 1, outcome: 'completed', ...change }
}

describe('answers that a log does not show whole', () => {
  const whole = [10, 20, 30, 40].map((outputTokens, at) => requestWith({ id: `w${at}`, outputTokens }))
  const answers = new Answers(whole)

  it('are as long as one of the same kind, never shorter than what was seen, never longer than allowed', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: 1, max: 60 }),
        (id, seen, most) => {
          const cut = requestWith({ id, outcome: 'truncated', outputTokens: seen, maxOutputTokens: most })
          const tokens = answers.tokensOf(cut)
          expect(tokens).toBeGreaterThanOrEqual(seen)
          if (seen <= most) expect(tokens).toBeLessThanOrEqual(most)
          if (seen < 40 && tokens > seen && tokens < most) expect([10, 20, 30, 40]).toContain(tokens)
          expect(answers.tokensOf(cut)).toBe(tokens)
        },
      ),
    )
  })

  it('are what was taken of them when the client left in the middle', () => {
    expect(answers.tokensOf(requestWith({ outcome: 'client_left', ttftMs: 10, outputTokens: 7 }))).toBe(7)
  })
})

describe('prompts that begin alike', () => {
  const prefixHashes = Array.from({ length: HASHED_BLOCKS }, (_, at) => `h${at}`)
  const long = { prefixHashes, prefixBlockTokens: 256, promptTokens: 9000 }
  const first = requestWith({ ...long, id: 'a', cachedTokens: 0 })
  const hashedRuns = (HASHED_BLOCKS * 256) / RUN_TOKENS

  it('go on alike as far as an engine has found one of them in its cache', () => {
    const later = requestWith({ ...long, id: 'b', cachedTokens: 6400 })
    const prefixes = new SharedPrefixes([first, later])
    const alike = prefixes.namesOf(first).slice(0, 100)
    expect(prefixes.namesOf(later).slice(0, 100)).toEqual(alike)
    expect(prefixes.namesOf(first)[100]).not.toBe(prefixes.namesOf(later)[100])
  })

  it('go their own ways where nobody knows', () => {
    const later = requestWith({ ...long, id: 'b' })
    const prefixes = new SharedPrefixes([first, later])
    expect(prefixes.namesOf(first)[hashedRuns]).not.toBe(prefixes.namesOf(later)[hashedRuns])
  })

  it('are alike too where they are too short for a hash and were found in a cache', () => {
    const short = { prefixHashes: [], prefixBlockTokens: 0, promptTokens: 200 }
    const [a, b, c] = [130, 150, 0].map((cachedTokens, at) =>
      requestWith({ ...short, id: `s${at}`, cachedTokens }),
    )
    const names = [a, b, c].flatMap((each) =>
      each === undefined ? [] : [new SharedPrefixes([]).namesOf(each)],
    )
    expect(names[0]?.slice(0, 2)).toEqual(names[1]?.slice(0, 2))
    expect(names[2]).toEqual(['own s2'])
  })
})
