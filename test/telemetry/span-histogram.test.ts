/** Our histogram against prom-client's own: the same page from the same observations. */
import fc from 'fast-check'
import { Histogram, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { SpanHistogram } from '../../src/telemetry/span-histogram.ts'

const BOUNDS = [0.1, 0.25, 1, 10]
const NAMES = { name: 'spans_seconds', help: 'How long?', labelNames: ['model', 'class'] }
const anyObservation = fc.record({
  model: fc.constantFrom('a', 'b"\\\n'),
  class: fc.constantFrom('chat', 'batch'),
  value: fc.oneof(fc.constantFrom(0, ...BOUNDS, 11), fc.double({ min: 0, max: 20, noNaN: true })),
})

describe('SpanHistogram', () => {
  it("prints what prom-client's histogram prints", async () => {
    const pages = fc.asyncProperty(fc.array(anyObservation, { maxLength: 30 }), async (observations) => {
      const registries = [new Registry(), new Registry()] as const
      const ours = new SpanHistogram({ ...NAMES, bounds: BOUNDS }, registries[0])
      const theirs = new Histogram({ ...NAMES, buckets: BOUNDS, registers: [registries[1]] })
      ours.labels({ model: 'a', class: 'chat' })
      theirs.zero({ model: 'a', class: 'chat' })
      for (const { value, ...labels } of observations) {
        ours.labels(labels).observe(value)
        theirs.labels(labels).observe(value)
      }
      expect(await registries[0].metrics()).toBe(await registries[1].metrics())
    })
    await fc.assert(pages, { numRuns: 50 })
  })

  it('stands at 0 from the start without labels, and has no series after a reset', async () => {
    const registry = new Registry()
    const histogram = new SpanHistogram({ ...NAMES, labelNames: [], bounds: BOUNDS }, registry)
    expect(await registry.metrics()).toContain('\nspans_seconds_count 0\n')
    histogram.reset()
    expect(await registry.metrics()).not.toContain('spans_seconds_count')
  })

  it('gives one object for one series, however often it is asked', () => {
    const histogram = new SpanHistogram({ ...NAMES, bounds: BOUNDS }, new Registry())
    const span = histogram.labels({ model: 'a', class: 'chat' })
    expect(histogram.labels({ class: 'chat', model: 'a' })).toBe(span)
    expect(histogram.labels({ model: 'b', class: 'chat' })).not.toBe(span)
  })

  it('refuses what is no finite number', () => {
    const histogram = new SpanHistogram({ ...NAMES, bounds: BOUNDS }, new Registry())
    const span = histogram.labels({ model: 'a', class: 'chat' })
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => span.observe(value)).toThrow(RangeError)
    }
  })
})
