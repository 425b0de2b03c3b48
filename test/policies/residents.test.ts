/** The stall that running streams can bear: no more than leaves each of them its pace, and all of that. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { learnLength, remainingTokens } from '../../src/estimate/output-length.ts'
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

describe('the stall that a stream of unknown length can bear', () => {
  type Fact = 'meanTokens' | 'sigma' | 'tpotMs' | 'pace'
  /** Every stream is looked at after each so many tokens of its life. */
  const EVERY = 7

  /**
   * Part of the looks after which a stream, delayed by all that it is said to bear, still keeps its pace at its end; and
   * `worst` of those at one token that a hundred streams reach.
   */
  function keptOf({ meanTokens, sigma, tpotMs, pace }: Readonly<Record<Fact, number>>) {
    const rng = new Rng(9)
    const learnt = new Learnt({ g: PRIOR })
    const offer = someOffer({ slo: sloOf({ tpotMs }) })
    for (let i = 0; i < 2000; i++) learnLength(learnt.lengthsOf(offer), rng.logNormal(meanTokens, sigma), {})
    let running = Array.from({ length: 4000 }, () => rng.logNormal(meanTokens, sigma))
    const ledger = new ReplicaLedger(reportOf('r1'))
    const inFlight = inFlightOf(1, offer)
    ledger.dispatch(inFlight)
    ledger.firstToken(1, 0)
    const model = learnt.groupOf(ledger).modelOf('r1')
    let [looks, asTold, byMedian, worst] = [0, 0, 0, 1]
    for (let made = EVERY; ; made += EVERY) {
      running = running.filter((tokens) => tokens > made)
      if (running.length === 0) return { asTold: asTold / looks, byMedian: byMedian / looks, worst }
      const nowMs = pace * tpotMs * made
      ledger.progress(inFlight, EVERY, nowMs)
      const stepMs = decodeStepMs(model, 1, ledger.contextTokens)
      const slowMs = cautiousDecodeStepMs(model, 2, ledger.contextTokens)
      const bankedMs = tpotMs * made - nowMs
      const { slackMs } = residentsOf({ ledger, learnt, model, stepMs, nowMs }, 0)
      expect(slackMs).toBeGreaterThan(bankedMs)
      const left = remainingTokens(learnt.lengthsOf(offer), made, {}, 0.5)
      const medianMs = bankedMs + left * (USE_RATIO * tpotMs - slowMs)
      const inTime = (stallMs: number) =>
        running.filter((tokens) => nowMs + stallMs + (tokens - made) * slowMs <= tpotMs * tokens).length
      looks += running.length
      asTold += inTime(slackMs)
      if (running.length >= 100) worst = Math.min(worst, inTime(slackMs) / running.length)
      byMedian += inTime(medianMs)
    }
  }

  it.each([
    { meanTokens: 300, sigma: 0.8, tpotMs: 20, pace: 0.9 },
    { meanTokens: 150, sigma: 1, tpotMs: 40, pace: 1 },
    { meanTokens: 600, sigma: 0.5, tpotMs: 15, pace: 0.8 },
  ])('leaves 97 in 100 their pace, which the median length does not ($meanTokens)', (facts) => {
    const { asTold, byMedian, worst } = keptOf(facts)
    expect(asTold).toBeGreaterThanOrEqual(0.97)
    expect(byMedian).toBeLessThan(0.7)
    // Lengths are learnt in buckets a fifth wide: late in long answers, where one begins, less is sure.
    expect(worst).toBeGreaterThan(0.65)
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
