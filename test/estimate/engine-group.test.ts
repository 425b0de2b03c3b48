/** What is learnt of a group of engines from the stream alone: pace of each, changes, trust, and what is predicted. */
import { beforeEach, describe, expect, it } from 'vitest'
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
import { learningBeside } from '../support/learning-beside.ts'
import { type Learner, promptMs, ShownReplica } from '../support/shown-replica.ts'

/** What the group predicts of a prompt of 800 tokens over what it would take, at the median. */
function predictedRatio(group: EngineGroup, { ledger, slowness, nowMs }: ShownReplica): number {
  const model = group.modelOf('r1')
  const rawMs = rawTtftMs(model, loadOf(model, ledger, nowMs), 800)
  return (rawMs * group.ttftFactor(1, 'p50', nowMs)) / (slowness * promptMs(800))
}

describe('a group of engines', () => {
  let group: EngineGroup
  let engine: ShownReplica
  beforeEach(() => {
    group = new EngineGroup()
    const rng = new Rng(12)
    const learner: Learner = {
      dispatched: (inFlight, ledger, nowMs) => group.dispatched(inFlight, ledger, nowMs),
      firstToken: (its, ledger, nowMs) => group.firstToken(its, ledger, Number.POSITIVE_INFINITY, nowMs),
      progress: (ledger, tokens, nowMs) => group.progress(ledger, tokens, nowMs),
      released: (inFlight, ledger, report, nowMs) => group.released(inFlight, ledger, report, nowMs),
    }
    engine = new ShownReplica(learner, {}, () => rng.logNormal(1, 0.05))
  })

  it('comes to be trusted step by step and predicts what comes', () => {
    const states = [group.trust(engine.nowMs)]
    for (let i = 0; i < 70; i++) {
      engine.serve(1)
      const state = group.trust(engine.nowMs)
      if (state !== states.at(-1)) states.push(state)
    }
    expect(states).toEqual(['fallback', 'cautious', 'trusted'])
    expect(predictedRatio(group, engine)).toBeGreaterThan(0.9)
    expect(predictedRatio(group, engine)).toBeLessThan(1.1)
    expect(group.snapshot(engine.nowMs)).toMatchObject({ trust: 'trusted', changes: 0 })
  })

  it('counts no interval that taught nothing', () => {
    engine.slowness = 0
    for (let n = 0; n < 5; n++) engine.begin(engine.send())
    expect(group.snapshot(0)).toMatchObject({ evidence: { prefillWindows: 0 } })
    engine.slowness = 1
    engine.serve(1)
    expect(group.snapshot(0)).toMatchObject({ evidence: { prefillWindows: 1 } })
  })

  it('calibrates TPOT too', () => {
    engine.serve(80)
    const { tpotFactors } = group.snapshot(engine.nowMs) as { tpotFactors: Record<string, number> }
    expect(tpotFactors.p50).toBeGreaterThan(0.9)
    expect(tpotFactors.p95).toBeLessThan(1.3)
  })

  it.each([3, 1 / 3])(
    'distrusts itself when the engine is suddenly %d times as slow, and learns anew',
    (slowness) => {
      engine.serve(80)
      engine.slowness = slowness
      engine.serve(3)
      expect(group.trust(engine.nowMs)).toBe('fallback')
      engine.serve(30)
      expect(group.trust(engine.nowMs)).not.toBe('fallback')
      expect(predictedRatio(group, engine)).toBeGreaterThan(0.8)
      expect(predictedRatio(group, engine)).toBeLessThan(1.25)
      const { changes } = group.snapshot(engine.nowMs) as { changes: number }
      expect(changes).toBeGreaterThanOrEqual(1)
      expect(changes).toBeLessThanOrEqual(3)
    },
  )

  it.each(['whole', 'compressed'])('counts steps by what it sees beside answers that come %s', (how) => {
    const send = (streamed: boolean) => Array.from({ length: 8 }, () => engine.send({ streamed }))
    const [seen, unseen] = [send(true), send(how === 'compressed')]
    for (const id of seen) engine.begin(id)
    for (const id of unseen) how === 'whole' ? engine.assume(id) : engine.beginOpaque(id)
    for (let round = 0; round < 60; round++) engine.stream(seen, 8)
    const stepMs = decodeStepMs(group.modelOf('r1'), 16, engine.ledger.contextTokens)
    expect(stepMs).toBeGreaterThan(19)
    expect(stepMs).toBeLessThan(21)
  })

  it('counts no step for the first tokens of several answers to one prompt', () => {
    const sequences = 8
    for (let n = 0; n < 200; n++) {
      const id = engine.send({ sequences })
      engine.begin(id)
      engine.stream([id], 8)
      engine.end(id)
    }
    const stepMs = decodeStepMs(group.modelOf('r1'), sequences, 800)
    expect(stepMs).toBeGreaterThan(19)
    expect(stepMs).toBeLessThan(21)
  })

  it('knows what a prompt takes behind prompts whose first token nobody sees', () => {
    engine.serve(60)
    for (let n = 0; n < 80; n++) {
      const hidden = engine.send({ streamed: false, promptTokens: 4000 })
      const id = engine.send()
      const how = ['later', 'ends', 'stays', 'ends', 'bounces', 'stays'][n % 6]
      if (how !== 'later') engine.assume(hidden)
      if (how === 'ends') engine.end(hidden)
      if (how === 'bounces') engine.bounce(hidden)
      engine.begin(id, how === 'bounces' ? [] : [4000])
      if (how === 'stays' || how === 'later') engine.end(hidden)
      engine.stream([id], 8)
      engine.end(id)
    }
    expect(group.snapshot(engine.nowMs)).toMatchObject({ changes: 0 })
    const took = rawTtftMs(group.modelOf('r1'), loadOf(group.model, engine.ledger, engine.nowMs), 800)
    expect(took / promptMs(800)).toBeGreaterThan(0.9)
    expect(took / promptMs(800)).toBeLessThan(1.1)
  })

  it('sees no change in a long steady life', () => {
    engine.serve(3000)
    expect(group.snapshot(engine.nowMs)).toMatchObject({ trust: 'trusted', changes: 0 })
  })

  it('trusts less what was not tested for long', () => {
    engine.serve(80)
    expect(group.trust(engine.nowMs + 120_000)).toBe('cautious')
    expect(group.trust(engine.nowMs + 1_200_000)).toBe('fallback')
    engine.serve(1)
    expect(group.trust(engine.nowMs)).toBe('trusted')
  })
})

describe('a fleet with one replica at half speed', () => {
  it('is known for what it is, and the others are not blamed', () => {
    const id = 'demo/slow'
    const learnt = new Learnt({})
    simulate({
      replicas: [0.5, 1, 1].map((speedRatio) => ({
        engine: { profile: profile(id), jitterRatio: 0.05, prefixCaching: false, speedRatio },
      })),
      requests: generateWorkload({ seed: 7, lengthRatio: 0.25, segments: steadyRate(5, 60_000) }),
      createScheduler: () => learningBeside(createLeastOutstanding(), learnt),
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
