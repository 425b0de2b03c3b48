/** An overfull waiting room: who leaves, and that whoever can still be good stays before all others. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { surplusOf } from '../../src/core/surplus.ts'
import { newWaiter, secondWaiter, type Waiter, WaitingRoom } from '../../src/core/waiting-room.ts'
import { sloOf } from '../slo/facts.ts'
import { SLO, someOffer } from './core-rig.ts'

const LIMITS = { requests: 3, bytes: 1000, tokens: 500 }
const BATCH = sloOf({ overload: 'wait', maxWaitMs: 60_000 })
/** Well before the target of `SLO` has passed. */
const NOW_MS = 100

const promised = (promptTokens = 1, receivedAtMs = 0): Waiter =>
  newWaiter(someOffer({ slo: SLO, promptTokens, bodyBytes: 1, receivedAtMs }), receivedAtMs)
const batch = (promptTokens = 1, pool = 'm'): Waiter =>
  newWaiter(someOffer({ slo: BATCH, promptTokens, bodyBytes: 1, pool }), 0)

function roomOf(...waiters: readonly Waiter[]): WaitingRoom {
  const room = new WaitingRoom()
  for (const waiter of waiters) room.add(waiter)
  return room
}

describe('an overfull waiting room', () => {
  it('keeps everybody up to and including each limit', () => {
    expect(surplusOf(roomOf(batch(), batch(), batch(498)), LIMITS, NOW_MS)).toEqual([])
  })

  it('loses the latest to whom nothing is promised, not the promise that came after', () => {
    const [first, second, third] = [batch(), batch(), promised()]
    const room = roomOf(first, second, third, promised())
    expect(surplusOf(room, LIMITS, NOW_MS)).toEqual([second])
  })

  it('counts a promise that can no longer be kept as none', () => {
    const late = promised()
    const room = roomOf(promised(1, 450), late, promised(1, 450), promised(1, 460))
    expect(surplusOf(room, LIMITS, 499)).not.toContain(late)
    expect(surplusOf(room, LIMITS, 500)).toEqual([late])
  })

  it('loses the latest of all when everybody can still be good', () => {
    const last = promised()
    expect(surplusOf(roomOf(promised(), promised(), promised(), last), LIMITS, NOW_MS)).toEqual([last])
  })

  it('does not empty itself of the others for one who is too large all the same', () => {
    const giant = promised(501)
    expect(surplusOf(roomOf(batch(100), batch(100), giant), LIMITS, NOW_MS)).toEqual([giant])
  })

  it('looks over all pools', () => {
    const other = batch(1, 'other')
    expect(surplusOf(roomOf(batch(), batch(), other, promised()), LIMITS, NOW_MS)).toEqual([other])
  })

  it('never loses a second attempt', () => {
    const again = (): Waiter => {
      const offer = someOffer({ slo: BATCH, promptTokens: 400, bodyBytes: 1 })
      return secondWaiter({ offer, enteredAtMs: 0, dispatchedAtMs: 0 }, ['r1'], NOW_MS)
    }
    expect(surplusOf(roomOf(again(), again()), LIMITS, NOW_MS)).toEqual([])
    const first = promised()
    expect(surplusOf(roomOf(again(), first, again()), LIMITS, NOW_MS)).toEqual([first])
  })

  it('is within its limits without them, and no promise leaves where others would have been enough', () => {
    const kinds = fc.record({
      isBatch: fc.boolean(),
      promptTokens: fc.integer({ min: 1, max: 300 }),
      receivedAtMs: fc.integer({ min: -600, max: NOW_MS }),
    })
    fc.assert(
      fc.property(fc.array(kinds, { maxLength: 12 }), (shapes) => {
        const waiters = shapes.map(({ isBatch, promptTokens, receivedAtMs }) =>
          isBatch ? batch(promptTokens) : promised(promptTokens, receivedAtMs),
        )
        const room = roomOf(...waiters)
        const gone = surplusOf(room, LIMITS, NOW_MS)
        const stay = waiters.filter((waiter) => !gone.includes(waiter))
        const tokensOf = (some: readonly Waiter[]): number =>
          some.reduce((sum, { offer }) => sum + offer.promptTokens, 0)
        expect(stay.length).toBeLessThanOrEqual(LIMITS.requests)
        expect(tokensOf(stay)).toBeLessThanOrEqual(LIMITS.tokens)
        const live = waiters.filter(
          ({ offer }) => offer.slo === SLO && offer.receivedAtMs + (SLO.ttftMs ?? 0) > NOW_MS,
        )
        const fits = live.length <= LIMITS.requests && tokensOf(live) <= LIMITS.tokens
        if (fits) for (const waiter of live) expect(gone).not.toContain(waiter)
      }),
    )
  })
})
