/** Which replica a request goes to among those that would take it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { newWaiter } from '../../src/core/waiting-room.ts'
import { jobOf } from '../../src/policies/job.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { highestFirst } from '../../src/policies/ordering/highest-first.ts'
import { outlook } from '../../src/policies/outlook.ts'
import { type Route, soonestFirstToken } from '../../src/policies/routing/soonest-first-token.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'

/** First tokens nearer to each other than this part don't decide. */
const TIE_RATIO = 0.02

const learnt = new Learnt({})

function routeOf(engineTtftMs: number, streams: number): Route {
  const ledger = new ReplicaLedger(reportOf('r1'))
  for (let id = 0; id < streams; id++) ledger.dispatch(inFlightOf(id, someOffer()))
  const job = jobOf(newWaiter(someOffer(), 0), { value: 1, owed: false }, learnt, 12, 0, 0)
  const candidate = {
    view: outlook(ledger, learnt, 1, 0),
    job,
    uncachedTokens: 100,
    kvPeakRatio: () => undefined,
    depthTokens: 500,
    roomRatio: 1,
    nowMs: 0,
  }
  return { candidate, engineTtftMs }
}

const row = fc.tuple(fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 0, max: 4 }))

describe('a request that two replicas would take', () => {
  it('goes where its first token comes sooner, and on a tie where fewer run', () => {
    fc.assert(
      fc.property(row, row, ([aMs, a], [bMs, b]) => {
        const routes = [routeOf(aMs, a), routeOf(bMs, b)]
        const [first, second] = soonestFirstToken(routes)
        expect(soonestFirstToken([...routes].reverse()).map((each) => each.engineTtftMs)).toEqual(
          [first, second].map((each) => each?.engineTtftMs),
        )
        const isTie = Math.abs(aMs - bMs) <= TIE_RATIO * Math.max(aMs, bMs)
        if (!isTie) expect(first?.engineTtftMs).toBe(Math.min(aMs, bMs))
        else if (a !== b) expect(first?.candidate.view.ledger.inFlightSequences).toBe(Math.min(a, b))
        else expect(first?.engineTtftMs).toBe(Math.min(aMs, bMs))
      }),
      { numRuns: 200, seed: 2 },
    )
  })
})

describe('a request that several replicas would take', () => {
  const shown = (routes: readonly Route[]) =>
    routes.map(({ engineTtftMs, candidate }) => [engineTtftMs, candidate.view.ledger.inFlightSequences])
  // So near to each other that chains of ties are common.
  const near = fc.tuple(fc.integer({ min: 970, max: 1030 }), fc.integer({ min: 0, max: 4 }))

  it('goes the same way whatever the order of the fleet', () => {
    fc.assert(
      fc.property(
        fc
          .array(near, { minLength: 3, maxLength: 8 })
          .chain((rows) =>
            fc.tuple(fc.constant(rows), fc.shuffledSubarray(rows, { minLength: rows.length })),
          ),
        ([rows, shuffled]) => {
          const ordered = soonestFirstToken(rows.map(([ms, streams]) => routeOf(ms, streams)))
          expect(shown(soonestFirstToken(shuffled.map(([ms, streams]) => routeOf(ms, streams))))).toEqual(
            shown(ordered),
          )
          const soonestMs = Math.min(...rows.map(([ms]) => ms))
          const tied = rows.filter(([ms]) => ms - soonestMs <= TIE_RATIO * ms)
          const fewest = Math.min(...tied.map(([, streams]) => streams))
          expect(shown(ordered)[0]).toEqual([
            Math.min(...tied.filter(([, streams]) => streams === fewest).map(([ms]) => ms)),
            fewest,
          ])
        },
      ),
      { numRuns: 300, seed: 2 },
    )
  })
})

describe('leftovers', () => {
  it('are the highest claims, in order of arrival where they are equal', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 6 }),
        (claims, count) => {
          const items = claims.map((claim, arrived) => ({ claim, arrived }))
          const sorted = [...items].sort((a, b) => b.claim - a.claim || a.arrived - b.arrived)
          expect(highestFirst(items, ({ claim }) => claim, count)).toEqual(sorted.slice(0, count))
        },
      ),
    )
  })
})
