/** The columns of running streams: whatever has come and gone, they say what the books say when read for the first time. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ReplicaLedger } from '../../src/core/ledger.ts'
import { decodeStepMs } from '../../src/estimate/step-model.ts'
import { holdingsOf } from '../../src/policies/holdings.ts'
import { residentsOf } from '../../src/policies/residents.ts'
import { streamsOf } from '../../src/policies/streams.ts'
import { LedgerScript, type Step, step } from './ledger-script.ts'

const steps = fc.array(step, { minLength: 1, maxLength: 150, size: 'max' })
/** Columns must have grown by then. */
const FIRST_ROOM = 16

/** What plans are told of those books. */
function toldOf({ learnt, nowMs }: LedgerScript, ledger: ReplicaLedger) {
  const model = learnt.groupOf(ledger).modelOf(ledger.replicaId)
  const stepMs = decodeStepMs(model, ledger.inFlightSequences, ledger.contextTokens)
  const { slackMs, tpotMs, renewalMs } = residentsOf({ ledger, learnt, model, stepMs, nowMs }, 0)
  const { count, used, left, sequences } = holdingsOf(ledger, learnt, nowMs, 0)
  // Of those with as much left any may be first.
  const holdings = Array.from({ length: count }, (_, i) => `${left[i]} ${used[i]} ${sequences[i]}`).sort()
  return { slackMs, tpotMs, renewalMs, holdings }
}

describe('the kept streams of a replica', () => {
  it('allow and hold what they would if the books were read for the first time', () => {
    let telling = 0
    let many = 0
    fc.assert(
      fc.property(steps, (rows) => {
        const script = new LedgerScript()
        // What is left is read anew only every few tokens; of an answer of known length that makes no difference.
        for (const each of rows.map((row): Step => ({ ...row, told: 'length' }))) {
          script.take(each)
          if (each.kind !== 'look') continue
          const told = toldOf(script, script.ledger)
          expect(told).toEqual(toldOf(script, script.afresh()))
          if (told.slackMs > 0 && Number.isFinite(told.slackMs)) telling++
          if (script.ledger.decoding.size > FIRST_ROOM) many++
        }
      }),
      { numRuns: 200, seed: 5 },
    )
    expect(telling).toBeGreaterThan(200)
    expect(many).toBeGreaterThan(100)
  })

  it('are those that decode there, in order, and what is noted of one stays with it', () => {
    fc.assert(
      fc.property(steps, (rows) => {
        const script = new LedgerScript()
        const { ledger, learnt } = script
        for (const each of rows) {
          script.take(each)
          const streams = streamsOf(ledger, learnt)
          const decoding = [...ledger.decoding.values()]
          expect(streams.inFlights).toEqual(decoding)
          expect(streams.count).toBe(decoding.length)
          for (const [row, { permitId, offer }] of decoding.entries()) {
            expect(streams.promptTokens[row]).toBe(offer.promptTokens)
            expect([Number.NEGATIVE_INFINITY, permitId]).toContain(streams.readTokens[row])
            streams.readTokens[row] = permitId
          }
        }
      }),
      { numRuns: 50 },
    )
  })
})
