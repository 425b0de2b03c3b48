/** Trust: it is earned step by step, lost at once, wears out, and what is not trusted calls nothing a sure miss. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TrustState } from '../../src/core/scheduler.ts'
import { isProbe } from '../../src/estimate/probe.ts'
import { compare, said, trackRecord } from '../../src/estimate/track-record.ts'
import {
  COLD,
  leastTrusted,
  nextTrust,
  sureMissRatio,
  type Trust,
  type TrustEvidence,
  wornTrust,
} from '../../src/estimate/trust.ts'
import { offerOf, sloOf } from '../slo/facts.ts'

const GOOD: TrustEvidence = {
  prefillWindows: 30,
  comparisons: 60,
  absLogError: 0.1,
  coverageRatio: 0.8,
  missesTested: 0,
  falseAlarmRatio: 0,
}
const RANK: Record<TrustState, number> = { fallback: 0, cautious: 1, trusted: 2 }
const TRUSTED: Trust = { state: 'trusted', neededComparisons: 8 }

/** The state after that evidence, so often. */
function trustAfter(trust: Trust, evidence: Partial<TrustEvidence>, times = 1): Trust {
  let now = trust
  for (let i = 0; i < times; i++) now = nextTrust(now, { ...GOOD, ...evidence })
  return now
}

const anyEvidence: fc.Arbitrary<TrustEvidence> = fc.record({
  prefillWindows: fc.nat(10),
  comparisons: fc.nat(300),
  absLogError: fc.double({ min: 0, max: 2, noNaN: true }),
  coverageRatio: fc.double({ min: 0, max: 1, noNaN: true }),
  missesTested: fc.nat(30),
  falseAlarmRatio: fc.double({ min: 0, max: 1, noNaN: true }),
})
const anyTrust: fc.Arbitrary<Trust> = fc.record({
  state: fc.constantFrom<TrustState>('trusted', 'cautious', 'fallback'),
  neededComparisons: fc.constantFrom(8, 200),
})

describe('trust', () => {
  it('is earned: nothing, then a little, then all', () => {
    expect(trustAfter(COLD, { comparisons: 7 }).state).toBe('fallback')
    expect(trustAfter(COLD, { comparisons: 8, prefillWindows: 3 }).state).toBe('fallback')
    const cautious = trustAfter(COLD, { comparisons: 8 })
    expect(cautious.state).toBe('cautious')
    expect(trustAfter(cautious, { comparisons: 49 }).state).toBe('cautious')
    expect(trustAfter(cautious, { comparisons: 50 }).state).toBe('trusted')
  })

  it.each<[string, Partial<TrustEvidence>]>([
    ['an error of more than a factor of two', { absLogError: 0.75 }],
    ['bounds that do not hold', { coverageRatio: 0.45 }],
    ['sure misses that came in time', { missesTested: 10, falseAlarmRatio: 0.25 }],
  ])('is lost at once by %s, and then needs 200 good comparisons', (_, evidence) => {
    const lost = trustAfter(TRUSTED, evidence)
    expect(lost.state).toBe('fallback')
    expect(trustAfter(lost, { comparisons: 199 }, 3).state).toBe('fallback')
    expect(trustAfter(lost, { comparisons: 200 }).state).toBe('cautious')
  })

  it('is not held back by a bad start: what was never trusted has not failed', () => {
    const bad = trustAfter(COLD, { comparisons: 8, absLogError: 1.5 }, 5)
    expect(trustAfter(bad, { comparisons: 13 }).state).toBe('cautious')
  })

  it('starts over when the evidence does: a changed engine is a new one', () => {
    expect(trustAfter(TRUSTED, { comparisons: 0 })).toEqual(COLD)
  })

  it('is not flapping: what earns it and what loses it lie apart', () => {
    for (const evidence of [{ absLogError: 0.42 }, { coverageRatio: 0.65 }]) {
      expect(trustAfter(TRUSTED, evidence).state).toBe('trusted')
      expect(trustAfter({ ...TRUSTED, state: 'cautious' }, evidence).state).toBe('cautious')
    }
    expect(trustAfter(TRUSTED, { absLogError: 0.55 }).state).toBe('cautious')
  })

  it('never rises by two, and never higher on worse evidence', () => {
    fc.assert(
      fc.property(anyTrust, anyEvidence, anyEvidence, (trust, one, other) => {
        const next = nextTrust(trust, one)
        expect(RANK[next.state]).toBeLessThanOrEqual(RANK[trust.state] + 1)
        const worse: TrustEvidence = {
          prefillWindows: Math.min(one.prefillWindows, other.prefillWindows),
          comparisons: Math.min(one.comparisons, other.comparisons),
          absLogError: Math.max(one.absLogError, other.absLogError),
          coverageRatio: Math.min(one.coverageRatio, other.coverageRatio),
          missesTested: Math.max(one.missesTested, other.missesTested),
          falseAlarmRatio: Math.max(one.falseAlarmRatio, other.falseAlarmRatio),
        }
        // Fewer comparisons can also mean that a bad share is not yet believed, so these stay as many.
        const judged = nextTrust(trust, { ...worse, comparisons: one.comparisons })
        expect(RANK[judged.state]).toBeLessThanOrEqual(RANK[next.state])
      }),
    )
  })

  it('wears out without comparisons', () => {
    expect(wornTrust(TRUSTED, 60_000)).toBe('trusted')
    expect(wornTrust(TRUSTED, 61_000)).toBe('cautious')
    expect(wornTrust({ ...TRUSTED, state: 'cautious' }, 61_000)).toBe('cautious')
    expect(wornTrust(TRUSTED, 601_000)).toBe('fallback')
    expect(wornTrust(COLD, Number.POSITIVE_INFINITY)).toBe('fallback')
  })

  it('of several is that of the least trusted', () => {
    expect(leastTrusted(['trusted', 'cautious', 'trusted'])).toBe('cautious')
    expect(leastTrusted(['trusted', 'fallback', 'cautious'])).toBe('fallback')
    expect(leastTrusted(['trusted'])).toBe('trusted')
  })

  it('asks for a wider margin the less there is of it, and calls nothing a miss without it', () => {
    expect(sureMissRatio('trusted')).toBeGreaterThan(1)
    expect(sureMissRatio('cautious')).toBeGreaterThan(sureMissRatio('trusted'))
    expect(sureMissRatio('fallback')).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('the track record', () => {
  const offer = offerOf(sloOf({ ttftMs: 500 }), { receivedAtMs: 1000 })

  it('counts errors, bounds that held, and sure misses that came in time', () => {
    const record = trackRecord()
    compare(record, said(offer, 100, 130, 1000), 100 * Math.E)
    expect(record).toMatchObject({ comparisons: 1, coverageRatio: 0, missesTested: 0 })
    expect(record.absLogError).toBeCloseTo(1, 9)
    compare(record, said(offer, 100, 130, 1000), 120)
    expect(record.coverageRatio).toBeCloseTo(0.5, 9)
    // 900 ms were predicted and 500 ms promised: once it took 400, once 800.
    compare(record, said(offer, 900, 1200, 1000), 400)
    expect(record).toMatchObject({ missesTested: 1, falseAlarmRatio: 1 })
    compare(record, said(offer, 900, 1200, 1000), 800)
    expect(record).toMatchObject({ missesTested: 2, falseAlarmRatio: 0.5 })
  })

  it('tests no prediction by what was late already, was near the deadline, or promises nothing', () => {
    expect(said(offer, 900, 1200, 1501).missedAfterMs).toBeUndefined()
    expect(said(offer, 600, 900, 1000).missedAfterMs).toBeUndefined()
    expect(said(offerOf(sloOf({})), 1e6, 1e6, 0).missedAfterMs).toBeUndefined()
    expect(said(offer, 900, 1200, 1000).missedAfterMs).toBe(500)
  })
})

describe('probes', () => {
  it('are about one request in 64, the same ones at every look', () => {
    const ids = Array.from({ length: 20_000 }, (_, i) => `req-${i}`)
    const probes = ids.filter(isProbe)
    expect(probes.length).toBeGreaterThan(20_000 / 64 / 1.3)
    expect(probes.length).toBeLessThan((20_000 / 64) * 1.3)
    expect(ids.filter(isProbe)).toEqual(probes)
  })
})
