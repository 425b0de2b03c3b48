/** The stall that running streams can bear: no more than leaves each of them its pace, and all of that. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { cautiousDecodeStepMs, decodeStepMs } from '../../src/estimate/step-model.ts'
import { residentsOf } from '../../src/policies/residents.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { LEARNT } from './policy-rig.ts'

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
