/** Attainment over windows, by key, and what becomes of it at reload, restart and clock jumps. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Offer, SloClass } from '../../src/core/request.ts'
import { Attainment, type SloCatalog, slisOf } from '../../src/slo/attainment.ts'
import { PROMPT_SIZE_BOUNDS } from '../../src/slo/series.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/slo/windows.ts'
import { anyFacts, offerOf, settlementOf, sloOf } from './facts.ts'

const chat = sloOf({ name: 'chat', ttftMs: 500, tpotMs: 50, objectiveRatio: 0.99 })
const batch = sloOf({ name: 'batch' })
const catalog: SloCatalog = {
  models: ['m'],
  classes: ['chat', 'batch'],
  products: ['p', 'none'],
  classFor: (name) => ({ chat, batch })[name],
  periodMs: 30 * DAY_MS,
}
const key = { model: 'm', class: 'chat', product: 'p' }

const good = (offer: Partial<Offer> = {}, slo: SloClass = chat) =>
  settlementOf({
    offer: offerOf(slo, offer),
    ttftMs: 300,
    tpotMs: 30,
    promptTokens: offer.promptTokens ?? 200,
  })
const late = (offer: Partial<Offer> = {}) =>
  settlementOf({
    offer: offerOf(chat, offer),
    ttftMs: 900,
    tpotMs: 30,
    promptTokens: offer.promptTokens ?? 200,
  })
const shed = (offer: Partial<Offer> = {}) =>
  settlementOf({
    offer: offerOf(chat, offer),
    outcome: 'shed',
    shedReason: 'slo_unreachable',
    attempts: 0,
    promptTokens: offer.promptTokens ?? 200,
  })

describe('Attainment', () => {
  it('counts over offered requests, beside admitted ones, first attempts and prompt tokens', () => {
    const attainment = new Attainment(catalog)
    attainment.count(good(), 0)
    attainment.count(good({ retryCount: 1 }), 1000)
    attainment.count(late({ promptTokens: 6000 }), 2000)
    attainment.count(shed({ promptTokens: 100_000 }), 10_000)
    const report = attainment.report(key, '5m', 10_000)
    expect(report?.sli.all).toMatchObject({ good: 2, bad: 2, attainmentRatio: 0.5 })
    expect(report?.sli.all.burnRate).toBeCloseTo(50)
    expect(report?.sli.ttft).toMatchObject({ good: 2, bad: 1 })
    expect(report?.sli.tpot).toMatchObject({ good: 3, bad: 0, attainmentRatio: 1 })
    expect(report?.sli.e2e).toEqual({ good: 0, bad: 0 })
    expect(report?.admitted).toMatchObject({ good: 2, bad: 1 })
    expect(report?.firstAttempts).toMatchObject({ good: 1, bad: 2 })
    expect(report?.promptTokens).toMatchObject({ good: 400, bad: 106_000 })
    expect(report?.byPromptSize.map(({ good: g, bad }) => [g, bad])).toEqual([
      [2, 0],
      [0, 0],
      [0, 1],
      [0, 0],
      [0, 1],
    ])
    expect(report?.goodputRequestsPerSec).toBeCloseTo(0.2)
    expect(attainment.goodputRequestsPerSec(key, '5m', 10_000)).toBeCloseTo(0.2)
    expect(attainment.budgetRemainingRatio(key, 10_000)).toBeCloseTo(-49)
    expect(attainment.quantiles(key, 'ttft', '5m', 10_000)?.samples).toBe(3)
  })

  it('says nothing where nothing was judged: no 100 % of nothing', () => {
    const attainment = new Attainment(catalog)
    expect(attainment.report(key, '5m', 0)).toBeUndefined()
    attainment.count(good({}, batch), 0)
    const report = attainment.report({ ...key, class: 'batch' }, '5m', 0)
    expect(report?.sli.all).toEqual({ good: 0, bad: 0 })
    expect(report?.excluded).toMatchObject({ no_targets: 1 })
    expect(attainment.budgetRemainingRatio({ ...key, class: 'batch' }, 0)).toBeUndefined()
  })

  it('lets each window forget at its own time', () => {
    const attainment = new Attainment(catalog)
    attainment.count(late(), 0)
    const badAfter = (nowMs: number) =>
      attainment.windows.map(({ name }) => attainment.share(key, 'all', name, nowMs).bad)
    expect(badAfter(4 * MINUTE_MS)).toEqual([1, 1, 1, 1, 1, 1, 1, 1])
    expect(badAfter(6 * MINUTE_MS)).toEqual([0, 1, 1, 1, 1, 1, 1, 1])
    expect(badAfter(35 * MINUTE_MS)).toEqual([0, 0, 1, 1, 1, 1, 1, 1])
    expect(badAfter(1.5 * HOUR_MS)).toEqual([0, 0, 0, 1, 1, 1, 1, 1])
    expect(badAfter(3 * HOUR_MS)).toEqual([0, 0, 0, 0, 1, 1, 1, 1])
    expect(badAfter(7 * HOUR_MS)).toEqual([0, 0, 0, 0, 0, 1, 1, 1])
    expect(badAfter(2 * DAY_MS)).toEqual([0, 0, 0, 0, 0, 0, 1, 1])
    expect(badAfter(4 * DAY_MS)).toEqual([0, 0, 0, 0, 0, 0, 0, 1])
    expect(badAfter(31 * DAY_MS)).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })

  it('keeps counting and forgetting when the clock steps back', () => {
    const attainment = new Attainment(catalog)
    attainment.count(late(), DAY_MS)
    attainment.count(late(), 0)
    expect(attainment.share(key, 'all', '5m', 1000).bad).toBe(2)
    expect(attainment.share(key, 'all', '5m', 6 * MINUTE_MS).bad).toBe(0)
    expect(attainment.share(key, 'all', '1h', 6 * MINUTE_MS).bad).toBe(2)
  })

  it('makes keys of known names only', () => {
    const attainment = new Attainment(catalog)
    for (let index = 0; index < 50; index++) {
      attainment.count(
        good({ pool: `evil-${index}`, product: `x${index}` }, { ...chat, name: `c${index}` }),
        0,
      )
    }
    expect(attainment.keys()).toEqual([{ model: 'other', class: 'other', product: 'other' }])
  })

  it('drops what a reload removed and keeps the rest', () => {
    const attainment = new Attainment(catalog)
    attainment.count(good(), 0)
    attainment.count(good({}, batch), 0)
    attainment.configure({ ...catalog, classes: ['chat'] })
    expect(attainment.keys()).toEqual([key])
    expect(attainment.share(key, 'all', '5m', 0).good).toBe(1)
    attainment.configure({ ...catalog, periodMs: 7 * DAY_MS })
    expect(attainment.keys()).toEqual([])
  })

  it('survives a restart through JSON, aged by the time away', () => {
    const before = new Attainment(catalog)
    for (let index = 0; index < 100; index++)
      before.count(index % 10 === 0 ? late() : good(), index * MINUTE_MS)
    const json = JSON.stringify(before.snapshot(100 * MINUTE_MS))
    const after = new Attainment(catalog)
    after.restore(JSON.parse(json), HOUR_MS, 7)
    expect(after.share(key, 'all', 'period', 7)).toEqual({ good: 90, bad: 10 })
    expect(after.share(key, 'all', '1h', 7)).toEqual({ good: 0, bad: 0 })
    expect(after.share(key, 'all', '6h', 7)).toEqual({ good: 90, bad: 10 })
    for (const wrong of [null, 7, { version: 2, series: [] }, { version: 1, series: [{ model: 'm' }] }]) {
      expect(() => after.restore(wrong, 0, 8)).toThrow(/state file/)
    }
  })

  it('adds all series up without losing one', () => {
    fc.assert(
      fc.property(fc.array(anyFacts, { maxLength: 40 }), (many) => {
        const attainment = new Attainment(catalog)
        for (const facts of many) attainment.count(settlementOf(facts), 0)
        const { sli, excluded, byPromptSize } = attainment.total('5m', 0)
        const { slow_reader: _, ...others } = excluded
        const kinds = many.map((facts) => settlementOf(facts).verdict)
        expect(sli.all.good).toBe(kinds.filter((verdict) => verdict.kind === 'good').length)
        expect(sli.all.bad).toBe(kinds.filter((verdict) => verdict.kind === 'bad').length)
        expect(Object.values(others).reduce((sum, count) => sum + count, 0)).toBe(
          kinds.filter((verdict) => verdict.kind === 'excluded' && verdict.cause !== 'slow_reader').length,
        )
        expect(byPromptSize.reduce((sum, { bad }) => sum + bad, 0)).toBe(sli.all.bad)
      }),
    )
  })

  it('has a prompt-size bucket for every size', () => {
    expect(PROMPT_SIZE_BOUNDS.at(-1)).toBe(Number.POSITIVE_INFINITY)
    expect([...PROMPT_SIZE_BOUNDS].sort((a, b) => a - b)).toEqual(PROMPT_SIZE_BOUNDS)
  })
})

describe('slisOf', () => {
  it('names the indicators that a class promises', () => {
    expect(slisOf(chat)).toEqual(['all', 'ttft', 'tpot'])
    expect(slisOf(sloOf({ e2eMs: 1 }))).toEqual(['all', 'e2e'])
    expect(slisOf(batch)).toEqual([])
  })
})
