/** The stall that running streams can bear: no more than leaves each of them its pace, and all of that. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { learnLength } from '../../src/estimate/output-length.ts'
import { cautiousDecodeStepMs, decodeStepMs, prefillStallMs } from '../../src/estimate/step-model.ts'
import { chunkTokens } from '../../src/estimate/step-windows.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { residentsOf } from '../../src/policies/residents.ts'
import { Rng } from '../../src/sim/rng.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { LEARNT, PRIOR } from './policy-rig.ts'

const LENGTH = 200
/** The part of what is still to come that plans use, and how late a stream is that is given up, in ms. */
const USE_RATIO = 0.95
const LOST_BY_MS = 20

const stream = fc.record({
  tpotMs: fc.option(fc.integer({ min: 8, max: 60 }), { nil: undefined }),
  made: fc.integer({ min: 1, max: LENGTH - 1 }),
  sequences: fc.integer({ min: 1, max: 3 }),
  /** How fast it has been, in times of its target. */
  pace: fc.double({ min: 0.3, max: 1.4, noNaN: true }),
})

describe('the stall that streams can bear', () => {
  it('leaves each that is not lost its pace token by token, and a millisecond more does not', () => {
    let tight = 0
    fc.assert(
      fc.property(fc.array(stream, { minLength: 1, maxLength: 12 }), (rows) => {
        const ledger = new ReplicaLedger(reportOf('r1'))
        const clocks = rows.map(({ tpotMs, made, sequences, pace }, permitId) => {
          const slo = sloOf(tpotMs === undefined ? {} : { tpotMs })
          // All answers are as long, so that what is left of each is known.
          const offer = someOffer({ slo, sequences, maxOutputTokens: LENGTH, minOutputTokens: LENGTH })
          const inFlight = inFlightOf(permitId, offer)
          ledger.dispatch(inFlight)
          ledger.firstToken(permitId, 0)
          const elapsedMs = pace * (tpotMs ?? 20) * made
          ledger.progress(inFlight, made * sequences, elapsedMs)
          return { tpotMs: tpotMs ?? Number.POSITIVE_INFINITY, made, elapsedMs }
        })
        const model = LEARNT.groupOf(ledger).modelOf('r1')
        const stepMs = decodeStepMs(model, ledger.inFlightSequences, ledger.contextTokens)
        const slowMs = cautiousDecodeStepMs(model, ledger.inFlightSequences + 1, ledger.contextTokens)
        const endMs = (elapsedMs: number, made: number, stallMs: number, eachMs: number) => {
          let atMs = elapsedMs + stallMs
          for (let token = made; token < LENGTH; token++) atMs += eachMs
          return atMs
        }
        const alive = clocks.filter(
          ({ tpotMs, made, elapsedMs }) =>
            endMs(elapsedMs, made, 0, stepMs) <= tpotMs * LENGTH + LOST_BY_MS + 1e-6,
        )
        const inTime = (stallMs: number) =>
          alive.every(
            ({ tpotMs, made, elapsedMs }) =>
              endMs(elapsedMs, made, stallMs, slowMs) <=
              tpotMs * made + USE_RATIO * tpotMs * (LENGTH - made) + 1e-6,
          )
        const { slackMs, tpotMs } = residentsOf({ ledger, learnt: LEARNT, model, stepMs, nowMs: 1e6 }, 0)
        expect(tpotMs).toBe(Math.min(Number.POSITIVE_INFINITY, ...alive.map((one) => one.tpotMs)))
        expect(slackMs).toBeGreaterThanOrEqual(0)
        if (slackMs > 0) expect(inTime(Number.isFinite(slackMs) ? slackMs : 1e9)).toBe(true)
        if (Number.isFinite(slackMs)) expect(inTime(slackMs + 1)).toBe(false)
        if (slackMs > 0 && Number.isFinite(slackMs)) tight++
      }),
      { numRuns: 200, seed: 5 },
    )
    expect(tight).toBeGreaterThan(30)
  })
})

describe('the prefill that renews a batch', () => {
  const MEAN_TOKENS = 300
  const PROMPT_TOKENS = 2000

  /** What one stream adds to each step with a hundred there that have made so much, and what it does in truth. */
  function renewalOf(madeTokens: number): { renewalMs: number; trueMs: number } {
    const rng = new Rng(7)
    const learnt = new Learnt({ g: PRIOR })
    const ledger = new ReplicaLedger(reportOf('r1'))
    const offer = (requestId: string) => someOffer({ requestId, promptTokens: PROMPT_TOKENS })
    const lengths = Array.from({ length: 2000 }, () => rng.logNormal(MEAN_TOKENS, 0.8))
    for (const [i, tokens] of lengths.entries()) learnLength(learnt.lengthsOf(offer(`seen ${i}`)), tokens, {})
    const running = lengths.filter((tokens) => tokens > madeTokens).slice(-100)
    for (const permitId of running.keys()) {
      const inFlight = inFlightOf(permitId, offer(`running ${permitId}`))
      ledger.dispatch(inFlight)
      ledger.firstToken(permitId, 0)
      ledger.progress(inFlight, madeTokens, 5000)
    }
    const model = learnt.groupOf(ledger).modelOf('r1')
    const stepMs = decodeStepMs(model, ledger.inFlightSequences, ledger.contextTokens)
    const { renewalMs } = residentsOf({ ledger, learnt, model, stepMs, nowMs: 6000 }, 0)
    const eachMs = prefillStallMs(model, PROMPT_TOKENS, chunkTokens(ledger))
    const tokens = running.reduce((sum, one) => sum + one, 0)
    return { renewalMs, trueMs: (running.length * eachMs) / tokens }
  }

  it('is spread over whole answers, however young the streams are', () => {
    for (const madeTokens of [1, 20, 100, 400]) {
      const { renewalMs, trueMs } = renewalOf(madeTokens)
      expect(renewalMs / trueMs, `after ${madeTokens} tokens`).toBeGreaterThan(0.75)
      expect(renewalMs / trueMs, `after ${madeTokens} tokens`).toBeLessThan(1.33)
    }
  })
})
