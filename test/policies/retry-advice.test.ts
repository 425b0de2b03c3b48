/** When a refused client is told to come back: never sooner for more work before it, and within a span that clients heed. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newWaiter, WaitingRoom } from '../../src/core/waiting-room.ts'
import { prefillMs, requestOverheadMs, stepModel } from '../../src/estimate/step-model.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { someOffer } from '../core/core-rig.ts'
import { ledgerOf, NOW_MS, PRIOR } from './policy-rig.ts'

const SLUICE = createSluice({ priors: { g: PRIOR } })

const prompts = fc.array(fc.integer({ min: 1, max: 60_000 }), { maxLength: 30 })

function adviceMs(replicas: number, waitingPrompts: readonly number[], promptTokens: number): number {
  const waiting = new WaitingRoom()
  for (const tokens of waitingPrompts) waiting.add(newWaiter(someOffer({ promptTokens: tokens }), NOW_MS))
  // Whoever waits for another model stands in nobody's way here.
  waiting.add(newWaiter(someOffer({ pool: 'n', promptTokens: 1e6 }), NOW_MS))
  const ledgers = Array.from({ length: replicas }, (_, index) => ledgerOf(`r${index}`, []))
  const state = { waiting, replicas: new Map(ledgers.map((one) => [one.replicaId, one])), instances: 1 }
  return SLUICE.retryAfterMs(state, someOffer({ promptTokens }), NOW_MS)
}

describe('retry advice', () => {
  it('is when the work that waits will be prefilled, over all replicas, from 1 s to 60 s', () => {
    let between = 0
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        prompts,
        fc.integer({ min: 1, max: 9000 }),
        (replicas, waiting, own) => {
          const told = adviceMs(replicas, waiting, own)
          const each = waiting.reduce((sum, tokens) => sum + tokens, 0) / replicas + own
          const model = stepModel(PRIOR)
          const doneMs = requestOverheadMs(model) + prefillMs(model, each, 512, 0, 0)
          if (told > 1000 && told < 60_000) {
            between++
            // Medians begin a little off the model, by what is not known of it yet.
            expect(told / doneMs).toBeGreaterThan(0.7)
            expect(told / doneMs).toBeLessThan(1.5)
          }
          expect(told).toBeGreaterThanOrEqual(1000)
          expect(told).toBeLessThanOrEqual(60_000)
          expect(adviceMs(replicas, [...waiting, own], own)).toBeGreaterThanOrEqual(told)
          expect(adviceMs(replicas + 1, waiting, own)).toBeLessThanOrEqual(told)
        },
      ),
      { numRuns: 100, seed: 8 },
    )
    expect(between).toBeGreaterThan(20)
  })
})
