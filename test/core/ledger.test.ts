/** The ledger of one replica: its sums are those of the permits in it, and nothing is left when the last has gone. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type InFlight, ReplicaLedger } from '../../src/core/ledger.ts'
import type { Offer } from '../../src/core/request.ts'
import { inFlightOf, reportOf, someOffer } from './core-rig.ts'

function sums(ledger: ReplicaLedger) {
  const { backlogTokens, contextTokens, inFlightSequences, decodingSequences, inFlightRequests } = ledger
  return { backlogTokens, contextTokens, inFlightSequences, decodingSequences, inFlightRequests }
}

describe('the ledger', () => {
  it('moves a permit from prefilling to decoding once', () => {
    const ledger = new ReplicaLedger(reportOf('r1'))
    ledger.dispatch(inFlightOf(1, someOffer({ promptTokens: 100, sequences: 2 }), { uncachedTokens: 40 }))
    expect(sums(ledger)).toEqual({
      backlogTokens: 40,
      contextTokens: 100,
      inFlightSequences: 2,
      decodingSequences: 0,
      inFlightRequests: 1,
    })
    expect(ledger.firstToken(1, 30)).toBe(true)
    expect(ledger.firstToken(1, 40)).toBe(false)
    expect(sums(ledger)).toMatchObject({ backlogTokens: 0, decodingSequences: 2, inFlightSequences: 2 })
    expect(ledger.decoding.get(1)?.firstTokenAtMs).toBe(30)
    expect(ledger.lastFirstTokenAtMs).toBe(30)
  })

  it('counts the sequences whose tokens are told', () => {
    const ledger = new ReplicaLedger(reportOf('r1'))
    const changes: Partial<Offer>[] = [{ sequences: 2 }, { streamed: false }, { sequences: 4 }]
    for (const [id, change] of changes.entries()) ledger.dispatch(inFlightOf(id, someOffer(change)))
    expect(ledger.visibleSequences).toBe(0)
    const last = ledger.prefilling.get(2)
    if (last !== undefined) last.opaque = true
    for (const id of [0, 1, 2]) ledger.firstToken(id, 30)
    expect(ledger.visibleSequences).toBe(2)
    expect(ledger.decodingSequences).toBe(7)
    for (const id of [1, 0, 2]) ledger.release(id)
    expect(ledger.visibleSequences).toBe(0)
  })

  it('knows what was told since a prompt came, but for what was told first, and no more than the last', () => {
    const ledger = new ReplicaLedger(reportOf('r1'))
    const streams = [1, 2].map((id) => inFlightOf(id, someOffer()))
    for (const stream of streams) ledger.dispatch(stream)
    for (const { permitId } of streams) ledger.firstToken(permitId, 1)
    const tell = (nowMs: number) => streams.forEach((stream) => void ledger.progress(stream, 3, nowMs))
    tell(2)
    const prompt = inFlightOf(3, someOffer())
    ledger.dispatch(prompt)
    expect(prompt.tokensAhead).toBe(0)
    expect(ledger.eventsSince(prompt)).toBe(0)
    tell(3)
    expect(ledger.eventsSince(prompt)).toBe(0)
    tell(4)
    tell(5)
    expect(ledger.eventsSince(prompt)).toBe(12)
    for (let nowMs = 6; nowMs < 200; nowMs++) tell(nowMs)
    expect(ledger.eventsSince(prompt)).toBe(64 * 6)
    const behind = inFlightOf(4, someOffer())
    ledger.dispatch(behind)
    expect(behind.tokensAhead).toBe(prompt.uncachedTokens)
    ledger.firstToken(behind.permitId, 200)
    expect(prompt.overtaken).toBe(true)
  })

  it('throws on a second release and changes nothing', () => {
    const ledger = new ReplicaLedger(reportOf('r1'))
    ledger.dispatch(inFlightOf(1, someOffer()))
    ledger.dispatch(inFlightOf(2, someOffer()))
    ledger.release(1)
    const before = sums(ledger)
    const { version } = ledger
    expect(() => ledger.release(1)).toThrow(/permit 1 is not out at r1/)
    expect(sums(ledger)).toEqual(before)
    expect(ledger.version).toBe(version)
  })

  it('is exactly empty when its last permit has gone, whatever the sizes', () => {
    const size = fc.double({ min: 0.1, max: 30_000, noNaN: true })
    const stories = fc.array(
      fc.record({ prompt: size, cached: fc.double({ min: 0, max: 1, noNaN: true }), events: fc.array(size) }),
      { minLength: 1, maxLength: 12 },
    )
    fc.assert(
      fc.property(stories, fc.boolean(), (rows, backwards) => {
        const ledger = new ReplicaLedger(reportOf('r1'))
        const permits: InFlight[] = rows.map(({ prompt, cached }, index) =>
          inFlightOf(index, someOffer({ promptTokens: prompt, sequences: 1 + (index % 3) }), {
            uncachedTokens: prompt * cached,
          }),
        )
        for (const permit of permits) ledger.dispatch(permit)
        rows.forEach(({ events }, index) => {
          const permit = permits[index]
          if (permit === undefined || events.length === 0) return
          ledger.firstToken(index, index)
          for (const count of events) ledger.progress(permit, count, index)
        })
        const expected = permits.reduce(
          (sum, { offer, contentEvents }) => sum + offer.promptTokens + contentEvents,
          0,
        )
        expect(ledger.contextTokens / expected).toBeCloseTo(1, 9)
        for (const { permitId } of backwards ? permits.toReversed() : permits) ledger.release(permitId)
        expect(sums(ledger)).toEqual({
          backlogTokens: 0,
          contextTokens: 0,
          inFlightSequences: 0,
          decodingSequences: 0,
          inFlightRequests: 0,
        })
      }),
    )
  })
})
