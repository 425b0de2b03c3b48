/** The workload generator: seeded, at the rates and lengths asked for, and free of engines. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rateSegments } from '../../src/sim/arrivals.ts'
import { EventQueue } from '../../src/sim/event-queue.ts'
import { drawTokens, meanTokensOf } from '../../src/sim/lengths.ts'
import { mapToRates, type RateSegment, segmentsMs, steadyRate } from '../../src/sim/rates.ts'
import { Rng } from '../../src/sim/rng.ts'
import {
  generateWorkload,
  meanLengths,
  type StreamOptions,
  type WorkloadOptions,
  workloadStream,
} from '../../src/sim/workload.ts'
import type { UnsentRequest } from '../../src/sim/workload-types.ts'
import { NAMED_WORKLOADS, namedWorkload, WORKLOADS } from '../../src/sim/workloads.ts'

function generate(options: Partial<WorkloadOptions> = {}) {
  return [...generateWorkload({ seed: 7, segments: steadyRate(100, 100_000), ...options })]
}

function cv(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length) / mean
}

describe('workload', () => {
  it('is the same for the same seed and another for another', () => {
    expect(generate()).toEqual(generate())
    expect(generate({ seed: 8 })).not.toEqual(generate())
  })

  it('sends the same requests at another rate, only sooner', () => {
    const slow = generate({ segments: steadyRate(50, 20_000) })
    const fast = generate({ segments: steadyRate(100, 20_000) })
    for (const [at, request] of slow.entries()) {
      const { atMs, ...rest } = fast[at]!
      expect({ ...request, atMs }).toEqual({ ...rest, atMs })
      expect(request.atMs).toBeCloseTo(atMs * 2, 5)
    }
  })

  it('has the mix and the mean lengths it promises', () => {
    const requests = generate()
    expect(requests.length / 10_000).toBeCloseTo(1, 1)
    for (const entry of WORKLOADS) {
      const own = requests.filter((request) => request.className === entry.name)
      expect(own.length / requests.length).toBeCloseTo(entry.share, 1)
      const meanPrompt = own.reduce((sum, request) => sum + request.promptTokens, 0) / own.length
      expect(meanPrompt / meanTokensOf(entry.prompt), entry.name).toBeGreaterThan(0.85)
      expect(meanPrompt / meanTokensOf(entry.prompt), entry.name).toBeLessThan(1.15)
      expect(own.every((request) => request.outputTokens <= (request.maxTokens ?? 0))).toBe(true)
    }
    expect(meanLengths().prompt).toBeCloseTo(1385, 0)
  })

  it('scales lengths down and keeps prefixes within prompts', () => {
    const small = generate({ lengthRatio: 0.1 })
    const mean = small.reduce((sum, request) => sum + request.promptTokens, 0) / small.length
    expect(mean).toBeGreaterThan(100)
    expect(mean).toBeLessThan(180)
    for (const request of small) {
      expect(request.promptTokens).toBeGreaterThanOrEqual(1)
      expect(request.outputTokens).toBeGreaterThanOrEqual(1)
      expect(request.shared?.tokens ?? 0).toBeLessThanOrEqual(request.promptTokens)
    }
  })

  it('is Poisson or bursty as asked', () => {
    const gaps = (gapCv: number) => {
      const instants = generate({ gapCv }).map((request) => request.atMs)
      return instants.slice(1).map((atMs, at) => atMs - instants[at]!)
    }
    expect(cv(gaps(1))).toBeGreaterThan(0.95)
    expect(cv(gaps(1))).toBeLessThan(1.05)
    expect(cv(gaps(3))).toBeGreaterThan(2.6)
  })

  it('names options that make no sense', () => {
    expect(() => generate({ classes: [] })).toThrow(/at least one class/)
    expect(() => generate({ gapCv: 0 })).toThrow(/gapCv must be above 0/)
    expect(() => generate({ lengthRatio: -1 })).toThrow(/lengthRatio must be above 0/)
    expect(() => generate({ segments: steadyRate(-1, 10) })).toThrow(/rate segments/)
  })
})

const segments = fc.array(
  fc.record({
    durationMs: fc.integer({ min: 0, max: 20_000 }),
    fromPerSec: fc.integer({ min: 0, max: 50 }),
    toPerSec: fc.integer({ min: 0, max: 50 }),
  }),
  { maxLength: 5 },
)

function expectedBy(plan: readonly RateSegment[], atMs: number): number {
  let count = 0
  let startMs = 0
  for (const { durationMs, fromPerSec, toPerSec = fromPerSec } of plan) {
    const insideMs = Math.min(Math.max(atMs - startMs, 0), durationMs)
    const rateAt =
      durationMs === 0 ? fromPerSec : fromPerSec + ((toPerSec - fromPerSec) * insideMs) / durationMs
    count += (((fromPerSec + rateAt) / 2) * insideMs) / 1000
    startMs += durationMs
  }
  return count
}

describe('named workloads', () => {
  const stream = (name: string, more: Partial<StreamOptions> = {}) => [
    ...workloadStream({
      workload: namedWorkload(name),
      seed: 4,
      ratePerSec: 50,
      durationMs: 200_000,
      ...more,
    }),
  ]

  it('come at the mean rate asked for', () => {
    for (const name of [...NAMED_WORKLOADS.keys()].filter((each) => each !== 'sessions')) {
      const sent = stream(name).length
      expect(sent / 200, name).toBeGreaterThan(44)
      expect(sent / 200, name).toBeLessThan(56)
    }
  })

  it('keep the quantiles that they name', () => {
    const outputs = stream('long-answers')
      .map((request) => request.outputTokens)
      .sort((a, b) => a - b)
    expect(outputs[Math.floor(outputs.length * 0.5)]! / 535).toBeCloseTo(1, 1)
    expect(outputs[Math.floor(outputs.length * 0.9)]! / 1478).toBeCloseTo(1, 1)
  })

  it('shift where they say, each phase at its own rate', () => {
    const phases = [
      { classes: [WORKLOADS[0]!], rateRatio: 3 },
      { classes: [WORKLOADS[1]!], timeShare: 3 },
    ]
    const requests = stream('mixed', { workload: { name: 'two', phases } })
    const first = requests.filter(({ atMs }) => atMs < 50_000)
    expect(new Set(first.map(({ className }) => className))).toEqual(new Set(['chat']))
    expect(new Set(requests.slice(first.length).map(({ className }) => className))).toEqual(
      new Set(['voice']),
    )
    expect(first.length / requests.length).toBeCloseTo(0.5, 1)
    expect(requests.length / 10_000).toBeCloseTo(1, 1)
  })

  it('grow a conversation out of what was said', () => {
    for (const opening of stream('sessions')) {
      let before = opening
      for (const turn of turnsOf(opening).slice(1)) {
        expect(turn.promptTokens).toBeGreaterThan(before.promptTokens + before.outputTokens)
        expect(turn.promptTokens).toBeLessThanOrEqual(16_384)
        expect(turn.text).toBe(opening.text)
        before = { ...turn, atMs: 0 }
      }
    }
  })

  it('have sessions under way from the first second on', () => {
    // Whoever answers at once sees the rate asked for, early and late.
    const instants = stream('sessions').flatMap((opening) => {
      let atMs = opening.atMs
      return turnsOf(opening).map((turn) => {
        const sentAtMs = atMs
        atMs += turn.next?.thinkMs ?? 0
        return sentAtMs
      })
    })
    const perSec = (fromMs: number, toMs: number) =>
      (instants.filter((atMs) => atMs >= fromMs && atMs < toMs).length * 1000) / (toMs - fromMs)
    for (const fromMs of [0, 50_000, 150_000]) {
      expect(perSec(fromMs, fromMs + 50_000), `from ${fromMs}`).toBeGreaterThan(40)
      expect(perSec(fromMs, fromMs + 50_000), `from ${fromMs}`).toBeLessThan(60)
    }
  })

  it('say which names there are', () => {
    expect(() => namedWorkload('chta')).toThrow(/unknown workload "chta"; there are: mixed, short-chat/)
  })
})

function turnsOf(opening: UnsentRequest): UnsentRequest[] {
  const turns: UnsentRequest[] = []
  for (let turn: UnsentRequest | undefined = opening; turn !== undefined; turn = turn.next?.request) {
    turns.push(turn)
  }
  return turns
}

describe('rhythms', () => {
  const rhythms = fc.oneof(
    fc.record({
      kind: fc.constant('onOff' as const),
      onMs: fc.integer({ min: 100, max: 5000 }),
      offMs: fc.integer({ min: 5000, max: 20_000 }),
      onRatio: fc.double({ min: 0, max: 2, noNaN: true }),
    }),
    fc.record({
      kind: fc.constant('diurnal' as const),
      periodMs: fc.integer({ min: 1000, max: 60_000 }),
      swingRatio: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  )
  const expected = (plan: readonly RateSegment[]) => expectedBy(plan, segmentsMs(plan))

  it('keep the mean rate over whole periods, wherever the stream is cut', () => {
    fc.assert(
      fc.property(rhythms, fc.double({ min: 0, max: 1, noNaN: true }), (rhythm, share) => {
        const periodMs = rhythm.kind === 'onOff' ? rhythm.onMs + rhythm.offMs : rhythm.periodMs
        const [cutMs, endMs] = [share * 3 * periodMs, 3 * periodMs]
        const cut = [...rateSegments(rhythm, 40, 0, cutMs), ...rateSegments(rhythm, 40, cutMs, endMs)]
        expect(segmentsMs(cut)).toBeCloseTo(endMs, 3)
        expect(expected(cut)).toBeCloseTo((40 * endMs) / 1000, 6)
        expect(cut.every(({ fromPerSec }) => fromPerSec >= 0)).toBe(true)
      }),
    )
  })

  it('burst when they say, and start a day at its lowest', () => {
    const bursts = rateSegments({ kind: 'onOff', onMs: 5000, offMs: 15_000, onRatio: 2.5 }, 10, 0, 20_000)
    expect(bursts.map(({ durationMs, fromPerSec }) => [durationMs, fromPerSec])).toEqual([
      [15_000, 5],
      [5000, 25],
    ])
    const day = rateSegments({ kind: 'diurnal', periodMs: 24_000, swingRatio: 0.5 }, 10, 0, 24_000)
    expect(day[0]?.fromPerSec).toBeCloseTo(5, 9)
    expect(day[12]?.fromPerSec).toBeCloseTo(15, 9)
  })

  it('name numbers that contradict each other', () => {
    expect(() => rateSegments({ kind: 'onOff', onMs: 10, offMs: 10, onRatio: 3 }, 1, 0, 1)).toThrow(
      /less than nothing between them/,
    )
    expect(() => rateSegments({ kind: 'diurnal', periodMs: 10, swingRatio: 2 }, 1, 0, 1)).toThrow(
      /swing of 0 to 1/,
    )
  })
})

describe('lengths', () => {
  it('go through the quantiles given, with the mean they claim', () => {
    const law = {
      kind: 'quantiles',
      points: [
        [0, 10],
        [0.5, 100],
        [0.9, 100],
        [1, 1000],
      ],
    } as const
    const rng = new Rng(5)
    const drawn = Array.from({ length: 40_000 }, () => drawTokens(law, rng)).sort((a, b) => a - b)
    expect(drawn[0]).toBeGreaterThanOrEqual(10)
    expect(drawn[20_000]! / 100).toBeCloseTo(1, 1)
    expect(drawn[39_999]).toBeLessThanOrEqual(1000)
    const mean = drawn.reduce((sum, tokens) => sum + tokens, 0) / drawn.length
    expect(mean / meanTokensOf(law)).toBeCloseTo(1, 1)
    expect(meanTokensOf({ kind: 'fixed', tokens: 7 })).toBe(7)
  })
})

describe('rates', () => {
  it('put the n-th arrival where n are expected', () => {
    fc.assert(
      fc.property(segments, (plan) => {
        const instants = [...mapToRates(plan, () => 1)]
        const total = expectedBy(plan, segmentsMs(plan))
        expect(Math.abs(instants.length - Math.floor(total + 1e-6))).toBeLessThanOrEqual(1)
        for (const [at, atMs] of instants.entries()) expect(expectedBy(plan, atMs)).toBeCloseTo(at + 1, 4)
      }),
    )
  })
})

describe('random numbers', () => {
  it('have the moments they should', () => {
    const rng = new Rng(3)
    const mean = (draw: () => number) => {
      let sum = 0
      for (let at = 0; at < 20_000; at++) sum += draw()
      return sum / 20_000
    }
    expect(mean(() => rng.uniform())).toBeCloseTo(0.5, 1)
    expect(mean(() => rng.exponential(4))).toBeCloseTo(4, 0)
    expect(mean(() => rng.logNormal(10, 0.8)) / 10).toBeCloseTo(1, 1)
    expect(mean(() => rng.gamma(0.25, 4))).toBeCloseTo(1, 1)
    expect(mean(() => rng.normal() ** 2)).toBeCloseTo(1, 1)
  })

  it('fork into streams of their own', () => {
    const root = new Rng(1)
    expect(root.fork('a').uniform()).toBe(new Rng(1).fork('a').uniform())
    expect(root.fork('a').uniform()).not.toBe(root.fork('b').uniform())
  })
})

describe('event queue', () => {
  it('gives items in order of time, and of arrival among equals', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 20 })), (instants) => {
        const queue = new EventQueue<number>()
        for (const [at, atMs] of instants.entries()) queue.push(atMs, at)
        const out: number[] = []
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) out.push(next.item)
        const expected = instants
          .map((atMs, at) => [atMs, at] as const)
          .sort((a, b) => a[0] - b[0] || a[1] - b[1])
        expect(out).toEqual(expected.map(([, at]) => at))
      }),
    )
  })
})
