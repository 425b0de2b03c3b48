/** What is learnt of a group of engines from the stream alone: pace of each, changes, trust, and what is predicted. */
import { beforeEach, describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import type { SettleReport } from '../../src/core/records.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { EngineGroup } from '../../src/estimate/engine-group.ts'
import { decodeStepMs } from '../../src/estimate/step-model.ts'
import { loadOf, rawTtftMs } from '../../src/estimate/ttft.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { createLeastOutstanding } from '../../src/policies/plain/least-outstanding.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { Rng } from '../../src/sim/rng.ts'
import { simulate } from '../../src/sim/run.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'

/** One replica that serves one request after the other, as slow as it is told to be. */
class Engine {
  readonly ledger = new ReplicaLedger(reportOf('r1'))
  slowness = 1
  nowMs = 0
  #permitId = 0
  readonly #rng = new Rng(12)

  readonly group: EngineGroup

  constructor(group: EngineGroup) {
    this.group = group
  }

  serve(requests: number): void {
    for (let i = 0; i < requests; i++) this.#serve(200 + 60 * (i % 20))
  }

  #serve(promptTokens: number): void {
    const { group, ledger } = this
    const inFlight = inFlightOf(++this.#permitId, someOffer({ promptTokens }), { dispatchedAtMs: this.nowMs })
    ledger.dispatch(inFlight)
    group.dispatched(inFlight, ledger, this.nowMs)
    this.#pass(10 + 20 + 0.1 * promptTokens)
    group.firstToken(inFlight, ledger, Number.POSITIVE_INFINITY, this.nowMs)
    ledger.firstToken(inFlight.permitId, this.nowMs)
    const firstTokenAtMs = this.nowMs
    for (let round = 0; round < 4; round++) {
      this.#pass(8 * 20)
      ledger.progress(inFlight, 8, this.nowMs)
      group.progress(ledger, 8, this.nowMs)
    }
    ledger.release(inFlight.permitId)
    const report: SettleReport = {
      outcome: 'completed',
      endedAtMs: this.nowMs,
      firstTokenAtMs,
      lastTokenAtMs: this.nowMs,
      contentEvents: 33,
      usage: { outputTokens: 33 },
    }
    group.released(inFlight, ledger, report, this.nowMs)
  }

  /** What the group predicts of a prompt of 800 tokens over what it would take, at the median. */
  get predictedRatio(): number {
    const model = this.group.modelOf('r1')
    const load = loadOf(model, this.ledger, this.nowMs)
    const rawMs = rawTtftMs(model, load, 800) * this.group.ttftFactor(1, 'p50', this.nowMs)
    return rawMs / (this.slowness * 110)
  }

  #pass(spanMs: number): void {
    this.nowMs += this.slowness * spanMs * this.#rng.logNormal(1, 0.05)
  }
}

describe('a group of engines', () => {
  let engine: Engine
  beforeEach(() => {
    engine = new Engine(new EngineGroup())
  })

  it('comes to be trusted step by step and predicts what comes', () => {
    const { group } = engine
    const states = [group.trust(engine.nowMs)]
    for (let i = 0; i < 70; i++) {
      engine.serve(1)
      const state = group.trust(engine.nowMs)
      if (state !== states.at(-1)) states.push(state)
    }
    expect(states).toEqual(['fallback', 'cautious', 'trusted'])
    expect(engine.predictedRatio).toBeGreaterThan(0.9)
    expect(engine.predictedRatio).toBeLessThan(1.1)
    expect(group.snapshot(engine.nowMs)).toMatchObject({ trust: 'trusted', changes: 0 })
  })

  it('calibrates TPOT too', () => {
    engine.serve(80)
    const { tpotFactors } = engine.group.snapshot(engine.nowMs) as { tpotFactors: Record<string, number> }
    expect(tpotFactors.p50).toBeGreaterThan(0.9)
    expect(tpotFactors.p95).toBeLessThan(1.3)
  })

  it.each([3, 1 / 3])(
    'distrusts itself when the engine is suddenly %d times as slow, and learns anew',
    (slowness) => {
      engine.serve(80)
      engine.slowness = slowness
      engine.serve(3)
      expect(engine.group.trust(engine.nowMs)).toBe('fallback')
      engine.serve(30)
      expect(engine.group.trust(engine.nowMs)).not.toBe('fallback')
      expect(engine.predictedRatio).toBeGreaterThan(0.8)
      expect(engine.predictedRatio).toBeLessThan(1.25)
      const { changes } = engine.group.snapshot(engine.nowMs) as { changes: number }
      expect(changes).toBeGreaterThanOrEqual(1)
      expect(changes).toBeLessThanOrEqual(3)
    },
  )

  it('sees no change in a long steady life', () => {
    engine.serve(3000)
    expect(engine.group.snapshot(engine.nowMs)).toMatchObject({ trust: 'trusted', changes: 0 })
  })

  it('trusts less what was not tested for long', () => {
    engine.serve(80)
    expect(engine.group.trust(engine.nowMs + 120_000)).toBe('cautious')
    expect(engine.group.trust(engine.nowMs + 1_200_000)).toBe('fallback')
    engine.serve(1)
    expect(engine.group.trust(engine.nowMs)).toBe('trusted')
  })
})

describe('a fleet with one replica at half speed', () => {
  it('is known for what it is, and the others are not blamed', () => {
    const id = 'demo/slow'
    const learnt = new Learnt({})
    const learning = (): Scheduler => ({
      ...createLeastOutstanding(),
      dispatched: (inFlight, ledger, nowMs) => learnt.dispatched(inFlight, ledger, nowMs),
      progress: (ledger, events, nowMs) => learnt.progress(ledger, events, nowMs),
      firstToken: (inFlight, ledger, nowMs) => learnt.firstToken(inFlight, ledger, nowMs),
      settled: (inFlight, ledger, report, _, nowMs) => learnt.released(inFlight, ledger, report, nowMs),
    })
    simulate({
      replicas: [0.5, 1, 1].map((speedRatio) => ({
        engine: { profile: profile(id), jitterRatio: 0.05, prefixCaching: false, speedRatio },
      })),
      requests: generateWorkload({ seed: 7, lengthRatio: 0.25, segments: steadyRate(5, 60_000) }),
      createScheduler: learning,
    })
    const stepMs = (replica: string) => decodeStepMs(learnt.group(id).modelOf(replica), 4, 1000)
    expect(stepMs('r0') / stepMs('r1')).toBeGreaterThan(1.6)
    expect(stepMs('r0') / stepMs('r1')).toBeLessThan(2.4)
    expect(stepMs('r2') / stepMs('r1')).toBeGreaterThan(0.85)
    expect(stepMs('r2') / stepMs('r1')).toBeLessThan(1.15)
    learnt.reset('r0')
    // What comes back under that name is a new replica.
    expect(stepMs('r0')).toBeCloseTo(decodeStepMs(learnt.group(id).model, 4, 1000), 6)
  })
})
