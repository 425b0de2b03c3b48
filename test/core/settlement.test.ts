/** Settlement: the arithmetic of TTFT, TPOT and end-to-end time against cases worked out by hand. */
import { describe, expect, it } from 'vitest'
import type { SettleReport } from '../../src/core/records.ts'
import { settleInFlight, settleWaiter } from '../../src/core/settlement.ts'
import { judge } from '../../src/slo/judge.ts'
import { inFlightOf, SLO, someOffer } from './core-rig.ts'

/** Received at 1000, sent at 1040, first token at 1300, last at 3300, end of the body at 3310. */
const REPORT: SettleReport = {
  outcome: 'completed',
  endedAtMs: 3310,
  firstTokenAtMs: 1300,
  lastTokenAtMs: 3300,
  contentEvents: 38,
  usage: { promptTokens: 210, outputTokens: 41, cachedTokens: 64 },
}

function settle(report: Partial<SettleReport> = {}, change: Parameters<typeof someOffer>[0] = {}) {
  const offer = someOffer({ receivedAtMs: 1000, ...change })
  return settleInFlight(inFlightOf(7, offer, { dispatchedAtMs: 1040 }), { ...REPORT, ...report }, judge)
}

describe('a settlement of a permit', () => {
  it('measures from receipt, and per token after the first', () => {
    const settlement = settle()
    expect(settlement).toMatchObject({
      ttftMs: 300,
      tpotMs: 2000 / 40,
      e2eMs: 2310,
      queueMs: 40,
      promptTokens: 210,
      outputTokens: 41,
      countedBy: 'usage',
      attempts: 1,
      replicaId: 'r1',
    })
    expect(settlement.verdict).toMatchObject({ kind: 'good', ttftGood: true, tpotGood: true })
  })

  it('calls a pace just over the target bad', () => {
    expect(settle({ lastTokenAtMs: 3301 }).verdict).toMatchObject({ kind: 'bad', cause: 'tpot' })
  })

  it('divides the tokens of several choices before it takes the pace', () => {
    expect(settle({}, { sequences: 2 }).tpotMs).toBeCloseTo(2000 / (41 / 2 - 1), 9)
  })

  it('has no pace for one token, for one per choice, or when no token came', () => {
    expect(settle({ usage: { outputTokens: 1 } })).not.toHaveProperty('tpotMs')
    expect(settle({ usage: { outputTokens: 2 } }, { sequences: 2 })).not.toHaveProperty('tpotMs')
    const { firstTokenAtMs: _, lastTokenAtMs: __, ...none } = REPORT
    const offer = someOffer({ receivedAtMs: 1000 })
    const settlement = settleInFlight(inFlightOf(7, offer), { ...none, contentEvents: 0 }, judge)
    expect(settlement).not.toHaveProperty('ttftMs')
    expect(settlement).not.toHaveProperty('tpotMs')
  })

  it('counts by content events when the engine gave no usage, and says so', () => {
    const { usage: _, ...unsaid } = REPORT
    const offer = someOffer({ receivedAtMs: 1000 })
    const counted = settleInFlight(inFlightOf(7, offer), unsaid, judge)
    expect(counted).toMatchObject({ outputTokens: 38, countedBy: 'events', tpotMs: 2000 / 37 })
    const nothing = settleInFlight(inFlightOf(7, offer), { ...unsaid, contentEvents: 0 }, judge)
    expect(nothing).toMatchObject({ outputTokens: 0, countedBy: 'none' })
  })

  it('takes neither TTFT nor TPOT from an answer that does not stream', () => {
    const settlement = settle({}, { streamed: false })
    expect(settlement).not.toHaveProperty('ttftMs')
    expect(settlement).not.toHaveProperty('tpotMs')
    expect(settlement.e2eMs).toBe(2310)
    // 500 + 40 * 50 = 2500 ms are due for 41 tokens.
    expect(settlement.verdict.kind).toBe('good')
  })
})

describe('a settlement of a waiter', () => {
  const offer = someOffer({ receivedAtMs: 1000, slo: SLO })
  it('counts only attempts that were made', () => {
    const first = settleWaiter(
      { offer, attempt: 1 },
      { outcome: 'shed', shedReason: 'waiting_full' },
      judge,
      1250,
    )
    expect(first).toMatchObject({ attempts: 0, queueMs: 250, e2eMs: 250, countedBy: 'none', outputTokens: 0 })
    expect(first.verdict).toEqual({ kind: 'bad', cause: 'shed' })
    expect(settleWaiter({ offer, attempt: 2 }, { outcome: 'cancelled' }, judge, 1250).attempts).toBe(1)
    expect(settleWaiter({ offer, attempt: 2 }, { outcome: 'upstream_failed' }, judge, 1250).attempts).toBe(2)
  })

  it('excludes a client that left before anything was due, and not one that waited in vain', () => {
    expect(settleWaiter({ offer, attempt: 1 }, { outcome: 'cancelled' }, judge, 1499).verdict.kind).toBe(
      'excluded',
    )
    expect(settleWaiter({ offer, attempt: 1 }, { outcome: 'cancelled' }, judge, 1501).verdict).toMatchObject({
      kind: 'bad',
      cause: 'left_late',
    })
  })
})
