/** The virtual-time driver: every request settles once, faults are carried out, and runs repeat to the byte. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GateEffect } from '../../src/core/effects.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { createRoundRobin } from '../../src/policies/plain/round-robin.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { findCapacity } from '../../src/sim/capacity.ts'
import type { Fault } from '../../src/sim/faults.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { summarize } from '../../src/sim/report.ts'
import { simulate } from '../../src/sim/run.ts'
import type { SimOptions } from '../../src/sim/run-types.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import type { WorkloadRequest } from '../../src/sim/workload-types.ts'

const SLOW = { profile: profile('demo/slow'), jitterRatio: 0.05 }

function workload(perSec: number, durationMs = 20_000, seed = 3) {
  return generateWorkload({ seed, lengthRatio: 0.25, segments: steadyRate(perSec, durationMs) })
}

function run(options: Partial<SimOptions> = {}) {
  return simulate({
    replicas: [{ engine: SLOW }, { engine: SLOW }],
    requests: workload(6),
    createScheduler: createRoundRobin,
    ...options,
  })
}

describe('a virtual run', () => {
  it('settles every request once and repeats to the byte', () => {
    const once = run()
    const ids = once.outcomes.map(({ settlement }) => settlement.requestId)
    expect(ids.toSorted()).toEqual([...workload(6)].map((request) => request.id).toSorted())
    expect(JSON.stringify(run())).toBe(JSON.stringify(once))
    expect(JSON.stringify(run({ seed: 2 }))).not.toBe(JSON.stringify(once))
  })

  it('serves a lone request as fast as the engine can', () => {
    const lone = { id: 'a', atMs: 0, className: 'chat', promptTokens: 100, outputTokens: 11, maxTokens: 50 }
    const [outcome] = run({ requests: [lone], replicas: [{ engine: { profile: SLOW.profile } }] }).outcomes
    // 5 ms of overhead, then one prefill step of 20 + 0.25 * 100 + 0.5 ms.
    expect(outcome?.settlement.ttftMs).toBeCloseTo(5 + 45.5, 1)
    expect(outcome?.settlement.tpotMs).toBeCloseTo(26, 0)
    expect(outcome?.settlement.outputTokens).toBe(11)
    expect(outcome?.settlement.verdict.kind).toBe('good')
  })

  it('offers a request as its tenant sent it', () => {
    const lone = { id: 'a', atMs: 0, className: 'chat', promptTokens: 100, outputTokens: 2 }
    const tenantOf = (request: WorkloadRequest) =>
      run({ requests: [request] }).outcomes[0]?.settlement.offer.tenant
    expect(tenantOf({ ...lone, tenant: 'acme' })).toBe('acme')
    expect(tenantOf(lone)).toBe('default')
  })

  it('charges the network on top', () => {
    const lone = { id: 'a', atMs: 0, className: 'chat', promptTokens: 100, outputTokens: 2, maxTokens: 50 }
    const ttft = (networkMs: number) =>
      run({ requests: [lone], networkMs }).outcomes[0]?.settlement.ttftMs ?? 0
    expect(ttft(20) - ttft(0)).toBeCloseTo(20, 6)
  })

  it('keeps the books under faults, caps, impatience and several instances', () => {
    const faults = fc.record({
      diesAtMs: fc.option(fc.integer({ min: 1000, max: 15_000 }), { nil: undefined }),
      revives: fc.boolean(),
      cap: fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
      patienceMs: fc.option(fc.integer({ min: 50, max: 3000 }), { nil: undefined }),
      instances: fc.integer({ min: 1, max: 3 }),
      rate: fc.integer({ min: 1, max: 25 }),
      seed: fc.integer({ min: 1, max: 1000 }),
    })
    fc.assert(
      fc.property(faults, ({ diesAtMs, revives, cap, patienceMs, instances, rate, seed }) => {
        const engine = { ...SLOW, ...(cap === undefined ? {} : { maxNumQueuedReqs: cap }) }
        const until = diesAtMs === undefined || !revives ? {} : { toMs: diesAtMs + 3000 }
        const dead: Fault[] =
          diesAtMs === undefined ? [] : [{ kind: 'dead', replicaIndex: 0, fromMs: diesAtMs, ...until }]
        const impatient = patienceMs === undefined ? {} : { patienceMs }
        const result = run({
          replicas: [{ engine }, { engine }],
          requests: [...workload(rate, 20_000, seed)].map((request) => ({ ...request, ...impatient })),
          faults: dead,
          instances,
          seed,
          drainMs: 5000,
        })
        const offered = [...workload(rate, 20_000, seed)].length
        expect(result.outcomes).toHaveLength(offered)
        expect(new Set(result.outcomes.map(({ settlement }) => settlement.requestId)).size).toBe(offered)
        const ends = result.counts.reduce(
          (sum, counts) => sum + counts.shed + counts.cancelled + counts.failed + counts.settled,
          0,
        )
        expect(ends).toBe(offered)
        const busyMs = result.engines.reduce((sum, entry) => sum + entry.busyMsTotal, 0)
        const usedMs = result.outcomes.reduce((sum, outcome) => sum + outcome.engineMs, 0)
        expect(usedMs).toBeLessThanOrEqual(busyMs + 1e-6)
      }),
      { numRuns: 15 },
    )
  })

  it('accounts for all engine time when nothing is aborted', () => {
    const result = run()
    const busyMs = result.engines.reduce((sum, entry) => sum + entry.busyMsTotal, 0)
    const usedMs = result.outcomes.reduce((sum, outcome) => sum + outcome.engineMs, 0)
    expect(usedMs / busyMs).toBeCloseTo(1, 6)
  })
})

describe('a dead replica', () => {
  it('breaks streams, bounces what had no content, and serves again after its revival', () => {
    const result = run({
      faults: [{ kind: 'dead', replicaIndex: 0, fromMs: 8000, toMs: 12_000 }],
      requests: workload(8),
    })
    const outcomes = result.outcomes.map(({ settlement }) => settlement)
    expect(outcomes.some((settlement) => settlement.outcome === 'truncated')).toBe(true)
    expect(result.counts[0]?.rerouted).toBeGreaterThan(0)
    const after = outcomes.filter((s) => s.replicaId === 'r0' && s.offer.receivedAtMs > 12_000)
    expect(after.length).toBeGreaterThan(10)
    expect(after.every((settlement) => settlement.outcome === 'completed')).toBe(true)
  })
})

describe('what the gate is told', () => {
  /** The bare scheduler with its ears open. */
  function listening(heard: string[]): () => Scheduler {
    return () => ({
      ...createRoundRobin(),
      firstToken: (inFlight) => heard.push(`first ${inFlight.requestId}`),
      progress: (ledger, events, nowMs) => heard.push(`progress ${ledger.replicaId} ${events} ${nowMs}`),
      settled: (inFlight, _ledger, report) =>
        heard.push(`settled ${inFlight.requestId} ${report.contentEvents}`),
    })
  }

  it('counts every token once, before the settlement that it belongs to', () => {
    const heard: string[] = []
    const result = run({ createScheduler: listening(heard) })
    const events = heard
      .filter((line) => line.startsWith('progress'))
      .map((line) => Number(line.split(' ')[2]))
    const tokens = result.outcomes.reduce((sum, { settlement }) => sum + settlement.outputTokens, 0)
    expect(events.reduce((sum, count) => sum + count, 0)).toBe(tokens)
    expect(heard.filter((line) => line.startsWith('first'))).toHaveLength(result.outcomes.length)
  })

  it('is at most 100 ms old', () => {
    const heard: string[] = []
    const lone = { id: 'a', atMs: 0, className: 'chat', promptTokens: 10, outputTokens: 100, maxTokens: 100 }
    run({ createScheduler: listening(heard), requests: [lone] })
    const instants = heard
      .filter((line) => line.startsWith('progress'))
      .map((line) => Number(line.split(' ')[3]))
    expect(instants.length).toBeGreaterThan(20)
    for (const [at, atMs] of instants.entries())
      expect(atMs - (instants[at - 1] ?? 0)).toBeLessThanOrEqual(126)
  })

  it('sees gauges late by the lag, and none once they are lost', () => {
    const seen: [number, number][] = []
    const spy = (): Scheduler => {
      const bare = createRoundRobin()
      return {
        ...bare,
        plan: (state, nowMs) => {
          const gauges = state.replicas.get('r0')?.report.gauges
          if (gauges !== undefined) seen.push([gauges.seenAtMs, nowMs])
          return bare.plan(state, nowMs)
        },
      }
    }
    run({
      createScheduler: spy,
      metricsLagMs: 300,
      faults: [{ kind: 'lostMetrics', replicaIndex: 0, fromMs: 5000 }],
    })
    expect(seen.every(([seenAtMs, nowMs]) => nowMs - seenAtMs >= 300)).toBe(true)
    expect(Math.max(...seen.map(([seenAtMs]) => seenAtMs))).toBe(4500)
  })
})

describe('wakeAt', () => {
  it('ticks at the wished instant and obeys only the last wish', () => {
    const ticks: number[] = []
    const patient = (): Scheduler => ({
      ...createRoundRobin(),
      plan: (state, nowMs) => {
        ticks.push(nowMs)
        const [first] = state.waiting
        if (first === undefined || nowMs >= 500) return createRoundRobin().plan(state, nowMs)
        return { intents: [], wakeAtMs: nowMs < 100 ? 400 : 500 }
      },
    })
    const request = { className: 'chat', promptTokens: 10, outputTokens: 2, maxTokens: 10 }
    run({
      createScheduler: patient,
      metricsPeriodMs: 1e6,
      requests: [
        { id: 'a', atMs: 0, ...request },
        { id: 'b', atMs: 150, ...request },
      ],
    })
    expect([...new Set(ticks)].slice(0, 3)).toEqual([0, 150, 500])
  })
})

describe('report and capacity', { timeout: 60_000 }, () => {
  it('adds up', () => {
    const effects: GateEffect[] = []
    const result = run({ onEffect: (effect) => effects.push(effect), requests: workload(15) })
    const report = summarize(result, 0, 20_000)
    expect(effects.filter((effect) => effect.kind === 'settled')).toHaveLength(report.total.offered)
    const { total, classes } = report
    expect(total.good + total.bad + total.excluded).toBe(total.offered)
    expect(classes.reduce((sum, entry) => sum + entry.offered, 0)).toBe(total.offered)
    expect(report.goodPerSec).toBeCloseTo(total.good / 20, 9)
    expect(report.wastedEngineMs).toBeGreaterThan(0)
    expect(report.wastedEngineMs).toBeLessThanOrEqual(report.usedEngineMs)
    expect(Object.values(report.badByCause).reduce((sum, count) => sum + count, 0)).toBe(total.bad)
  })

  it('finds the rate where the bare fleet still keeps nine in ten', () => {
    const options = { engines: [SLOW, SLOW], lengthRatio: 0.25, durationMs: 40_000 }
    const { ratePerSec, saturatedPerSec } = findCapacity(options)
    expect(ratePerSec).toBeGreaterThan(2)
    expect(saturatedPerSec).toBeGreaterThan(ratePerSec)
    const attainment = (load: number) =>
      summarize(run({ requests: workload(load * ratePerSec, 60_000) }), 15_000, 60_000).total
        .attainmentRatio ?? 0
    expect(attainment(0.5)).toBeGreaterThan(0.9)
    expect(attainment(2.5)).toBeLessThan(0.5)
    expect(findCapacity(options)).toEqual({ ratePerSec, saturatedPerSec })
  })

  it('finds more for a scheduler that sheds, and names each trial', () => {
    const options = { engines: [SLOW, SLOW], lengthRatio: 0.25, durationMs: 20_000 }
    const trials: [number, number][] = []
    const bare = findCapacity(options)
    const better = findCapacity({
      ...options,
      createScheduler: createSluice,
      onTrial: (rate, attainment) => trials.push([rate, attainment]),
    })
    expect(better.saturatedPerSec).toBe(bare.saturatedPerSec)
    expect(better.ratePerSec).toBeGreaterThan(bare.ratePerSec)
    const best = Math.max(...trials.filter(([, good]) => good >= 0.9).map(([rate]) => rate))
    expect(better.ratePerSec).toBe(best)
  })
})
