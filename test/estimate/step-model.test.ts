/** The step model over a long steady life: what was not seen for a million windows is still learnt when it comes. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { priorOf } from '../../src/cli/gate-parts.ts'
import { attentionPairs } from '../../src/core/attention.ts'
import {
  decodeStepMs,
  observeDecode,
  observePrefill,
  perMillionPairsMs,
  prefillMs,
  prefillStallMs,
  requestOverheadMs,
  type StepModel,
  stepModel,
  UNKNOWN_ENGINE,
} from '../../src/estimate/step-model.ts'
import { Rng } from '../../src/sim/rng.ts'

const SEQUENCES = 16
const CONTEXT = 12_800
const STEP_MS = 25

const PROFILE = priorOf('Qwen3-32B/H200-141G-SXM/tp1')

describe.each([
  ['nothing known', UNKNOWN_ENGINE, 0.8],
  ['a profile', PROFILE, 0.05],
])('a step model with %s', (_, prior, perSequenceMs) => {
  it('learns prefill, another batch and another speed after a million steady decode windows', () => {
    const model = stepModel(prior)
    for (let i = 0; i < 1_000_000; i++) observeDecode(model, 8, 8 * STEP_MS, SEQUENCES, CONTEXT)
    expect(decodeStepMs(model, SEQUENCES, CONTEXT)).toBeCloseTo(STEP_MS, 1)
    for (let i = 0; i < 100; i++) {
      const prefillTokens = 500 + ((i * 37) % 1500)
      const elapsedMs = 15 + 1.5 * STEP_MS + 0.12 * prefillTokens
      const rest = { chunks: 1, steps: 1.5, sequences: SEQUENCES, contextTokens: CONTEXT }
      observePrefill(model, {
        elapsedMs,
        starts: 1,
        prefillTokens,
        pairs: attentionPairs(prefillTokens),
        ...rest,
      })
    }
    const prefill = (tokens: number) => prefillMs(model, tokens, 2048, SEQUENCES, CONTEXT)
    expect((prefill(1500) - prefill(500)) / 120).toBeGreaterThan(0.9)
    expect((prefill(1500) - prefill(500)) / 120).toBeLessThan(1.1)
    for (let i = 0; i < 400; i++) {
      const sequences = 4 + (i % 25)
      observeDecode(model, 8, 8 * (20 + perSequenceMs * sequences), sequences, 800 * sequences)
    }
    for (const sequences of [4, 16, 28]) {
      const ratio = decodeStepMs(model, sequences, 800 * sequences) / (20 + perSequenceMs * sequences)
      expect(ratio, `${sequences}`).toBeGreaterThan(0.93)
      expect(ratio, `${sequences}`).toBeLessThan(1.07)
    }
    expect([...model.estimate.mean, ...model.estimate.covariance].every(Number.isFinite)).toBe(true)
  })
})

/** A prompt alone on an idle engine of 10 ms a step, in chunks of 8192. */
function seePrompt(model: StepModel, tokens: number, perTokenMs: number, perPairMs: number): number {
  const chunks = Math.ceil(tokens / 8192)
  const pairs = attentionPairs(tokens)
  const elapsedMs = 15 + 10 * chunks + perTokenMs * tokens + perPairMs * pairs
  const rest = { starts: 1, chunks, steps: chunks, sequences: 0, contextTokens: tokens }
  observePrefill(model, { elapsedMs, prefillTokens: tokens, pairs, ...rest })
  return elapsedMs
}

/** Prefill of such a prompt with its overhead, believed over true. */
function believedRatio(model: StepModel, tokens: number, trueMs: number): number {
  return (requestOverheadMs(model) + prefillMs(model, tokens, 8192, 0, 0)) / trueMs
}

describe('attention', () => {
  const shortPrompt = fc.integer({ min: 1, max: 8000 })
  const anyCost = { min: 0.002, max: 1, noNaN: true }

  it.each([
    ['an unknown engine', UNKNOWN_ENGINE],
    ['an engine with a wrong profile', PROFILE],
  ])('is learnt of %s from a stream with long prompts', (_, prior) => {
    for (const pairTokens of [1.5e-5, 1.2e-4]) {
      const model = stepModel(prior)
      const rng = new Rng(5)
      const tookMs = (tokens: number) => seePrompt(model, tokens, 0.03, 0.03 * pairTokens)
      for (let i = 0; i < 200; i++) tookMs(Math.min(120_000, 300 + rng.logNormal(4000, 1.5)))
      for (const tokens of [1000, 8000, 32_000, 100_000]) {
        const ratio = believedRatio(model, tokens, tookMs(tokens))
        expect(ratio, `${tokens} at ${pairTokens}`).toBeGreaterThan(0.9)
        expect(ratio, `${tokens} at ${pairTokens}`).toBeLessThan(1.1)
      }
      expect(perMillionPairsMs(model) / (0.03 * pairTokens * 1e6)).toBeGreaterThan(0.85)
      expect(perMillionPairsMs(model) / (0.03 * pairTokens * 1e6)).toBeLessThan(1.15)
    }
  })

  it('costs what the prior says for a prompt token, whatever short prompts alone show', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(shortPrompt, fc.double(anyCost)), { minLength: 1 }), (seen) => {
        const model = stepModel()
        for (const [tokens, perTokenMs] of seen) seePrompt(model, tokens, perTokenMs, 1e-5)
        const { mean } = model.estimate
        const ratio = UNKNOWN_ENGINE.perPairMs / UNKNOWN_ENGINE.perPrefillTokenMs
        expect(perMillionPairsMs(model)).toBeCloseTo(1000 * ratio * Math.max(0, mean[5] ?? 0), 9)
      }),
    )
  })

  it('stays as learnt through thousands of short prompts', () => {
    const model = stepModel()
    for (let i = 0; i < 50; i++) seePrompt(model, 2000 * (1 + (i % 30)), 0.03, 4e-6)
    for (let i = 0; i < 5000; i++) seePrompt(model, 100 + ((i * 37) % 3000), 0.03, 4e-6)
    for (const tokens of [2000, 32_000, 64_000]) {
      const ratio = believedRatio(model, tokens, seePrompt(stepModel(), tokens, 0.03, 4e-6))
      expect(Math.abs(Math.log(ratio)), `${tokens}`).toBeLessThan(0.1)
    }
  })

  it('is sound after very many prompts of one length, and another length is learnt then', () => {
    const model = stepModel()
    for (let i = 0; i < 200_000; i++) seePrompt(model, 32_768, 0.03, 4e-6)
    for (let i = 0; i < 100; i++) seePrompt(model, i % 2 === 0 ? 4000 : 64_000, 0.03, 4e-6)
    for (const tokens of [4000, 32_768, 64_000]) {
      const ratio = believedRatio(model, tokens, seePrompt(stepModel(), tokens, 0.03, 4e-6))
      expect(Math.abs(Math.log(ratio)), `${tokens}`).toBeLessThan(0.1)
    }
    const { mean, covariance } = model.estimate
    expect([...mean, ...covariance].every(Number.isFinite)).toBe(true)
    for (let i = 0; i < mean.length; i++) expect(covariance[i * mean.length + i]).toBeGreaterThan(0)
  })

  it('makes a prompt cost more the more of its context is cached already, and never less than its tokens alone', () => {
    const model = stepModel()
    fc.assert(
      fc.property(shortPrompt, fc.nat(100_000), fc.nat(1000), (tokens, cached, more) => {
        const stallMs = (context: number) =>
          prefillStallMs(model, tokens, 2048, attentionPairs(tokens + context, tokens))
        expect(stallMs(cached + more)).toBeGreaterThanOrEqual(stallMs(cached))
        expect(stallMs(cached)).toBeGreaterThanOrEqual(prefillStallMs(model, tokens, 2048, 0))
      }),
    )
  })
})

describe('a profile that is wrong by a factor', () => {
  it.each([0.5, 2])('of %d is overcome within a hundred windows of each kind', (wrongBy) => {
    const { baseMs, perSequenceMs, perPrefillTokenMs, requestOverheadMs, uncertaintyRatio } = PROFILE
    const wrong = Object.entries(PROFILE).map(([name, value]) => [name, value * wrongBy])
    const model = stepModel({ ...Object.fromEntries(wrong), uncertaintyRatio })
    const rng = new Rng(17)
    for (let i = 0; i < 100; i++) {
      const sequences = 1 + (i % 40)
      const contextTokens = 800 * sequences
      const stepMs = baseMs + perSequenceMs * sequences + PROFILE.perContextTokenMs * contextTokens
      observeDecode(model, 8, 8 * stepMs * rng.logNormal(1, 0.05), sequences, contextTokens)
      const prefillTokens = 100 + ((i * 97) % 1900)
      const elapsedMs =
        (requestOverheadMs + stepMs + perPrefillTokenMs * prefillTokens) * rng.logNormal(1, 0.05)
      observePrefill(model, {
        elapsedMs,
        starts: 1,
        prefillTokens,
        pairs: attentionPairs(prefillTokens),
        chunks: 1,
        steps: 1,
        sequences,
        contextTokens,
      })
    }
    const truth = baseMs + perSequenceMs * 20 + PROFILE.perContextTokenMs * 16_000
    expect(decodeStepMs(model, 20, 16_000) / truth).toBeGreaterThan(0.93)
    expect(decodeStepMs(model, 20, 16_000) / truth).toBeLessThan(1.07)
    const prefill = prefillMs(model, 1500, 2048, 20, 16_000) / (truth + 1500 * perPrefillTokenMs)
    expect(prefill).toBeGreaterThan(0.9)
    expect(prefill).toBeLessThan(1.1)
  })
})
