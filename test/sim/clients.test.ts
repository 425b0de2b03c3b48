/** Clients of a virtual run: who leaves, who comes back, who goes on talking, and that all of it repeats. */
import { describe, expect, it } from 'vitest'
import type { Settlement } from '../../src/core/records.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { createRoundRobin } from '../../src/policies/plain/round-robin.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { HAMMERING_CLIENT, SDK_CLIENT, taskOf } from '../../src/sim/clients.ts'
import { profile } from '../../src/sim/profiles.ts'
import { summarize } from '../../src/sim/report.ts'
import { simulate } from '../../src/sim/run.ts'
import type { SimOptions } from '../../src/sim/run-types.ts'
import { mapClasses, workloadStream } from '../../src/sim/workload.ts'
import type { ClientModel, RetryPlan, WorkloadRequest } from '../../src/sim/workload-types.ts'
import { namedWorkload } from '../../src/sim/workloads.ts'

const SLOW = { profile: profile('demo/slow'), jitterRatio: 0.05 }

const ASK: WorkloadRequest = {
  id: 'a',
  atMs: 0,
  className: 'chat',
  promptTokens: 640,
  outputTokens: 10,
  maxTokens: 20,
}

function run(options: Partial<SimOptions>): readonly Settlement[] {
  return simulate({
    replicas: [{ engine: SLOW }],
    requests: [ASK],
    createScheduler: createRoundRobin,
    ...options,
  }).outcomes.map(({ settlement }) => settlement)
}

/** Refuses the first `count` offers, with that advice. */
function refusing(count: number, retryAfterMs?: number): () => Scheduler {
  return () => {
    const bare = createRoundRobin()
    let refused = 0
    return {
      ...bare,
      plan: (state, nowMs) => {
        const [first] = state.waiting
        if (first === undefined || refused >= count) return bare.plan(state, nowMs)
        refused++
        const advice = retryAfterMs === undefined ? {} : { retryAfterMs }
        const { requestId } = first.offer
        return {
          intents: [{ kind: 'shed', requestId, reason: 'slo_unreachable', candidates: [], ...advice }],
        }
      },
    }
  }
}

function retrying(model: ClientModel, honoursAdvice: boolean): WorkloadRequest {
  const { limit = 0, backoffMs = 0, longestBackoffMs = 0 } = model.retry ?? {}
  const retry: RetryPlan = { limit, backoffMs, longestBackoffMs, honoursAdvice }
  return { ...ASK, retry }
}

describe('a client that heeds advice', () => {
  const polite = retrying(SDK_CLIENT, true)

  it('comes back when it was told to, up to a quarter later', () => {
    const [first, second, ...more] = run({ requests: [polite], createScheduler: refusing(1, 4000) })
    expect(more).toEqual([])
    expect([first?.outcome, second?.outcome]).toEqual(['shed', 'completed'])
    expect(second?.offer.receivedAtMs).toBeGreaterThanOrEqual(4000)
    expect(second?.offer.receivedAtMs).toBeLessThanOrEqual(5000)
    expect(second?.offer.retryCount).toBe(1)
    expect(taskOf(second?.requestId ?? '')).toBe('a')
  })

  it('stays away when no retry can help, and after its last attempt', () => {
    expect(run({ requests: [polite], createScheduler: refusing(9) })).toHaveLength(1)
    expect(run({ requests: [polite], createScheduler: refusing(9, 2000) })).toHaveLength(3)
  })

  it('gives up when its patience ends, wherever it then is', () => {
    const requests = [{ ...polite, patienceMs: 3000 }]
    expect(run({ requests, createScheduler: refusing(1, 4000) })).toHaveLength(1)
    const lost = run({ requests: [{ ...ASK, patienceMs: 30 }] })
    expect(lost[0]?.outcome).toBe('client_left')
    expect(lost[0]?.e2eMs).toBe(30)
    const served = run({ requests: [{ ...ASK, outputTokens: 200, patienceMs: 800 }] })
    expect(served[0]?.outcome).toBe('completed')
    expect(served[0]?.e2eMs).toBeGreaterThan(800)
  })
})

describe('a client that hammers', () => {
  it('doubles its pause and never asks what it was told', () => {
    const requests = [retrying(HAMMERING_CLIENT, false)]
    const sent = run({ requests, createScheduler: refusing(9, 30_000) })
    expect(sent.map(({ offer }) => offer.retryCount)).toEqual([0, 1, 2, 3, 4, 5])
    const pauses = sent
      .slice(1)
      .map((each, at) => each.offer.receivedAtMs - (sent[at]?.offer.receivedAtMs ?? 0))
    for (const [at, longestMs] of [250, 500, 1000, 1000, 1000].entries()) {
      expect(pauses[at]).toBeLessThanOrEqual(longestMs)
      expect(pauses[at]).toBeGreaterThanOrEqual(0.75 * longestMs)
    }
    expect(new Set(sent.map(({ requestId }) => taskOf(requestId)))).toEqual(new Set(['a']))
  })

  it('makes one task of all its attempts', () => {
    const result = simulate({
      replicas: [{ engine: SLOW }],
      requests: [retrying(HAMMERING_CLIENT, false)],
      createScheduler: refusing(3, 0),
    })
    const { total, tasks } = summarize(result, 0, 60_000)
    expect([total.offered, total.retries, total.good]).toEqual([4, 3, 1])
    expect(tasks).toEqual({ judged: 1, good: 1 })
  })
})

describe('a session', () => {
  const talk: WorkloadRequest = {
    ...ASK,
    text: 'a',
    next: { thinkMs: 2000, request: { ...ASK, id: 'a.1', text: 'a', promptTokens: 700, outputTokens: 5 } },
  }

  it('goes on after the answer, and finds prompt and answer in the cache', () => {
    const [first, second] = run({ requests: [{ ...talk, outputTokens: 64 }] })
    const answeredAtMs = first?.e2eMs ?? 0
    expect(second?.offer.receivedAtMs).toBeCloseTo(answeredAtMs + 2000, 6)
    // Of 700 tokens 11 whole blocks of 64 are known: ten of the prompt, and one of the answer less its last token.
    const coldTtft = run({ requests: [{ ...ASK, promptTokens: 700 }] })[0]?.ttftMs ?? 0
    expect(second?.ttftMs).toBeLessThan(coldTtft / 2)
  })

  it('ends with a turn that got no answer, and when the run closes', () => {
    expect(run({ requests: [talk], createScheduler: refusing(1) })).toHaveLength(1)
    expect(run({ requests: [talk], closesAtMs: 1000 })).toHaveLength(1)
    expect(run({ requests: [talk] })).toHaveLength(2)
  })
})

describe('a run with everything on', { timeout: 60_000 }, () => {
  const engine = {
    ...SLOW,
    policy: 'priority',
    speculative: { draftTokens: 2, acceptanceRatio: 0.6, draftCostRatio: 0.1 },
  } as const
  const pools = { prefillEngines: 1, decodeEngines: 1, transferBaseMs: 2, transferPerTokenMs: 0.01 }
  const options = (seed: number): SimOptions => ({
    replicas: [
      { engine },
      { engine: { ...engine, disaggregated: pools } },
      { engine: { ...engine, chunkedPrefill: false } },
    ],
    requests: workloadStream({
      workload: mapClasses(namedWorkload('sessions'), (entry) => ({
        ...entry,
        priority: 1,
        client: { ...SDK_CLIENT, patience: { meanMs: 5000, sigma: 0.5 } },
      })),
      arrivals: { gapCv: 2, rhythm: { kind: 'onOff', onMs: 2000, offMs: 4000, onRatio: 2 } },
      seed,
      ratePerSec: 70,
      durationMs: 20_000,
      lengthRatio: 0.5,
    }),
    createScheduler: createSluice,
    faults: [
      { kind: 'slow', replicaIndex: 0, speedRatio: 0.6, fromMs: 4000, toMs: 9000 },
      { kind: 'dead', replicaIndex: 1, fromMs: 6000, toMs: 8000 },
      { kind: 'frozenMetrics', fromMs: 3000, toMs: 9000 },
      { kind: 'lateMetrics', lagMs: 1500, fromMs: 10_000 },
      { kind: 'tokenizerBias', ratio: 1.2 },
    ],
    closesAtMs: 20_000,
    seed,
  })

  it('repeats to the byte, settles each sending once, and runs dry', () => {
    const once = simulate(options(1))
    expect(JSON.stringify(simulate(options(1)))).toBe(JSON.stringify(once))
    expect(JSON.stringify(simulate(options(2)))).not.toBe(JSON.stringify(once))
    const ids = once.outcomes.map(({ settlement }) => settlement.requestId)
    expect(new Set(ids).size).toBe(ids.length)
    const outcomes = new Set(once.outcomes.map(({ settlement }) => settlement.outcome))
    for (const outcome of ['completed', 'shed', 'client_left'] as const) expect(outcomes).toContain(outcome)
    expect(once.outcomes.some(({ settlement }) => settlement.offer.retryCount > 0)).toBe(true)
  })
})
