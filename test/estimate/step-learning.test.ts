/** What is learnt of a simulated engine from the stream alone, against the profile that made it. */
import { describe, expect, it } from 'vitest'
import { decodeStepMs, prefillMs, type StepModel } from '../../src/estimate/step-model.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { createConcurrencyLimit } from '../../src/policies/rivals/concurrency-limit.ts'
import { type EngineProfile, profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { simulate } from '../../src/sim/run.ts'
import { idlePrefillMs, stepMs } from '../../src/sim/step-time.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import { learningBeside } from '../support/learning-beside.ts'

/** A fixed limit in front, learning beside it from nothing. */
const learning = (learnt: Learnt, maxInFlight: number) =>
  learningBeside(createConcurrencyLimit({ maxInFlight, queueMs: 1e9 }), learnt)

interface Load {
  readonly perSec: number
  readonly spanMs: number
  readonly lengthRatio: number
  readonly maxInFlight: number
}

function learn(engine: EngineProfile, load: Load, seed = 4): StepModel {
  const learnt = new Learnt({})
  const { perSec, spanMs, lengthRatio, maxInFlight } = load
  simulate({
    replicas: [{ engine: { profile: engine, jitterRatio: 0.05, prefixCaching: false } }],
    requests: generateWorkload({ seed, lengthRatio, segments: steadyRate(perSec, spanMs) }),
    createScheduler: () => learning(learnt, maxInFlight),
  })
  return learnt.group(engine.id).model
}

function trueMs(
  engine: EngineProfile,
  prefillTokens: number,
  sequences: number,
  contextEach: number,
): number {
  return stepMs(engine, {
    prefillTokens,
    prefillContextTokens: prefillTokens ** 2 / 2,
    decodeSequences: sequences,
    decodeContextTokens: sequences * contextEach,
  })
}

describe('what is believed of an engine that gets prompts of tens of thousands of tokens', () => {
  it('I26 takes longer for them than by their tokens, within 10 %', () => {
    const engine = profile('Llama-3.1-8B/H100-80G-SXM/tp1')
    const chunk = engine.defaults.maxNumBatchedTokens
    const model = learn(engine, { perSec: 1, spanMs: 90_000, lengthRatio: 12, maxInFlight: 4 })
    for (const tokens of [16_000, 32_000, 64_000]) {
      const ratio = prefillMs(model, tokens, chunk, 0, 0) / idlePrefillMs(engine, tokens, chunk)
      expect(Math.abs(Math.log(ratio)), `${tokens}: ${ratio}`).toBeLessThan(0.1)
    }
  })
})

const CASES: readonly [string, string, Load, number][] = [
  ['demo/slow', 'light', { perSec: 1.5, spanMs: 60_000, lengthRatio: 0.25, maxInFlight: 12 }, 250],
  ['demo/slow', 'mixed', { perSec: 4, spanMs: 40_000, lengthRatio: 0.25, maxInFlight: 12 }, 250],
  [
    'Llama-3.1-8B/A100-80G-SXM/tp1',
    'light',
    { perSec: 2, spanMs: 60_000, lengthRatio: 1, maxInFlight: 24 },
    1500,
  ],
  [
    'Llama-3.1-8B/A100-80G-SXM/tp1',
    'mixed',
    { perSec: 5, spanMs: 40_000, lengthRatio: 1, maxInFlight: 24 },
    1500,
  ],
]

describe.each(CASES)('%s learnt cold under %s load', (id, _, load, promptTokens) => {
  const engine = profile(id)
  const models = [4, 5, 6].map((seed) => learn(engine, load, seed))
  const context = 900 * load.lengthRatio

  /** Learnt over true: within 15 % over several runs, and never far off in one. */
  function agrees(learntMs: (model: StepModel) => number, truthMs: number): void {
    const ratios = models.map((model) => learntMs(model) / truthMs)
    const mean = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length
    expect(mean, `${ratios}`).toBeGreaterThan(0.85)
    expect(mean, `${ratios}`).toBeLessThan(1.15)
    for (const ratio of ratios) expect(Math.abs(Math.log(ratio)), `${ratios}`).toBeLessThan(0.25)
  }

  it('I26 knows its decode steps within 15 %', () => {
    for (const sequences of [2, 6]) {
      const truthMs = trueMs(engine, 0, sequences, context)
      agrees((model) => decodeStepMs(model, sequences, sequences * context), truthMs)
    }
  })

  it('I26 knows what a prompt takes within 15 %, alone and beside decoding streams', () => {
    const chunk = engine.defaults.maxNumBatchedTokens
    for (const sequences of [0, 4]) {
      for (const tokens of [promptTokens / 2, promptTokens]) {
        const truthMs = trueMs(engine, tokens, sequences, context)
        agrees((model) => prefillMs(model, tokens, chunk, sequences, sequences * context), truthMs)
      }
    }
  })

  it('I26 does not under-learn the cost of prompt tokens', () => {
    const chunk = engine.defaults.maxNumBatchedTokens
    const slope = (took: (tokens: number) => number) => took(promptTokens) - took(promptTokens / 2)
    const truth = slope((tokens) => trueMs(engine, tokens, 4, context))
    const learnt = models.map((model) => slope((tokens) => prefillMs(model, tokens, chunk, 4, 4 * context)))
    expect(learnt.reduce((sum, one) => sum + one, 0) / learnt.length / truth).toBeGreaterThan(0.85)
  })
})
