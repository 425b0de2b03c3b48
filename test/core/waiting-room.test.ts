/** The waiting room: bounds by count, bytes and tokens, order of arrival, and sums that return to zero. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newWaiter, WaitingRoom } from '../../src/core/waiting-room.ts'
import { sloOf } from '../slo/facts.ts'
import { someOffer } from './core-rig.ts'

describe('the waiting room', () => {
  it('tells who waits from the latest to the first, over all pools', () => {
    const room = new WaitingRoom()
    const waiters = ['m', 'm', 'other', 'm', 'other'].map((pool) => newWaiter(someOffer({ pool }), 0))
    for (const waiter of waiters) room.add(waiter)
    const [, gone] = waiters
    room.remove(gone?.offer.requestId ?? '')
    expect([...room.latestFirst()]).toEqual(waiters.filter((waiter) => waiter !== gone).reverse())
  })

  it('refuses a second waiter of the same id and changes nothing', () => {
    const room = new WaitingRoom()
    const waiter = newWaiter(someOffer({ bodyBytes: 7, promptTokens: 5 }), 0)
    room.add(waiter)
    expect(() => room.add(waiter)).toThrow(/waits already/)
    expect([room.requests, room.bytes, room.tokens]).toEqual([1, 7, 5])
  })

  it('removes once and says so', () => {
    const room = new WaitingRoom()
    const waiter = newWaiter(someOffer(), 0)
    room.add(waiter)
    expect(room.remove(waiter.offer.requestId)).toBe(waiter)
    expect(room.remove(waiter.offer.requestId)).toBeUndefined()
  })

  it('sends a waiter away when its class or its client has waited long enough', () => {
    const slo = sloOf({ maxWaitMs: 1000 })
    expect(newWaiter(someOffer({ slo }), 50).expiresAtMs).toBe(1050)
    expect(newWaiter(someOffer({ slo, clientDeadlineAtMs: 300 }), 50).expiresAtMs).toBe(300)
    const room = new WaitingRoom()
    expect(room.nextExpiryAtMs()).toBeUndefined()
    room.add(newWaiter(someOffer({ slo }), 50))
    room.add(newWaiter(someOffer({ slo, clientDeadlineAtMs: 300 }), 60))
    expect(room.nextExpiryAtMs()).toBe(300)
  })

  it('keeps the order of arrival, and its sums are those of who is in it', () => {
    const sizes = fc.array(fc.tuple(fc.double({ min: 0.1, max: 9999, noNaN: true }), fc.nat(99)), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(sizes, (steps) => {
        const room = new WaitingRoom()
        let inside: ReturnType<typeof newWaiter>[] = []
        for (const [promptTokens, pick] of steps) {
          if (pick % 3 === 0 && inside.length > 0) {
            const gone = inside[pick % inside.length]
            inside = inside.filter((waiter) => waiter !== gone)
            room.remove(gone?.offer.requestId ?? '')
          } else {
            const waiter = newWaiter(someOffer({ promptTokens, bodyBytes: pick }), 0)
            inside.push(waiter)
            room.add(waiter)
          }
          expect([...room]).toEqual(inside)
          expect(room.bytes).toBe(inside.reduce((sum, { offer }) => sum + offer.bodyBytes, 0))
          expect(room.tokens).toBeCloseTo(
            inside.reduce((sum, { offer }) => sum + offer.promptTokens, 0),
            6,
          )
          expect(room.tokens).toBeGreaterThanOrEqual(0)
        }
        for (const { offer } of inside) room.remove(offer.requestId)
        expect([room.requests, room.bytes, room.tokens]).toEqual([0, 0, 0])
      }),
    )
  })
})
