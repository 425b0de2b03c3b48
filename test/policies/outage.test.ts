/** What becomes of requests while no replica takes work, and of work without a promise while promises fill the engines. */
import { describe, expect, it } from 'vitest'
import { createGate } from '../../src/core/gate.ts'
import type { SloClass } from '../../src/core/request.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { profile } from '../../src/sim/profiles.ts'
import { simulate } from '../../src/sim/run.ts'
import type { WorkloadRequest } from '../../src/sim/workload-types.ts'
import { judge } from '../../src/slo/judge.ts'
import { reportOf, settingsOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'

const PROMISED = sloOf({ name: 'chat', ttftMs: 500, tpotMs: 50, overload: 'shed' })
const PATIENT = sloOf({ name: 'batch', overload: 'wait', maxWaitMs: 60_000 })

describe('the last replica behind an open breaker', () => {
  it('refuses promises at once with advice, keeps the patient and serves them when it is back', () => {
    const gate = createGate({ settings: settingsOf(), scheduler: createSluice(), judge })
    const handle = (event: Parameters<typeof gate.handle>[0], nowMs: number) => gate.handle(event, nowMs)
    handle({ kind: 'replicaChanged', replica: reportOf('r1', { state: 'down' }) }, 0)
    const shed = handle({ kind: 'offer', offer: someOffer({ slo: PROMISED }) }, 1)
    expect(shed).toContainEqual(expect.objectContaining({ kind: 'shed', reason: 'no_replica' }))
    expect(shed.find(({ kind }) => kind === 'shed')).toHaveProperty('retryAfterMs')
    for (let index = 0; index < 3; index += 1)
      handle({ kind: 'offer', offer: someOffer({ slo: PATIENT }) }, 2)
    expect(gate.state.waiting.requests).toBe(3)
    const back = handle({ kind: 'replicaChanged', replica: reportOf('r1', { state: 'ramping' }) }, 5000)
    expect(back.filter(({ kind }) => kind === 'dispatch')).toHaveLength(1)
    const live = handle({ kind: 'replicaChanged', replica: reportOf('r1') }, 15_000)
    expect([...back, ...live].filter(({ kind }) => kind === 'dispatch').length).toBeGreaterThanOrEqual(2)
    expect(gate.counts.shed).toBe(1)
  })
})

describe('work without a promise behind promises that fill the engine', () => {
  const MAX_WAIT_MS = 20_000
  const classes: Readonly<Record<string, SloClass>> = {
    chat: { ...PROMISED, ttftMs: 2000, tpotMs: 200 },
    batch: { ...PATIENT, maxWaitMs: MAX_WAIT_MS },
  }
  /** Two minutes of chat at about a tenth more than the engine can do, and a batch request each second. */
  function requests(): readonly WorkloadRequest[] {
    const stream = (className: string, everyMs: number, outputTokens: number): WorkloadRequest[] =>
      Array.from({ length: Math.floor(120_000 / everyMs) }, (_, index) => ({
        id: `${className}-${index}`,
        atMs: index * everyMs,
        className,
        promptTokens: 200,
        outputTokens,
        maxTokens: outputTokens,
      }))
    return [...stream('chat', 225, 100), ...stream('batch', 1000, 50)].sort((a, b) => a.atMs - b.atMs)
  }

  it('waits no longer than its class says, and is then told so', () => {
    const { outcomes } = simulate({
      replicas: [{ engine: { profile: profile('demo/slow') } }],
      requests: requests(),
      createScheduler: createSluice,
      classes,
    })
    const of = (name: string) =>
      outcomes.map(({ settlement }) => settlement).filter(({ offer }) => offer.slo.name === name)
    const chat = of('chat')
    // The engine is overloaded: promises alone are more than it can keep.
    expect(chat.filter(({ outcome }) => outcome === 'shed').length).toBeGreaterThan(chat.length / 20)
    const batch = of('batch')
    expect(batch).toHaveLength(120)
    for (const { outcome, shedReason, queueMs } of batch) {
      expect(queueMs).toBeLessThanOrEqual(MAX_WAIT_MS + 1)
      if (outcome === 'shed') expect(shedReason).toBe('wait_expired')
    }
    // What promises leave over is used all the same.
    expect(batch.filter(({ outcome }) => outcome === 'completed').length).toBeGreaterThan(0)
  })
})
