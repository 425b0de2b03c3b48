/** The reroute budget: a share of the last ten seconds' dispatches, never less than a few. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BOUNCE_CAUSES } from '../../src/core/events.ts'
import { REROUTE_FLOOR_REQUESTS, REROUTE_WINDOW_MS } from '../../src/core/gate-settings.ts'
import { RerouteBudget } from '../../src/core/reroute-budget.ts'

function granted(budget: RerouteBudget, ratio: number, nowMs: number, tries = 100): number {
  let count = 0
  for (let i = 0; i < tries; i++) if (budget.take(ratio, nowMs)) count++
  return count
}

describe('the reroute budget', () => {
  it('lets a quiet proxy reroute a few, and none at a share of 0', () => {
    expect(granted(new RerouteBudget(), 0.1, 0)).toBe(REROUTE_FLOOR_REQUESTS)
    expect(granted(new RerouteBudget(), 0, 0)).toBe(0)
  })

  it('grants the share of what was dispatched in the window', () => {
    const budget = new RerouteBudget()
    for (let i = 0; i < 100; i++) budget.dispatched(i * 90)
    expect(granted(budget, 0.1, 9000)).toBe(10)
    expect(granted(budget, 0.1, 9100)).toBe(0)
  })

  it('is not charged for replicas that failed, and forbids their reroutes too at a share of 0', () => {
    const budget = new RerouteBudget()
    for (const cause of BOUNCE_CAUSES.filter((one) => one !== 'engine_full')) {
      for (let i = 0; i < 50; i++) expect(budget.take(0.1, 0, cause)).toBe(true)
      expect(budget.take(0, 0, cause)).toBe(false)
    }
    for (let i = 0; i < REROUTE_FLOOR_REQUESTS; i++) expect(budget.take(0.1, 0, 'engine_full')).toBe(true)
    expect(budget.take(0.1, 0, 'engine_full')).toBe(false)
  })

  it('forgets both after ten seconds', () => {
    const budget = new RerouteBudget()
    for (let i = 0; i < 100; i++) budget.dispatched(0)
    expect(granted(budget, 0.1, 9999)).toBe(10)
    expect(granted(budget, 0.1, 10_000)).toBe(0)
    expect(granted(budget, 0.1, 19_999)).toBe(REROUTE_FLOOR_REQUESTS)
  })

  it('never lets second attempts pass its share of the first ones in any ten seconds, or its floor', () => {
    const step = fc.record({
      passMs: fc.integer({ min: 0, max: 1500 }),
      dispatches: fc.nat(60),
      asks: fc.nat(12),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.constantFrom(0.05, 0.1, 0.5), (steps, ratio) => {
        const budget = new RerouteBudget()
        const dispatchedAtMs: number[] = []
        const takenAtMs: number[] = []
        let nowMs = 0
        for (const { passMs, dispatches, asks } of steps) {
          nowMs += passMs
          for (let i = 0; i < dispatches; i++) {
            budget.dispatched(nowMs)
            dispatchedAtMs.push(nowMs)
          }
          const seen = (times: readonly number[]) =>
            times.filter((ms) => ms > nowMs - REROUTE_WINDOW_MS).length
          const most = Math.max(REROUTE_FLOOR_REQUESTS, ratio * seen(dispatchedAtMs))
          for (let i = 0; i < asks; i++) {
            if (!budget.take(ratio, nowMs, 'engine_full')) continue
            takenAtMs.push(nowMs)
            // Slots of a second forget up to one of them too early.
            const since = nowMs - REROUTE_WINDOW_MS * 0.9
            expect(takenAtMs.filter((ms) => ms > since).length).toBeLessThanOrEqual(most)
          }
        }
      }),
      { seed: 3 },
    )
  })

  it('starts at any origin and survives a long silence', () => {
    const budget = new RerouteBudget()
    budget.dispatched(1e9)
    expect(granted(budget, 0.1, 1e9)).toBe(REROUTE_FLOOR_REQUESTS)
    expect(granted(budget, 0.1, 5e9)).toBe(REROUTE_FLOOR_REQUESTS)
  })
})
