/** What one replica carries: laws that hold for any model, and cases that can be worked out by hand. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OfferedStream } from '../../src/core/demand.ts'
import type { SloClass } from '../../src/core/request.ts'
import { carriedShare, type ReplicaRoom } from '../../src/estimate/replica-capacity.ts'
import { stepModel } from '../../src/estimate/step-model.ts'
import { sloOf } from '../slo/facts.ts'

const ENDLESS = Number.POSITIVE_INFINITY
const ROOM: ReplicaRoom = { slots: ENDLESS, kvCapacityTokens: ENDLESS, chunkTokens: 2048 }
const MODEL = stepModel({
  baseMs: 10,
  perSequenceMs: 0.1,
  perContextTokenMs: 0,
  perChunkMs: 0,
  perPrefillTokenMs: 0.1,
  perPairMs: 0,
  requestOverheadMs: 5,
  uncertaintyRatio: 0.1,
})

function stream(targets: Partial<SloClass>, change: Partial<OfferedStream> = {}): OfferedStream {
  const slo = sloOf({ objectiveRatio: 0.99, ...targets })
  return {
    slo,
    requestsPerSec: 1,
    promptTokens: 200,
    uncachedTokens: 200,
    outputTokens: 100,
    sequences: 1,
    ...change,
  }
}

describe('carriedShare', () => {
  it('follows the pace: T = d / (1 - p - r*L*a) within 95 % of the target', () => {
    // With T = 0.95 * 20 = 19 ms: 1 - 10/19 = r * (20 ms of prefill + 100 tokens * 0.1 ms).
    expect(carriedShare(MODEL, [stream({ tpotMs: 20 })], ROOM)).toBeCloseTo(((1 - 10 / 19) / 30) * 1000, 3)
  })

  it('is bound by the engine alone without targets', () => {
    expect(carriedShare(MODEL, [stream({})], ROOM)).toBeCloseTo(1000 / 30, 3)
  })

  it('is bound by slots and by KV cache', () => {
    const free = carriedShare(MODEL, [stream({ tpotMs: 20 })], ROOM)
    expect(carriedShare(MODEL, [stream({ tpotMs: 20 })], { ...ROOM, slots: 8 })).toBeLessThan(free)
    expect(carriedShare(MODEL, [stream({ tpotMs: 20 })], { ...ROOM, kvCapacityTokens: 2000 })).toBeLessThan(
      free,
    )
  })

  it('is nothing for a promise that an idle engine can not keep, and no limit for no demand', () => {
    expect(carriedShare(MODEL, [stream({ ttftMs: 20 })], ROOM)).toBeLessThan(1e-6)
    expect(carriedShare(MODEL, [], ROOM)).toBe(ENDLESS)
    expect(carriedShare(MODEL, [stream({ tpotMs: 20 }, { requestsPerSec: 0 })], ROOM)).toBe(ENDLESS)
  })

  it('leaves out a promise to a hundredth of the demand and keeps one to more', () => {
    const impossible = (requestsPerSec: number) => stream({ name: 'x', ttftMs: 1 }, { requestsPerSec })
    expect(carriedShare(MODEL, [stream({ tpotMs: 20 }), impossible(0.001)], ROOM)).toBeGreaterThan(1)
    expect(carriedShare(MODEL, [stream({ tpotMs: 20 }), impossible(0.1)], ROOM)).toBeLessThan(1e-6)
  })

  const anyStream = fc
    .record({
      ttftMs: fc.option(fc.integer({ min: 50, max: 3000 }), { nil: undefined }),
      tpotMs: fc.option(fc.integer({ min: 15, max: 200 }), { nil: undefined }),
      requestsPerSec: fc.double({ min: 0.1, max: 50, noNaN: true }),
      uncachedTokens: fc.integer({ min: 1, max: 8000 }),
      outputTokens: fc.integer({ min: 1, max: 1000 }),
    })
    .map(({ ttftMs, tpotMs, ...sizes }) =>
      stream(
        { ...(ttftMs === undefined ? {} : { ttftMs }), ...(tpotMs === undefined ? {} : { tpotMs }) },
        { ...sizes, promptTokens: sizes.uncachedTokens },
      ),
    )
  const anyDemand = fc.array(anyStream, { minLength: 1, maxLength: 4 })

  it('halves when the demand doubles', () => {
    fc.assert(
      fc.property(anyDemand, (demand) => {
        const doubled = demand.map((each) => ({ ...each, requestsPerSec: 2 * each.requestsPerSec }))
        const [once, twice] = [carriedShare(MODEL, demand, ROOM), carriedShare(MODEL, doubled, ROOM)]
        expect(Math.abs(once - 2 * twice)).toBeLessThanOrEqual(1e-6 * Math.max(1, once))
      }),
      { numRuns: 50 },
    )
  })

  it('never grows with a tighter target or a longer answer', () => {
    fc.assert(
      fc.property(anyDemand, fc.double({ min: 0.3, max: 1, noNaN: true }), (demand, tighter) => {
        const loose = carriedShare(MODEL, demand, ROOM)
        const tight = demand.map((each) => ({ ...each, slo: tightened(each.slo, tighter) }))
        const long = demand.map((each) => ({ ...each, outputTokens: each.outputTokens / tighter }))
        expect(carriedShare(MODEL, tight, ROOM)).toBeLessThanOrEqual(loose + 1e-9)
        expect(carriedShare(MODEL, long, ROOM)).toBeLessThanOrEqual(loose + 1e-9)
      }),
      { numRuns: 50 },
    )
  })
})

function tightened(slo: SloClass, ratio: number): SloClass {
  return {
    ...slo,
    ...(slo.ttftMs === undefined ? {} : { ttftMs: slo.ttftMs * ratio }),
    ...(slo.tpotMs === undefined ? {} : { tpotMs: slo.tpotMs * ratio }),
  }
}
