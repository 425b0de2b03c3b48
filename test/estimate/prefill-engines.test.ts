/** Engines that compute prompts apart from those that answer: what of them is learnt, predicted and dead-reckoned. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { EngineGroup } from '../../src/estimate/engine-group.ts'
import { carriedShare } from '../../src/estimate/replica-capacity.ts'
import {
  decodeStepMs,
  prefillMs,
  prefillStallMs,
  type StepModel,
  stepModel,
} from '../../src/estimate/step-model.ts'
import { loadOf, queueMs, rawTtftMs } from '../../src/estimate/ttft.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { createConcurrencyLimit } from '../../src/policies/rivals/concurrency-limit.ts'
import type { Disaggregation } from '../../src/sim/engine-types.ts'
import { type EngineProfile, profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { simulate } from '../../src/sim/run.ts'
import { stepMs } from '../../src/sim/step-time.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { learningBeside } from '../support/learning-beside.ts'

const A100 = profile('Llama-3.1-8B/A100-80G-SXM/tp1')

/** 20 ms + 0.5 a sequence per decode step; a prompt takes 10 ms a chunk and 0.1 ms a token; 15 ms on the way. */
const PRIOR = {
  baseMs: 20,
  perSequenceMs: 0.5,
  perContextTokenMs: 0,
  perChunkMs: -10,
  perPrefillTokenMs: 0.1,
  perPairMs: 0,
  requestOverheadMs: 15,
  uncertaintyRatio: 0.1,
}
const LIMITS = { maxNumBatchedTokens: 512, prefillEngines: 1 }
const LOAD = { backlogTokens: 0, backlogPairs: 0, sequences: 4, contextTokens: 4000, chunkTokens: 512 }

describe('a model of engines for prompts alone', () => {
  const tokens = fc.integer({ min: 1, max: 20_000 })

  it('has prompts and streams in no step together', () => {
    fc.assert(
      fc.property(tokens, fc.nat(60), fc.integer({ min: 1, max: 4 }), (own, sequences, engines) => {
        const model = stepModel(PRIOR, engines)
        expect(prefillStallMs(model, own, 512)).toBe(0)
        expect(prefillMs(model, own, 512, sequences, 900 * sequences)).toBe(prefillMs(model, own, 512, 0, 0))
      }),
    )
  })

  it('says prefill, the way of the KV and the step of the answer; the queue is shared by the engines', () => {
    const one = stepModel(PRIOR, 1)
    const stepMs = decodeStepMs(one, 4, 4000)
    expect(rawTtftMs(one, LOAD, 400)).toBeCloseTo(10 + 40 + 15 + 1.5 * stepMs, 6)
    const queued = { ...LOAD, backlogTokens: 1024 }
    expect(queueMs(one, queued)).toBeCloseTo(2 * (10 + 51.2), 6)
    expect(queueMs(stepModel(PRIOR, 2), queued)).toBeCloseTo(10 + 51.2, 6)
    expect(rawTtftMs(stepModel(PRIOR, 2), queued, 400)).toBeLessThan(rawTtftMs(one, queued, 400))
  })

  it('is never sooner for more tokens or more backlog', () => {
    fc.assert(
      fc.property(
        tokens,
        tokens,
        tokens,
        fc.integer({ min: 1, max: 4 }),
        (own, more, backlogTokens, engines) => {
          const model = stepModel(PRIOR, engines)
          const load = { ...LOAD, backlogTokens }
          const ttftMs = rawTtftMs(model, load, own)
          expect(rawTtftMs(model, load, own + more)).toBeGreaterThanOrEqual(ttftMs)
          expect(
            rawTtftMs(model, { ...load, backlogTokens: backlogTokens + more }, own),
          ).toBeGreaterThanOrEqual(ttftMs)
        },
      ),
    )
  })

  it('is begun anew when the shape of the engines changes, and only then', () => {
    const group = new EngineGroup(PRIOR)
    const { model } = group
    expect(group.shapedAs(undefined).model).toBe(model)
    expect(group.shapedAs(2).model.prefillEngines).toBe(2)
    expect(group.modelOf('r1').prefillEngines).toBe(2)
    expect(group.shapedAs(undefined).modelOf('r1').prefillEngines).toBe(0)
  })
})

describe('a backlog before engines for prompts alone', () => {
  const model = stepModel(PRIOR, 1)

  it('is gone when its last KV has left, which is before its first token is seen', () => {
    const ledger = new ReplicaLedger(reportOf('r1', { limits: LIMITS }))
    ledger.dispatch(inFlightOf(1, someOffer({ promptTokens: 400 }), { dispatchedAtMs: 0 }))
    ledger.dispatch(inFlightOf(2, someOffer({ promptTokens: 200 }), { dispatchedAtMs: 0 }))
    const at = (nowMs: number) => loadOf(model, ledger, nowMs).backlogTokens
    expect(at(0)).toBe(600)
    expect(at(25)).toBeCloseTo(400, 6)
    expect(at(50)).toBeCloseTo(200, 6)
    expect(at(80)).toBe(0)
  })

  it('only shrinks while nobody comes, never below nothing nor above what was sent', () => {
    const sent = fc.array(
      fc.record({ promptTokens: fc.integer({ min: 1, max: 3000 }), afterMs: fc.nat(200) }),
      {
        minLength: 1,
        maxLength: 8,
      },
    )
    fc.assert(
      fc.property(sent, fc.array(fc.nat(300), { minLength: 2, maxLength: 6 }), (rows, looks) => {
        const ledger = new ReplicaLedger(reportOf('r1', { limits: LIMITS }))
        let nowMs = 0
        for (const [at, { promptTokens, afterMs }] of rows.entries()) {
          nowMs += afterMs
          ledger.dispatch(inFlightOf(at, someOffer({ promptTokens }), { dispatchedAtMs: nowMs }))
        }
        let last = ledger.backlogTokens
        for (const passMs of looks) {
          nowMs += passMs
          const { backlogTokens } = loadOf(model, ledger, nowMs)
          expect(backlogTokens).toBeLessThanOrEqual(last)
          expect(backlogTokens).toBeGreaterThanOrEqual(0)
          last = backlogTokens
        }
      }),
    )
  })
})

/** A fixed limit in front, learning beside it from nothing. */
const learning = (learnt: Learnt) =>
  learningBeside(createConcurrencyLimit({ maxInFlight: 32, queueMs: 1e9 }), learnt)

function learn(engine: EngineProfile, pools: Disaggregation, perSec: number, seed: number): StepModel {
  const learnt = new Learnt({})
  simulate({
    replicas: [
      { engine: { profile: engine, jitterRatio: 0.05, prefixCaching: false, disaggregated: pools } },
    ],
    requests: generateWorkload({ seed, segments: steadyRate(perSec, 40_000) }),
    createScheduler: () => learning(learnt),
  })
  return learnt.group(engine.id).model
}

describe.each([
  ['one engine for prompts', 1, 4],
  ['two of them', 2, 8],
])('%s, learnt cold', (_, prefillEngines, perSec) => {
  const pools = { prefillEngines, decodeEngines: 1, transferBaseMs: 2, transferPerTokenMs: 0.0026 }
  const models = [4, 5, 6].map((seed) => learn(A100, pools, perSec, seed))

  function agrees(learntMs: (model: StepModel) => number, truthMs: number): void {
    const ratios = models.map((model) => learntMs(model) / truthMs)
    expect(Math.min(...ratios), `${ratios}`).toBeGreaterThan(0.8)
    expect(Math.max(...ratios), `${ratios}`).toBeLessThan(1.25)
  }

  it('I26 knows its decode steps within a fifth', () => {
    const step = (sequences: number) =>
      stepMs(A100, {
        prefillTokens: 0,
        prefillContextTokens: 0,
        decodeSequences: sequences,
        decodeContextTokens: sequences * 900,
      })
    for (const sequences of [2, 8]) {
      agrees((model) => decodeStepMs(model, sequences, sequences * 900), step(sequences))
    }
  })
})

describe('a replica with engines for prompts alone', () => {
  it('carries more with two of them', () => {
    const model = (engines: number) => stepModel({ ...PRIOR, perChunkMs: 5 }, engines)
    const slo = sloOf({ ttftMs: 2000, tpotMs: 60 })
    const demand = [
      { slo, requestsPerSec: 1, promptTokens: 1500, uncachedTokens: 1500, outputTokens: 200, sequences: 1 },
    ]
    const room = { slots: 256, kvCapacityTokens: 1e6, chunkTokens: 512 }
    const share = (engines: number) => carriedShare(model(engines), demand, room)
    expect(share(2)).toBeGreaterThan(share(1))
  })
})
