/** Which replicas a plan tries for a request: all of a narrow pool, of a wide one a few that differ, and the warm ones. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { replicaChoice } from '../../src/policies/wide.ts'
import { someOffer } from '../core/core-rig.ts'
import { jobFor, roundOf } from './policy-rig.ts'

describe('the replicas that a plan tries', () => {
  it('are all of a narrow pool; of a wide one at most twenty, the four warmest among them, and each in its turn', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.array(fc.tuple(fc.nat(59), fc.integer({ min: 1, max: 5000 })), { maxLength: 12 }),
        (replicas, warm) => {
          const round = roundOf(Array.from({ length: replicas }, () => []))
          const cachedTokens = new Map(
            warm.filter(([index]) => index < replicas).map(([index, tokens]) => [`r${index}`, tokens]),
          )
          const job = { ...jobFor(someOffer()), cachedTokens }
          const choice = replicaChoice(round.views)
          const tried = Array.from({ length: replicas }, (_, nth) => choice(job, nth))
          const cold = { ...job, cachedTokens: new Map<string, number>() }
          const all = [...round.views.keys()]
          // Over as many requests as there are replicas each of these is somebody's choice without being warm.
          expect([...new Set(all.flatMap((nth) => choice(cold, nth)))].sort((a, b) => a - b)).toEqual(all)
          const warmest = [...cachedTokens].sort(([, a], [, b]) => b - a).slice(0, 4)
          for (const chosen of tried) {
            if (replicas <= 16) expect(chosen).toEqual(all)
            expect(chosen).toEqual([...new Set(chosen)].sort((a, b) => a - b))
            expect(chosen.length).toBeGreaterThanOrEqual(Math.min(16, replicas))
            expect(chosen.length).toBeLessThanOrEqual(20)
            expect(chosen.every((index) => index >= 0 && index < replicas)).toBe(true)
            for (const [id] of warmest) expect(chosen).toContain(Number(id.slice(1)))
          }
        },
      ),
      { numRuns: 60, seed: 7 },
    )
  })
})
