/** How requests ended, step by step. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KEPT_STEPS, type RangeName, TIMELINE_RANGES, Timeline } from '../../src/telemetry/timeline.ts'
import { catalog, good, shed } from './rig.ts'

const key = { model: 'm', class: 'chat', product: 'p' }
const sumOf = (counts: Float64Array) => counts.reduce((sum, count) => sum + count, 0)

describe('a timeline', () => {
  it('counts a request in the step that it ended in, once that step is over', () => {
    const timeline = new Timeline(0)
    timeline.settled(key, good(), undefined, 12_000)
    timeline.settled(key, shed(), undefined, 12_001)
    expect(sumOf(timeline.history('15m', 14_999).series[0]?.counts.good ?? new Float64Array())).toBe(0)
    const { series, endAtMs, watchedSteps } = timeline.history('15m', 15_000)
    expect([endAtMs, watchedSteps]).toEqual([15_000, 3])
    expect(series[0]?.counts.good.at(-1)).toBe(1)
    expect(series[0]?.counts.shed.at(-1)).toBe(1)
    expect(series[0]?.counts.missed.at(-1)).toBe(0)
    expect(timeline.history('15m', 22_000).series[0]?.counts.good.at(-2)).toBe(1)
  })

  it('keeps every ended request of a range, whichever it is, and forgets older ones', () => {
    const range = fc.constantFrom<RangeName>(...TIMELINE_RANGES.map(({ name }) => name))
    const atMs = fc.integer({ min: 0, max: 30_000_000 })
    fc.assert(
      fc.property(range, fc.array(atMs, { maxLength: 50 }), (name, instants) => {
        const timeline = new Timeline(0)
        const sorted = instants.toSorted((a, b) => a - b)
        for (const endedAtMs of sorted) timeline.settled(key, good(), undefined, endedAtMs)
        const nowMs = 31_000_000
        const {
          endAtMs,
          range: { stepMs },
          series,
        } = timeline.history(name, nowMs)
        const kept = sorted.filter((at) => at < endAtMs && at >= endAtMs - KEPT_STEPS * stepMs)
        expect(sumOf(series[0]?.counts.good ?? new Float64Array())).toBe(kept.length)
      }),
    )
  })

  it('counts what a shadow would have done, and whether a refusal would have been a pity', () => {
    const timeline = new Timeline(0)
    const refuse = { kind: 'shed', reason: 'slo_unreachable' } as const
    timeline.settled(key, good(), refuse, 1)
    timeline.settled(key, good(), { kind: 'wait', untilAtMs: 5 }, 1)
    timeline.settled(key, good(), { kind: 'admit', replicaId: 'r1', permitId: 0 }, 1)
    const counts = timeline.history('15m', 5000).series[0]?.counts
    const last = Object.fromEntries(
      Object.entries(counts ?? {}).map(([field, steps]) => [field, steps.at(-1)]),
    )
    expect(last).toEqual({
      good: 3,
      missed: 0,
      shed: 0,
      wouldAdmit: 1,
      wouldWait: 1,
      wouldShed: 1,
      wouldServeGood: 2,
      wouldServeBad: 0,
      wouldShedGood: 1,
      wouldShedBad: 0,
    })
  })

  it('forgets series whose names leave the configuration', () => {
    const timeline = new Timeline(0)
    timeline.settled(key, good(), undefined, 1)
    timeline.configure(catalog)
    expect(timeline.history('1h', 1).series).toHaveLength(1)
    timeline.configure({ ...catalog, classes: ['agent'] })
    expect(timeline.history('1h', 1).series).toEqual([])
  })
})
