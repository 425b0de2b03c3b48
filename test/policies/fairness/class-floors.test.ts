/** Floors of classes: a part of each gets in whatever comes beside it, nothing is saved up, and the cost is bounded. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ClassFloors } from '../../../src/policies/fairness/class-floors.ts'

/** Offers until a class that gets nothing is owed something. */
function refusalsUntilDue(floors: ClassFloors, nowMs: number): number {
  let refusals = 0
  while (floors.due('costly', nowMs) === 0) {
    floors.offered('costly')
    refusals++
    if (refusals > 100) throw new Error('never due')
  }
  return refusals
}

const turn = fc.record({ class: fc.constantFrom('costly', 'cheap'), wanted: fc.boolean() })

describe('the floors of classes', () => {
  it('I33 let in one of twenty of each class, whatever else is preferred', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 400, size: 'max' }), (turns) => {
        const floors = new ClassFloors()
        // Enough is served beside them for floors to cost little.
        for (let n = 0; n < 400; n++) floors.admitted('other', 1000, 0)
        const counts = { costly: { offered: 0, admitted: 0 }, cheap: { offered: 0, admitted: 0 } }
        for (const { class: name, wanted } of turns) {
          const count = counts[name as keyof typeof counts]
          floors.offered(name)
          count.offered++
          if (wanted || floors.due(name, 0) > 0) {
            floors.admitted(name, 1000, 0)
            count.admitted++
          }
          expect(count.admitted).toBeGreaterThanOrEqual(Math.floor(count.offered / 20))
        }
      }),
    )
  })

  it('I33 take a fifth of what is served and one request at most, however much they are owed', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(sizes, (tokens) => {
        const floors = new ClassFloors()
        for (let n = 0; n < 2000; n++) floors.offered('costly')
        let served = 0
        let taken = 0
        for (const size of tokens) {
          const isDue = floors.due('costly', 0) > 0
          served += size
          if (isDue) taken += size
          floors.admitted(isDue ? 'costly' : 'other', size, 0)
        }
        expect(taken).toBeLessThanOrEqual(0.2 * served + 30_000)
      }),
    )
  })

  it('save nothing up: a class that had plenty is owed as late as one that had nothing', () => {
    const floors = new ClassFloors()
    for (let n = 0; n < 500; n++) {
      floors.offered('costly')
      floors.admitted('costly', 100, n)
    }
    expect(refusalsUntilDue(floors, 500)).toBe(20)
    expect(refusalsUntilDue(new ClassFloors(), 0)).toBe(20)
  })

  it('ask for a bounded number of requests after an outage', () => {
    const floors = new ClassFloors()
    for (let n = 0; n < 100_000; n++) floors.offered('costly')
    expect(floors.due('costly', 0)).toBe(100)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('stay within their bound after %d tokens', (odd) => {
    const floors = new ClassFloors()
    floors.admitted('other', odd, 0)
    for (let n = 0; n < 40; n++) floors.offered('costly')
    floors.admitted('costly', 1000, 0)
    // All that was ever served was owed, so that nothing more is.
    expect(floors.due('costly', 0)).toBe(0)
    floors.admitted('other', 9000, 0)
    expect(floors.due('costly', 0)).toBe(1)
  })
})
