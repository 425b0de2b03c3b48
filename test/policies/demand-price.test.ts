/** The price of a place: nobody is outpriced below capacity, and never the cheap before the dear. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Demand, DemandPrice } from '../../src/policies/demand-price.ts'

const demand = fc.record({
  prefillMs: fc.double({ min: 1, max: 500, noNaN: true }),
  slotMs: fc.double({ min: 0, max: 500, noNaN: true }),
  value: fc.constantFrom(1, 2, 4),
})
/** Half a second: of eight such targets the memory is four seconds. */
const TARGET_MS = 500
const cost = ({ prefillMs, slotMs, value }: Demand): number => (prefillMs + slotMs) / value

function priceAfter(demands: readonly Demand[]): DemandPrice {
  const price = new DemandPrice()
  for (const [index, one] of demands.entries()) price.arrived(one, TARGET_MS, index)
  return price
}

describe('the price of a place', () => {
  it('outprices nobody while all that came fits', () => {
    fc.assert(
      fc.property(fc.array(demand, { minLength: 1, maxLength: 8 }), (demands) => {
        const price = priceAfter(demands)
        // Eight requests of at most half a second each fill less than the four seconds of one replica.
        for (const one of demands) expect(price.outprices(one, 1, demands.length)).toBe(false)
      }),
    )
  })

  it('never outprices a request that is no dearer than one that it lets pass', () => {
    fc.assert(
      fc.property(
        fc.array(demand, { minLength: 30, maxLength: 80 }),
        demand,
        demand,
        (demands, one, other) => {
          const price = priceAfter(demands)
          const [cheap, dear] = cost(one) <= cost(other) ? [one, other] : [other, one]
          if (price.outprices(cheap, 1, demands.length))
            expect(price.outprices(dear, 1, demands.length)).toBe(true)
        },
      ),
    )
  })

  it('outprices the dear while cheaper demand fills the engines, and no longer once that has gone', () => {
    const cheap = { prefillMs: 20, slotMs: 0, value: 1 }
    const dear = { prefillMs: 200, slotMs: 0, value: 1 }
    const price = new DemandPrice()
    for (let atMs = 0; atMs < 8000; atMs += 10) price.arrived(cheap, TARGET_MS, atMs)
    expect(price.outprices(dear, 1, 8000)).toBe(true)
    expect(price.outprices(cheap, 1, 8000)).toBe(false)
    expect(price.outprices({ ...dear, value: 20 }, 1, 8000)).toBe(false)
    expect(price.outprices(dear, 2, 8000)).toBe(false)
    expect(price.outprices(dear, 1, 16_000)).toBe(false)
  })

  it('opens again, if nobody else comes, no later than it says, and no sooner while all room is nominal', () => {
    let outpriced = 0
    fc.assert(
      fc.property(fc.array(demand, { minLength: 100, maxLength: 200 }), demand, (demands, one) => {
        const nowMs = demands.length
        const openMs = priceAfter(demands).opensInMs(one, 1, nowMs)
        expect(priceAfter(demands).outprices(one, 1, nowMs)).toBe(openMs > 0)
        if (openMs === 0) return
        outpriced++
        expect(priceAfter(demands).outprices(one, 1, nowMs + openMs + 0.01)).toBe(false)
        expect(priceAfter(demands).outprices(one, 1, nowMs + openMs - 0.01)).toBe(true)
        const served = priceAfter(demands)
        for (const each of demands.slice(0, 20)) served.served(each, 1, nowMs)
        const laterMs = served.opensInMs(one, 1, nowMs)
        expect(served.outprices(one, 1, nowMs + laterMs + 0.01)).toBe(false)
      }),
    )
    expect(outpriced).toBeGreaterThan(10)
  })

  it('leaves room for other work while all demand fits, and none once it does not', () => {
    const one = { prefillMs: 10, slotMs: 0, value: 1 }
    const price = new DemandPrice()
    for (let atMs = 0; atMs < 8000; atMs += 12) price.arrived(one, TARGET_MS, atMs)
    expect(price.takesAll(1, 8000)).toBe(false)
    for (let atMs = 8000; atMs < 16_000; atMs += 8) price.arrived(one, TARGET_MS, atMs)
    expect(price.takesAll(1, 16_000)).toBe(true)
    expect(price.takesAll(2, 16_000)).toBe(false)
    expect(price.takesAll(1, 20_000)).toBe(false)
  })

  it('makes room for engines that are seen to do more than their time', () => {
    const cheap = { prefillMs: 15, slotMs: 0, value: 1 }
    const dear = { prefillMs: 200, slotMs: 0, value: 1 }
    const price = new DemandPrice()
    for (let atMs = 0; atMs < 8000; atMs += 10) price.arrived(cheap, TARGET_MS, atMs)
    expect(price.outprices(dear, 1, 8000)).toBe(true)
    for (let n = 0; n < 400; n++) price.served(cheap, 1, 8000)
    expect(price.outprices(dear, 1, 8000)).toBe(false)
  })

  it('remembers for longer where first tokens have more time', () => {
    const one = { prefillMs: 10, slotMs: 0, value: 1 }
    const [soon, late] = [500, 4000].map((targetMs) => {
      const price = new DemandPrice()
      for (let atMs = 0; atMs < 4000; atMs += 5) price.arrived(one, targetMs, atMs)
      return price.takesAll(1, 4000)
    })
    // Twice what fits, for four seconds: overload for those that have half a second, a burst for those that have four.
    expect([soon, late]).toEqual([true, false])
  })

  it('rises while dear work is served all the same, and falls back once it is not', () => {
    const cheap = { prefillMs: 20, slotMs: 0, value: 1 }
    const dear = { prefillMs: 100, slotMs: 0, value: 1 }
    const price = new DemandPrice()
    /** Half as much again of cheap work as is thought to fit; `often` of a hundred services are dear. */
    const pass = (fromMs: number, often: number) => {
      const outpriced: boolean[] = []
      for (let n = 0; n < 800; n++) {
        const atMs = fromMs + n * 14
        price.arrived(cheap, TARGET_MS, atMs)
        if (n % 100 < often) price.served(dear, 1, atMs)
        else if (n % 2 === 0) price.served(cheap, 1, atMs)
        if (n > 400) outpriced.push(price.outprices(dear, 1, atMs))
      }
      return { endMs: fromMs + 800 * 14, outpriced: new Set(outpriced) }
    }
    const calm = pass(0, 0)
    expect(calm.outpriced).toEqual(new Set([true]))
    const stolen = pass(calm.endMs, 10)
    // It settles where dear work passes now and then.
    expect(stolen.outpriced).toContain(false)
    const again = pass(pass(stolen.endMs, 0).endMs, 0)
    expect(again.outpriced).toEqual(new Set([true]))
  })

  it('takes no change of targets for a change of demand', () => {
    const one = { prefillMs: 10, slotMs: 0, value: 1 }
    fc.assert(
      fc.property(
        fc.double({ min: -1e9, max: 1e9, noNaN: true }),
        fc.double({ min: 500, max: 7500, noNaN: true }),
        fc.boolean(),
        (strangeMs, targetMs, overloaded) => {
          const price = new DemandPrice()
          const everyMs = overloaded ? 5 : 20
          for (let n = 0; n * everyMs < 240_000; n++) {
            const atMs = n * everyMs
            const isStrange = atMs > 120_000 && n % 10 === 0
            price.arrived(one, isStrange ? strangeMs : targetMs, atMs)
            if (atMs > 120_000 && n % 50 === 0) expect(price.takesAll(1, atMs)).toBe(overloaded)
          }
        },
      ),
      { numRuns: 8 },
    )
  })

  it('forgets in quiet what dear work has taught it about room', () => {
    const cheap = { prefillMs: 30, slotMs: 0, value: 1 }
    const dear = { prefillMs: 100, slotMs: 0, value: 1 }
    const price = new DemandPrice()
    const overload = (fromMs: number, dearToo: boolean) => {
      let wasOpen = false
      for (let atMs = fromMs; atMs < fromMs + 12_000; atMs += 20) {
        price.arrived(cheap, TARGET_MS, atMs)
        if (dearToo && atMs % 100 === 0) price.served(dear, 1, atMs)
        if (atMs > fromMs + 6000) wasOpen ||= !price.outprices(dear, 1, atMs)
      }
      return wasOpen
    }
    expect(overload(0, true)).toBe(true)
    expect(overload(200_000, false)).toBe(false)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('is what it was after a demand of %d ms', (odd) => {
    const [cheap, dear] = [20, 200].map((prefillMs) => ({ prefillMs, slotMs: 0, value: 1 }))
    if (cheap === undefined || dear === undefined) throw new Error('no demands')
    const price = new DemandPrice()
    price.served({ ...dear, slotMs: odd }, 1, 0)
    price.arrived({ ...dear, slotMs: odd }, TARGET_MS, 0)
    for (let atMs = 0; atMs < 8000; atMs += 10) price.arrived(cheap, TARGET_MS, atMs)
    expect(price.outprices(dear, 1, 8000)).toBe(true)
    expect(price.outprices(cheap, 1, 8000)).toBe(false)
  })
})
