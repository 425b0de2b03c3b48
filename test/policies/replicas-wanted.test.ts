/** The number of replicas that is asked for, by what was learnt, holds the objective in the simulator; half of it does not. */
import { describe, expect, it } from 'vitest'
import type { OfferedStream } from '../../src/core/demand.ts'
import type { SloClass } from '../../src/core/request.ts'
import type { GateState, Scheduler } from '../../src/core/scheduler.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { WORKLOAD_CLASSES } from '../../src/sim/classes.ts'
import { profile } from '../../src/sim/profiles.ts'
import { steadyRate } from '../../src/sim/rates.ts'
import { summarize } from '../../src/sim/report.ts'
import { simulate } from '../../src/sim/run.ts'
import { generateWorkload } from '../../src/sim/workload.ts'
import type { WorkloadRequest } from '../../src/sim/workload-types.ts'

const chat: SloClass = WORKLOAD_CLASSES.chat as SloClass
const ENGINE = { profile: profile('Llama-3.1-8B/H100-80G-SXM/tp1'), jitterRatio: 0.05 }
const POOL = 'model'
const REPLICAS = 3
const DURATION_MS = 20_000

/** The chats among requests of all classes, at about that rate. */
function chats(perSec: number, seed: number): readonly WorkloadRequest[] {
  const all = (rate: number) => [...generateWorkload({ seed, segments: steadyRate(rate, DURATION_MS) })]
  const ofChat = (requests: readonly WorkloadRequest[]) =>
    requests.filter(({ className }) => className === chat.name)
  const share = ofChat(all(100)).length / all(100).length
  return ofChat(all(perSec / share))
}

function demandOf(requests: readonly WorkloadRequest[]): readonly OfferedStream[] {
  const mean = (of: (request: WorkloadRequest) => number) =>
    requests.reduce((sum, request) => sum + of(request), 0) / requests.length
  const promptTokens = mean((request) => request.promptTokens)
  return [
    {
      slo: chat,
      requestsPerSec: (requests.length * 1000) / DURATION_MS,
      promptTokens,
      uncachedTokens: promptTokens,
      outputTokens: mean((request) => request.outputTokens),
      sequences: 1,
    },
  ]
}

/** Runs the requests through three replicas; the scheduler is left with what it has learnt and the last state. */
function run(requests: readonly WorkloadRequest[]) {
  const scheduler = createSluice()
  let state: GateState | undefined
  const watched: Scheduler = {
    ...scheduler,
    plan: (now, nowMs) => {
      state = now
      return scheduler.plan(now, nowMs)
    },
  }
  const result = simulate({
    replicas: Array.from({ length: REPLICAS }, () => ({ engine: ENGINE })),
    requests,
    createScheduler: () => watched,
    drainMs: 20_000,
  })
  const wanted = (demand: readonly OfferedStream[]) =>
    state === undefined ? undefined : scheduler.replicasWanted(state, POOL, demand)
  return { wanted, attained: summarize(result, DURATION_MS / 4, DURATION_MS).total.attainmentRatio ?? 0 }
}

describe('replicasWanted', () => {
  const learning = chats(60, 1)
  const { wanted } = run(learning)
  const forLearning = wanted(demandOf(learning)) ?? Number.NaN
  /** The rate for which exactly three replicas are asked. */
  const perSec = (learning.length * 1000 * REPLICAS) / DURATION_MS / forLearning

  it('asks for so many that the objective holds, and breaks at 1.75 times the load', {
    timeout: 60_000,
  }, () => {
    expect(forLearning).toBeGreaterThan(0)
    expect(run(chats(perSec, 5)).attained).toBeGreaterThanOrEqual(chat.objectiveRatio ?? 1)
    expect(run(chats(1.75 * perSec, 5)).attained).toBeLessThan(chat.objectiveRatio ?? 0)
  })

  it('grows in step with demand, and is nothing without it', () => {
    const demand = demandOf(learning)
    const tripled = demand.map((stream) => ({ ...stream, requestsPerSec: 3 * stream.requestsPerSec }))
    expect(wanted(tripled)).toBeCloseTo(3 * forLearning, 6)
    expect(wanted([])).toBe(0)
  })

  it('says nothing of a model that no replica serves, nor of a promise that no number of them keeps', () => {
    const state: GateState = { ...({} as GateState), replicas: new Map(), instances: 1 }
    expect(createSluice().replicasWanted(state, POOL, demandOf(learning))).toBeUndefined()
    const impossible = demandOf(learning).map((stream) => ({ ...stream, slo: { ...chat, ttftMs: 0.1 } }))
    expect(wanted(impossible)).toBeUndefined()
  })
})
