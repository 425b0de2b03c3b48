/** The step model over a long steady life: what was not seen for a million windows is still learnt when it comes. */
import { describe, expect, it } from 'vitest'
import { priorOf } from '../../src/cli/gate-parts.ts'
import {
  decodeStepMs,
  observeDecode,
  observePrefill,
  prefillMs,
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
      observePrefill(model, { elapsedMs, starts: 1, prefillTokens, ...rest })
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
