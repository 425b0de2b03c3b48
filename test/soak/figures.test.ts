/** A soak tells a leak from noise, and says when it can't. */
import { describe, expect, it } from 'vitest'
import { Rng } from '../../src/sim/rng.ts'
import { conclusionOf, type Sample, verdictsOf } from './figures.ts'

/** Samples of a run whose heap rises by that much per request, under noise of that deviation. */
function samples(risePerRequest: number, noiseBytes: number, requests = 1_000_000): Sample[] {
  const rng = new Rng(3)
  return Array.from({ length: 40 }, (_, at) => {
    const done = (requests * (at + 1)) / 40
    const heapBytes = 3e7 + risePerRequest * done + noiseBytes * rng.normal()
    const process = { processes: 1, cpuSec: 1, rssBytes: 2e8, externalBytes: 5e6 }
    const counts = { handles: { Timeout: 3 }, listeners: 90, timers: 9, mapEntries: 400, setEntries: 20 }
    return {
      requests: done,
      holdings: { ...process, ...counts, heapBytes },
    }
  })
}

const heap = (all: readonly Sample[]) => verdictsOf(all).find(({ name }) => name === 'heap')?.verdict

describe('a soak', () => {
  it('finds what one request in thirty leaves, and nothing in noise', () => {
    expect(heap(samples(64 / 25, 200_000))).toBe('leak')
    expect(heap(samples(0, 200_000))).toBe('flat')
    expect(verdictsOf(samples(0, 200_000)).map(({ verdict }) => verdict)).not.toContain('leak')
  })

  it('says that it can’t tell when it was too short', () => {
    expect(heap(samples(0, 200_000, 10_000))).toBe('unsure')
  })

  it('ends well only when every figure is flat', () => {
    const flat = { name: 'heap', verdict: 'flat' } as const
    const unsure = { name: 'resident', verdict: 'unsure' } as const
    const leak = { name: 'timers', verdict: 'leak' } as const
    expect(conclusionOf([flat, flat])).toEqual({ line: 'nothing leaks', exitCode: 0 })
    expect(conclusionOf([flat, unsure])).toEqual({
      line: expect.stringMatching(/^too short to tell .*: resident;/),
      exitCode: 2,
    })
    expect(conclusionOf([unsure, leak])).toEqual({ line: 'leaks: timers', exitCode: 1 })
  })

  it('finds one timer left by each thousandth request', () => {
    const leaking = samples(0, 0).map(({ requests, holdings }) => ({
      requests,
      holdings: { ...holdings, timers: 9 + requests / 500 },
    }))
    expect(verdictsOf(leaking).find(({ name }) => name === 'timers')?.verdict).toBe('leak')
  })
})
