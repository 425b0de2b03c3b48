/** Attention of a prompt: the same whether it is computed at once or in chunks, and counted by the ledger prompt by prompt. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { attentionPairs, offerPairs } from '../../src/core/attention.ts'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { inFlightOf, reportOf, someOffer } from './core-rig.ts'

const tokens = fc.integer({ min: 1, max: 100_000 })

describe('attentionPairs', () => {
  it('are n * (c + n / 2), however the prompt is cut into chunks', () => {
    expect(attentionPairs(1000)).toBe(500_000)
    expect(attentionPairs(1000, 200)).toBe(200 * (800 + 100))
    fc.assert(
      fc.property(tokens, fc.nat(100_000), fc.integer({ min: 1, max: 9000 }), (own, cached, chunk) => {
        let sum = 0
        for (let done = 0; done < own; done += chunk) {
          const now = Math.min(chunk, own - done)
          sum += attentionPairs(cached + done + now, now)
        }
        expect(attentionPairs(cached + own, own)).toBe(sum)
      }),
    )
  })

  it('of a list of prompts are those of each by itself', () => {
    const list = someOffer({ promptTokens: 64_000, sequences: 64, prompts: 64 })
    expect(offerPairs(list)).toBe(64 * attentionPairs(1000))
    expect(offerPairs(someOffer({ promptTokens: 1000, sequences: 8 }), 100)).toBe(attentionPairs(1000, 100))
  })

  it('of what a replica has not begun are those of each prompt by itself, and none when nothing is left', () => {
    fc.assert(
      fc.property(fc.array(tokens, { minLength: 1, maxLength: 8 }), (prompts) => {
        const ledger = new ReplicaLedger(reportOf('r1'))
        prompts.forEach((promptTokens, id) => {
          ledger.dispatch(inFlightOf(id, someOffer({ promptTokens })))
        })
        expect(ledger.backlogPairs).toBe(prompts.reduce((sum, each) => sum + attentionPairs(each), 0))
        ledger.firstToken(0, 1)
        expect(ledger.backlogPairs).toBe(
          prompts.slice(1).reduce((sum, each) => sum + attentionPairs(each), 0),
        )
        prompts.forEach((_, id) => {
          ledger.release(id)
        })
        expect(ledger.backlogPairs).toBe(0)
      }),
    )
  })
})
