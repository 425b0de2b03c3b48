/** Burn rates, the pairs of windows, and the health word made of them. */
import { describe, expect, it } from 'vitest'
import { Attainment } from '../../src/slo/attainment.ts'
import { budgetRemainingRatio, burnPairs, burnRate } from '../../src/slo/burn-rate.ts'
import { SloHealth, worstState } from '../../src/slo/slo-health.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/slo/windows.ts'
import { offerOf, settlementOf, sloOf } from './facts.ts'

describe('burnPairs', () => {
  it('derives the factors from the period', () => {
    const factors = (days: number) => burnPairs(days * DAY_MS).map(({ factor }) => Number(factor.toFixed(2)))
    expect(factors(30)).toEqual([14.4, 6, 3, 1])
    expect(factors(28)).toEqual([13.44, 5.6, 2.8, 0.93])
    expect(factors(7)).toEqual([3.36, 1.4])
  })

  it('has short windows of a twelfth of the long ones', () => {
    for (const pair of burnPairs(30 * DAY_MS)) expect(pair.longMs / pair.shortMs).toBe(12)
  })
})

describe('burnRate', () => {
  it('is 1 when the budget lasts exactly the period, and undefined when there is nothing to say', () => {
    expect(burnRate(99, 1, 0.99)).toBeCloseTo(1)
    expect(burnRate(0, 10, 0.9)).toBeCloseTo(10)
    expect(burnRate(0, 0, 0.99)).toBeUndefined()
    expect(burnRate(9, 1, undefined)).toBeUndefined()
    expect(burnRate(9, 1, 1)).toBe(Number.POSITIVE_INFINITY)
    expect(burnRate(9, 0, 1)).toBe(0)
    expect(budgetRemainingRatio(995, 5, 0.99)).toBeCloseTo(0.5)
  })
})

describe('SloHealth', () => {
  const chat = sloOf({ name: 'chat', ttftMs: 500, objectiveRatio: 0.99 })
  const setUp = () => {
    const attainment = new Attainment({
      models: ['m'],
      classes: ['chat'],
      products: ['p'],
      classFor: () => chat,
      periodMs: 30 * DAY_MS,
    })
    const feed = (goods: number, bads: number, nowMs: number) => {
      for (let index = 0; index < goods + bads; index++) {
        attainment.count(settlementOf({ offer: offerOf(chat), ttftMs: index < goods ? 100 : 900 }), nowMs)
      }
    }
    const health = new SloHealth(attainment)
    return { feed, state: (nowMs: number) => worstState(health.evaluate(nowMs)), health }
  }

  it('is not raised by a handful of requests', () => {
    const { feed, state } = setUp()
    feed(0, 5, 0)
    expect(state(0)).toBe('unknown')
  })

  it('is ok with traffic within the objective', () => {
    const { feed, state } = setUp()
    feed(1000, 2, 0)
    expect(state(0)).toBe('ok')
  })

  it('turns critical on a fast burn, stays through a half recovery, and clears after a full one', () => {
    const { feed, state, health } = setUp()
    feed(60, 40, 0)
    expect(state(1000)).toBe('critical')
    expect(health.evaluate(1000)[0]).toMatchObject({ raisedBy: '1h/5m', sinceMs: 1000 })
    feed(87, 13, 8 * MINUTE_MS)
    expect(state(8 * MINUTE_MS)).toBe('critical')
    expect(health.evaluate(8 * MINUTE_MS)[0]?.raisedBy).toBe('1h/5m')
    for (let minute = 14; minute < 60; minute++) feed(400, 0, minute * MINUTE_MS)
    expect(state(59 * MINUTE_MS)).toBe('ok')
  })

  it('stays critical in silence until the long window has forgotten', () => {
    const { feed, state } = setUp()
    feed(0, 100, 0)
    expect(state(0)).toBe('critical')
    expect(state(30 * MINUTE_MS)).toBe('critical')
    expect(state(4 * DAY_MS)).toBe('unknown')
  })

  it('tells of a slow burn as burning', () => {
    const { feed, state } = setUp()
    for (let hour = 0; hour < 72; hour++) feed(98, 2, hour * HOUR_MS)
    expect(state(71 * HOUR_MS)).toBe('burning')
  })

  it('knows every pair that the period has, days included', () => {
    const { feed, health } = setUp()
    // A day and a half at four times the budget: too slow for the pairs of hours, and for three days.
    for (let hour = 0; hour < 36; hour++) feed(96, 4, hour * HOUR_MS)
    expect(health.evaluate(35.5 * HOUR_MS)).toMatchObject([{ state: 'burning', raisedBy: '1d/2h' }])
  })

  it('is unknown with nothing to judge', () => {
    expect(setUp().state(0)).toBe('unknown')
  })
})
