/** Advice on engines: each number is the last that holds, and none gets better on a slower engine. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AdvisedEngine, adviseOn } from '../../src/estimate/engine-advice.ts'
import {
  decodeStepMs,
  prefillMs,
  prefillStallMs,
  requestOverheadMs,
  type StepModel,
  stepModel,
} from '../../src/estimate/step-model.ts'
import { sloOf } from '../slo/facts.ts'

const aModel = fc
  .record({
    baseMs: fc.double({ min: 2, max: 60, noNaN: true }),
    perSequenceMs: fc.double({ min: 0, max: 0.5, noNaN: true }),
    perContextTokenMs: fc.double({ min: 0, max: 2e-4, noNaN: true }),
    perChunkMs: fc.double({ min: 0, max: 20, noNaN: true }),
    perPrefillTokenMs: fc.double({ min: 0.005, max: 0.5, noNaN: true }),
    perPairMs: fc.double({ min: 0, max: 2e-5, noNaN: true }),
    requestOverheadMs: fc.double({ min: 0, max: 20, noNaN: true }),
  })
  .map((prior) => stepModel({ ...prior, uncertaintyRatio: 0.3 }))
const anEngine: fc.Arbitrary<AdvisedEngine> = fc.record({
  budgetTokens: fc.integer({ min: 256, max: 16_384 }),
  sequences: fc.integer({ min: 1, max: 128 }),
  contextTokens: fc.integer({ min: 1, max: 8000 }),
  slots: fc.constantFrom(16, 256, Number.POSITIVE_INFINITY),
  kvCapacityTokens: fc.constantFrom(50_000, 500_000, Number.POSITIVE_INFINITY),
})
const aPromise = fc
  .record({
    ttftMs: fc.integer({ min: 20, max: 3000 }),
    ttftPer1kTokensMs: fc.constantFrom(0, 100),
    tpotMs: fc.integer({ min: 5, max: 100 }),
  })
  .map(sloOf)

function only(model: StepModel, slo: ReturnType<typeof sloOf>, engine: AdvisedEngine) {
  const [row] = adviseOn(model, [{ slo }], engine).classes
  if (row === undefined) throw new Error('no advice')
  return row
}

describe('advice on an engine', () => {
  it('names the largest prompt that an idle replica has in time, and no larger one', () => {
    fc.assert(
      fc.property(aModel, aPromise, anEngine, (model, slo, engine) => {
        const { longestPromptTokens: longest } = only(model, slo, engine)
        const idleMs = (tokens: number) =>
          requestOverheadMs(model) + prefillMs(model, tokens, engine.budgetTokens, 0, 0)
        const targetMs = (tokens: number) => (slo.ttftMs ?? 0) + (slo.ttftPer1kTokensMs * tokens) / 1000
        if (longest === undefined) {
          expect(idleMs(1e6)).toBeLessThanOrEqual(targetMs(1e6))
          return
        }
        if (longest > 0) expect(idleMs(longest)).toBeLessThanOrEqual(targetMs(longest))
        expect(idleMs(longest + 1)).toBeGreaterThan(targetMs(longest + 1))
      }),
    )
  })

  it('names the largest token budget whose fullest step keeps TPOT', () => {
    fc.assert(
      fc.property(aModel, aPromise, anEngine, (model, slo, engine) => {
        const { largestBatch = 0, largestBudgetTokens: budget = 0 } = only(model, slo, engine)
        if (budget === 0) return
        const batch = Math.min(engine.sequences, largestBatch)
        const stepMs = (tokens: number) =>
          decodeStepMs(model, batch, batch * engine.contextTokens) +
          prefillStallMs(model, tokens - batch, tokens)
        const targetMs = 0.95 * (slo.tpotMs ?? 0)
        expect(stepMs(budget)).toBeLessThanOrEqual(targetMs + 1e-9)
        if (budget - batch < 1e6) expect(stepMs(budget + 1)).toBeGreaterThan(targetMs - 1e-9)
      }),
    )
  })

  it('names a prefill duty at which the mean pace is the target, all of it where the budget is within', () => {
    fc.assert(
      fc.property(aModel, aPromise, anEngine, (model, slo, engine) => {
        const { largestBatch = 0, largestBudgetTokens = 0, prefillDutyRatio = 0 } = only(model, slo, engine)
        if (largestBatch === 0) {
          expect([largestBudgetTokens, prefillDutyRatio]).toEqual([0, 0])
          return
        }
        const batch = Math.min(engine.sequences, largestBatch)
        const plainMs = decodeStepMs(model, batch, batch * engine.contextTokens)
        const mixedMs = plainMs + prefillStallMs(model, engine.budgetTokens - batch, engine.budgetTokens)
        const meanMs = (1 - prefillDutyRatio) * plainMs + prefillDutyRatio * mixedMs
        expect(meanMs).toBeLessThanOrEqual(0.95 * (slo.tpotMs ?? 0) + 1e-6)
        if (prefillDutyRatio < 1) expect(meanMs).toBeCloseTo(0.95 * (slo.tpotMs ?? 0), 6)
      }),
    )
  })

  it('never promises more of a slower engine', () => {
    fc.assert(
      fc.property(aModel, aPromise, anEngine, (model, slo, engine) => {
        const fast = only(model, slo, engine)
        const slow = only({ ...model, slownessRatio: 1.5 }, slo, engine)
        const least = (value: number | undefined) => value ?? Number.POSITIVE_INFINITY
        expect(least(slow.longestPromptTokens)).toBeLessThanOrEqual(least(fast.longestPromptTokens))
        expect(least(slow.largestBatch)).toBeLessThanOrEqual(least(fast.largestBatch))
        for (const unmet of fast.unmet) expect(slow.unmet).toContain(unmet)
      }),
    )
  })

  it('calls a class unmet by its typical prompt, and by a decode step that is slower than its pace', () => {
    const model = stepModel({
      baseMs: 12,
      perSequenceMs: 0,
      perContextTokenMs: 0,
      perChunkMs: 0,
      perPrefillTokenMs: 0.1,
      perPairMs: 0,
      requestOverheadMs: 8,
      uncertaintyRatio: 0.3,
    })
    const engine = { budgetTokens: 8192, sequences: 64, contextTokens: 1, slots: 256, kvCapacityTokens: 1e6 }
    const slo = sloOf({ ttftMs: 120, tpotMs: 10 })
    const rows = adviseOn(
      model,
      [
        { slo, typicalPromptTokens: 1000 },
        { slo, typicalPromptTokens: 1001 },
      ],
      engine,
    ).classes
    expect(rows.map(({ unmet, longestPromptTokens }) => [unmet, longestPromptTokens])).toEqual([
      [['tpot'], 1000],
      [['ttft', 'tpot'], 1000],
    ])
  })

  it('finds guessing worth its cost while batches are small, and not once it costs as much as it saves', () => {
    const engine = {
      budgetTokens: 8192,
      sequences: 64,
      contextTokens: 1000,
      slots: 256,
      kvCapacityTokens: 1e6,
    }
    const slow = { baseMs: 12, perSequenceMs: 0.03, perContextTokenMs: 7.7e-5, perChunkMs: 0 }
    const rest = { requestOverheadMs: 8, uncertaintyRatio: 0.3 }
    const model = stepModel({ ...slow, perPrefillTokenMs: 0.07, perPairMs: 0, ...rest })
    const { speculationCostsFrom: from } = adviseOn(model, [], engine)
    // 4 guesses of which 70 % are right yield 2.7731 tokens; a step then costs 1.2 of its time and 0.28 ms a sequence.
    const gainMs = (batch: number) => 1.5731 * (12 + 0.107 * batch) - 0.28 * batch
    expect(gainMs(from - 1)).toBeGreaterThan(0)
    expect(gainMs(from)).toBeLessThan(0)
  })
})
