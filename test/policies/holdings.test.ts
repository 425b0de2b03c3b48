/** What plans keep of a replica's batch between two looks is what they would read anew, whatever happens meanwhile. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ReplicaLedger } from '../../src/core/ledger.ts'
import { type Holding, holdingOf, holdingsOf } from '../../src/policies/holdings.ts'
import type { Learnt } from '../../src/policies/learnt.ts'
import { someOffer } from '../core/core-rig.ts'
import { LedgerScript, step } from './ledger-script.ts'

/** Longest rest first, read from the ledger alone. */
function holdingsNow({ prefilling, decoding }: ReplicaLedger, learnt: Learnt): readonly Holding[] {
  return [...prefilling.values(), ...decoding.values()]
    .map(({ offer, contentEvents }) => holdingOf(offer, contentEvents, learnt))
    .sort((a, b) => b.left - a.left || b.used - a.used || b.sequences - a.sequences)
}

function keptHoldings({ ledger, learnt, nowMs }: LedgerScript): readonly Holding[] {
  const { count, used, left, sequences } = holdingsOf(ledger, learnt, nowMs, 0)
  const rows = Array.from({ length: count }, (_, i) => ({
    used: used[i] ?? Number.NaN,
    left: left[i] ?? Number.NaN,
    sequences: sequences[i] ?? Number.NaN,
  }))
  for (const [i, { left: its }] of rows.entries())
    expect(its).toBeLessThanOrEqual(rows[i - 1]?.left ?? Number.POSITIVE_INFINITY)
  return rows.sort((a, b) => b.left - a.left || b.used - a.used || b.sequences - a.sequences)
}

describe('the kept holdings of a replica', () => {
  it('are those of its ledger in order, however often and whenever they were read before', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 120, size: 'max' }), (steps) => {
        const script = new LedgerScript()
        for (const each of steps) {
          script.take(each)
          // Lengths may be learnt without a token: then what was read stands until one moves.
          if (each.kind !== 'learn' && each.kind !== 'look') continue
          script.dispatch(someOffer())
          expect(keptHoldings(script)).toEqual(holdingsNow(script.ledger, script.learnt))
        }
      }),
      { numRuns: 100 },
    )
  })
})
