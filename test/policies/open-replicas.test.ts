/** What is left out of a decision to save time would have been refused all the same. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { refusingGate } from '../../src/policies/admission/gates.ts'
import { hasRoom, openReplicas } from '../../src/policies/open-replicas.ts'
import { routeOf } from '../../src/policies/round.ts'
import { someOffer } from '../core/core-rig.ts'
import { flying, jobFor, roundOf } from './policy-rig.ts'

const fleet = fc.array(fc.array(flying, { maxLength: 8 }), { minLength: 1, maxLength: 4 })
const asked = fc.record({
  promptTokens: fc.oneof(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 4000 })),
  sequences: fc.integer({ min: 1, max: 4 }),
})
const without = fc.constantFrom([], ['depth'] as const, ['slots'] as const, ['depth', 'slots'] as const)
const roomRatio = fc.constantFrom(1, 0.8)

describe('a replica that is not open', () => {
  it('has a gate that refuses anybody, and one that is open without room has one for that request', () => {
    const seen = { closed: 0, full: 0, roomy: 0 }
    fc.assert(
      fc.property(fleet, asked, without, roomRatio, (rows, shape, parts, ratio) => {
        const round = roundOf(rows, { without: parts })
        const job = jobFor(someOffer({ ...shape, receivedAtMs: round.nowMs }))
        const open = new Map(openReplicas(round).map((replica) => [replica.view, replica]))
        for (const view of round.views) {
          const gate = refusingGate(routeOf(round, job, view, ratio).candidate, round.without)
          const replica = open.get(view)
          const isRoomy = replica !== undefined && hasRoom(round, job, replica, ratio)
          if (isRoomy) expect(['slots', 'depth']).not.toContain(gate)
          else expect(gate).toBeDefined()
          seen[replica === undefined ? 'closed' : isRoomy ? 'roomy' : 'full']++
        }
      }),
      { numRuns: 400, seed: 4 },
    )
    for (const [kind, count] of Object.entries(seen)) expect(count, kind).toBeGreaterThan(20)
  })
})
