/** Who waits is looked at once, as work with a promise or as one of the few leftovers that are next. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OverloadAction } from '../../src/core/request.ts'
import { newWaiter } from '../../src/core/waiting-room.ts'
import { LEFTOVERS_TRIED, readWaiters } from '../../src/policies/waiting-jobs.ts'
import { someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { NOW_MS, roundOf } from './policy-rig.ts'

const asked = fc.record({
  ttftMs: fc.constantFrom(undefined, 100, 2000),
  tpotMs: fc.constantFrom(undefined, 50),
  overload: fc.constantFrom<OverloadAction>('shed', 'wait'),
  waitedMs: fc.integer({ min: 0, max: 3000 }),
  pool: fc.constantFrom('m', 'm', 'n'),
})

describe('the waiting jobs of a pool', () => {
  it('are all that have a deadline, the late ones that may be shed, and a few of the rest', () => {
    let late = 0
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 30 }), fc.nat(30), (rows, known) => {
        const round = roundOf([[]])
        const offers = rows.map(({ ttftMs, tpotMs, overload, waitedMs, pool }) => {
          const targets = {
            ...(ttftMs === undefined ? {} : { ttftMs }),
            ...(tpotMs === undefined ? {} : { tpotMs }),
          }
          const slo = sloOf({ ...targets, overload, maxWaitMs: 60_000 })
          return someOffer({ pool, slo, receivedAtMs: NOW_MS - waitedMs })
        })
        for (const offer of offers) round.state.waiting.add(newWaiter(offer, NOW_MS))
        const ids = (jobs: readonly { waiter: { offer: { requestId: string } } }[]) =>
          jobs.map(({ waiter }) => waiter.offer.requestId)
        const isLate = (waitedMs: number, ttftMs: number | undefined) => waitedMs >= (ttftMs ?? Infinity)
        for (const after of [0, Math.min(known, rows.length)]) {
          const mine = offers.filter(({ pool }, index) => pool === 'm' && index >= after)
          const promised = mine.filter(({ slo, receivedAtMs }) => {
            if (slo.ttftMs === undefined) return false
            const gone = isLate(NOW_MS - receivedAtMs, slo.ttftMs)
            if (gone && slo.overload === 'shed') late++
            return !gone || slo.overload === 'shed'
          })
          const { jobs, leftovers } = readWaiters(round, round.views, after)
          expect(ids(jobs)).toEqual(promised.map(({ requestId }) => requestId))
          const rest = mine.filter((offer) => !promised.includes(offer))
          expect(ids(leftovers)).toEqual(rest.slice(0, LEFTOVERS_TRIED).map(({ requestId }) => requestId))
        }
      }),
      { numRuns: 150, seed: 6 },
    )
    expect(late).toBeGreaterThan(20)
  })
})
