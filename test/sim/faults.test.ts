/** Faults of a virtual run: each does what it says, from when to when it says. */
import { describe, expect, it } from 'vitest'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { createLeastOutstanding } from '../../src/policies/plain/least-outstanding.ts'
import { createRoundRobin } from '../../src/policies/plain/round-robin.ts'
import { biasedPrior, type Fault } from '../../src/sim/faults.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { simulate } from '../../src/sim/run.ts'
import type { SimOptions } from '../../src/sim/run-types.ts'
import { generateWorkload } from '../../src/sim/workload.ts'

const SLOW = { profile: profile('demo/slow') }

function run(faults: readonly Fault[], options: Partial<SimOptions> = {}) {
  return simulate({
    replicas: [{ engine: SLOW }, { engine: SLOW }],
    requests: generateWorkload({ seed: 3, lengthRatio: 0.25, segments: steadyRate(6, 20_000) }),
    createScheduler: createRoundRobin,
    faults,
    ...options,
  })
}

/** Requests far apart, so that nothing but the engine decides their times. */
const LONE = Array.from({ length: 20 }, (_, at) => ({
  id: `a${at}`,
  atMs: at * 1000,
  className: 'chat',
  promptTokens: 100,
  outputTokens: 5,
  maxTokens: 10,
}))

/** The gauges that the scheduler sees of the first replica: what they say, of when, and when they were seen. */
function gaugesSeen(faults: readonly Fault[]) {
  const seen: { seenAtMs: number; runningRequests: number; nowMs: number }[] = []
  run(faults, {
    createScheduler: () => {
      const bare = createRoundRobin()
      return {
        ...bare,
        plan: (state, nowMs) => {
          const gauges = state.replicas.get('r0')?.report.gauges
          if (gauges !== undefined) seen.push({ ...gauges, nowMs })
          return bare.plan(state, nowMs)
        },
      }
    },
  })
  return seen
}

describe('a slow replica', () => {
  it('takes as many times as long, then is itself again', () => {
    const fault = { kind: 'slow', replicaIndex: 0, speedRatio: 0.5, fromMs: 5000, toMs: 15_000 } as const
    const ttfts = run([fault], { requests: LONE })
      .outcomes.map(({ settlement }) => settlement)
      .filter(({ replicaId }) => replicaId === 'r0')
      .map(({ offer, ttftMs = 0 }) => [offer.receivedAtMs, ttftMs - SLOW.profile.requestOverheadMs] as const)
    expect(ttfts.length).toBeGreaterThan(5)
    const plainMs = ttfts[0]?.[1] ?? 0
    for (const [atMs, ms] of ttfts) {
      expect(ms, `at ${atMs}`).toBeCloseTo(atMs >= 5000 && atMs < 15_000 ? 2 * plainMs : plainMs, 6)
    }
  })

  it('is what is left of two faults at once', () => {
    const slow = { kind: 'slow', replicaIndex: 0, speedRatio: 0.5 } as const
    const ttft = (faults: readonly Fault[]) =>
      (run(faults, { requests: LONE.slice(0, 1) }).outcomes[0]?.settlement.ttftMs ?? 0) -
      SLOW.profile.requestOverheadMs
    expect(ttft([slow, slow])).toBeCloseTo(4 * ttft([]), 6)
  })
})

describe('metrics', () => {
  it('are frozen: fresh of date, old of content', () => {
    const seen = gaugesSeen([{ kind: 'frozenMetrics', replicaIndex: 0, fromMs: 8000 }])
    const late = seen.filter(({ seenAtMs }) => seenAtMs >= 8000)
    expect(new Set(late.map(({ seenAtMs }) => seenAtMs)).size).toBeGreaterThan(10)
    expect(new Set(late.map(({ runningRequests }) => runningRequests)).size).toBe(1)
    expect(new Set(seen.map(({ runningRequests }) => runningRequests)).size).toBeGreaterThan(2)
  })

  it('are late while they are late, and never go back in time', () => {
    const seen = gaugesSeen([{ kind: 'lateMetrics', lagMs: 3000, fromMs: 5000, toMs: 10_000 }])
    const between = seen.filter(({ nowMs }) => nowMs >= 6000 && nowMs < 8000)
    expect(between.every(({ seenAtMs }) => seenAtMs < 5000)).toBe(true)
    expect(seen.some(({ nowMs, seenAtMs }) => nowMs > 15_000 && nowMs - seenAtMs <= 500)).toBe(true)
    for (const [at, { seenAtMs }] of seen.entries()) {
      expect(seenAtMs).toBeGreaterThanOrEqual(seen[at - 1]?.seenAtMs ?? 0)
    }
  })
})

describe('a tokenizer that is off', () => {
  it('counts the prompts wrong towards the gate only', () => {
    const offered: number[] = []
    const result = run([{ kind: 'tokenizerBias', ratio: 1.2, fromMs: 10_000 }], {
      requests: LONE,
      createScheduler: (): Scheduler => {
        const bare = createLeastOutstanding()
        return {
          ...bare,
          plan: (state, nowMs) => {
            for (const { offer } of state.waiting) offered.push(offer.promptTokens)
            return bare.plan(state, nowMs)
          },
        }
      },
    })
    expect(new Set(offered)).toEqual(new Set([100, 120]))
    expect(result.outcomes.every(({ settlement }) => settlement.promptTokens === 100)).toBe(true)
  })
})

describe('an estimator that is off', () => {
  it('has every time of its prior scaled', () => {
    const prior = {
      baseMs: 1,
      perSequenceMs: 2,
      perContextTokenMs: 3,
      perChunkMs: 4,
      perPrefillTokenMs: 5,
      perPairMs: 0.5,
      requestOverheadMs: 6,
      uncertaintyRatio: 0.3,
    }
    expect(biasedPrior(prior, [{ kind: 'estimatorBias', ratio: 2 }])).toEqual({
      baseMs: 2,
      perSequenceMs: 4,
      perContextTokenMs: 6,
      perChunkMs: 8,
      perPrefillTokenMs: 10,
      perPairMs: 1,
      requestOverheadMs: 12,
      uncertaintyRatio: 0.3,
    })
  })
})

describe('faults that make no sense', () => {
  it('are named', () => {
    expect(() => run([{ kind: 'dead', replicaIndex: 2 }])).toThrow(
      /replica 2, of which there are 2, counted from 0/,
    )
    expect(() => run([{ kind: 'slow', replicaIndex: 0, speedRatio: 0 }])).toThrow(/ratio above 0, got 0/)
  })
})
