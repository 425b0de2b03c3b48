/** What plans keep of a replica's batch between two looks is what they would read anew, whatever happens meanwhile. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type InFlight, ReplicaLedger } from '../../src/core/ledger.ts'
import { learnLength } from '../../src/estimate/output-length.ts'
import { type Holding, holdingOf, holdingsOf } from '../../src/policies/holdings.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { streamsOf } from '../../src/policies/streams.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'

const step = fc.record({
  kind: fc.constantFrom(
    'dispatch',
    'dispatch',
    'firstToken',
    'progress',
    'progress',
    'release',
    'learn',
    'look',
  ),
  /** Whom it happens to, among those that it can happen to. */
  nth: fc.nat({ max: 60 }),
  tokens: fc.integer({ min: 1, max: 400 }),
  sequences: fc.integer({ min: 1, max: 3 }),
  capped: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** A replica to which things happen, each at an instant of its own. */
class Scene {
  readonly learnt = new Learnt({})
  readonly ledger = new ReplicaLedger(reportOf('r1'))
  nowMs = 0

  take({ kind, nth, tokens, sequences, capped }: Step): void {
    this.nowMs++
    const { prefilling, decoding } = this.ledger
    if (kind === 'dispatch') {
      const cap = capped ? { maxOutputTokens: 2 * tokens } : {}
      const offer = someOffer({ promptTokens: tokens, sequences, route: capped ? 'chat' : 'plain', ...cap })
      this.ledger.dispatch(inFlightOf(this.nowMs, offer))
    } else if (kind === 'firstToken') {
      const one = pick([...prefilling.values()], nth)
      if (one !== undefined) this.ledger.firstToken(one.permitId, this.nowMs)
    } else if (kind === 'progress') {
      const one = pick([...decoding.values()], nth)
      if (one !== undefined) this.ledger.progress(one, tokens, this.nowMs)
    } else if (kind === 'release') {
      const one = pick([...prefilling.values(), ...decoding.values()], nth)
      if (one !== undefined) this.ledger.release(one.permitId)
    } else if (kind === 'learn') {
      const offer = someOffer({ route: capped ? 'chat' : 'plain', maxOutputTokens: 800 })
      for (let i = 0; i < 10; i++) learnLength(this.learnt.lengthsOf(offer), tokens, offer)
    }
  }

  /** Longest rest first, read from the ledger alone. */
  holdings(): readonly Holding[] {
    const { prefilling, decoding } = this.ledger
    return [...prefilling.values(), ...decoding.values()]
      .map(({ offer, contentEvents }) => holdingOf(offer, contentEvents, this.learnt))
      .sort((a, b) => b.left - a.left || b.used - a.used || b.sequences - a.sequences)
  }
}

function pick(from: readonly InFlight[], nth: number): InFlight | undefined {
  return from[nth % Math.max(1, from.length)]
}

function keptHoldings({ ledger, learnt, nowMs }: Scene): readonly Holding[] {
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
      fc.property(fc.array(step, { minLength: 1, maxLength: 120 }), (steps) => {
        const scene = new Scene()
        for (const each of steps) {
          scene.take(each)
          // Lengths may be learnt without a token: then what was read stands until one moves.
          if (each.kind !== 'learn' && each.kind !== 'look') continue
          scene.ledger.dispatch(inFlightOf(10_000 + scene.nowMs, someOffer()))
          expect(keptHoldings(scene)).toEqual(scene.holdings())
        }
      }),
      { numRuns: 100 },
    )
  })
})

describe('the kept streams of a replica', () => {
  it('are those that decode there, in order, and what is noted of one stays with it', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 120 }), (steps) => {
        const scene = new Scene()
        const { ledger, learnt } = scene
        for (const each of steps) {
          scene.take(each)
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
      { numRuns: 100 },
    )
  })
})
