/** Single cases of the gate: reroutes, client deadlines, silent answers, timers, feedback, and shadow mode. */
import { describe, expect, it } from 'vitest'
import type { GateEffect } from '../../src/core/effects.ts'
import { createGate } from '../../src/core/gate.ts'
import type { GateOptions } from '../../src/core/gate-options.ts'
import { REROUTE_FLOOR_REQUESTS } from '../../src/core/gate-settings.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { createLeastOutstanding } from '../../src/policies/plain/least-outstanding.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { judge } from '../../src/slo/judge.ts'
import { sloOf } from '../slo/facts.ts'
import { reportOf, SLO, settingsOf, someOffer } from './core-rig.ts'

function gateWith(change: Partial<GateOptions> = {}, replicas: readonly string[] = ['r1', 'r2']) {
  const gate = createGate({ settings: settingsOf(), scheduler: createLeastOutstanding(), judge, ...change })
  for (const replicaId of replicas) gate.handle({ kind: 'replicaChanged', replica: reportOf(replicaId) }, 0)
  return gate
}

function dispatchOf(effects: readonly GateEffect[]) {
  const effect = effects.find(({ kind }) => kind === 'dispatch')
  if (effect?.kind !== 'dispatch') throw new Error(`no dispatch in ${JSON.stringify(effects)}`)
  return effect
}

/** Holds everything until it is let go. */
function holding(state: { open: boolean }): Scheduler {
  const inner = createLeastOutstanding()
  return { ...inner, plan: (gate, nowMs) => (state.open ? inner.plan(gate, nowMs) : { intents: [] }) }
}

describe('a reroute', () => {
  it('avoids the replica that failed it and keeps the time of its first entry', () => {
    const gate = gateWith()
    const first = dispatchOf(gate.handle({ kind: 'offer', offer: someOffer() }, 10))
    const effects = gate.handle({ kind: 'bounce', permitId: first.permitId, cause: 'reset' }, 40)
    expect(dispatchOf(effects)).toMatchObject({ attempt: 2, record: { attempt: 2, waitedMs: 30 } })
    expect(dispatchOf(effects).replicaId).not.toBe(first.replicaId)
  })

  it('is not made twice, nor where there is no other replica', () => {
    const gate = gateWith()
    const first = dispatchOf(gate.handle({ kind: 'offer', offer: someOffer() }, 0))
    const second = dispatchOf(gate.handle({ kind: 'bounce', permitId: first.permitId, cause: 'reset' }, 1))
    const kinds = (permitId: number, of = gate) =>
      of.handle({ kind: 'bounce', permitId, cause: 'reset' }, 2).map(({ kind }) => kind)
    expect(kinds(second.permitId)).toEqual(['fail', 'settled'])
    const lonely = gateWith({}, ['r1'])
    const only = dispatchOf(lonely.handle({ kind: 'offer', offer: someOffer() }, 0))
    expect(kinds(only.permitId, lonely)).toEqual(['fail', 'settled'])
  })

  it('stays within its share when every engine is full', () => {
    const gate = gateWith()
    const first = Array.from({ length: 50 }, () =>
      dispatchOf(gate.handle({ kind: 'offer', offer: someOffer() }, 0)),
    )
    for (const { permitId } of first) gate.handle({ kind: 'bounce', permitId, cause: 'engine_full' }, 100)
    // A tenth of the dispatches of the last ten seconds, the second attempts among them.
    expect(gate.counts).toMatchObject({ bounced: 50, rerouted: 5, failed: 45, dispatched: 55 })
  })

  it.each(['reset', 'silent', 'engine_error'] as const)(
    'is not spent by a replica that failed: %s',
    (cause) => {
      const gate = gateWith()
      const first = Array.from({ length: 12 }, () =>
        dispatchOf(gate.handle({ kind: 'offer', offer: someOffer() }, 0)),
      )
      const lost = first.filter(({ replicaId }) => replicaId === first[0]?.replicaId)
      for (const { permitId } of lost) gate.handle({ kind: 'bounce', permitId, cause }, 100)
      expect(lost.length).toBeGreaterThan(REROUTE_FLOOR_REQUESTS)
      expect(gate.counts).toMatchObject({ rerouted: lost.length, failed: 0 })
    },
  )

  it('leaves a full replica alone for 0.2 s, whatever ends there', () => {
    const gate = gateWith({ scheduler: createSluice() }, ['r1'])
    const slo = sloOf({ maxWaitMs: 60_000, overload: 'wait' })
    const sent = (effects: readonly GateEffect[]) => effects.filter(({ kind }) => kind === 'dispatch').length
    const offer = () => ({ kind: 'offer', offer: someOffer({ slo }) }) as const
    const running = dispatchOf(gate.handle(offer(), 0))
    gate.handle({ kind: 'firstToken', permitId: running.permitId }, 20)
    const refused = dispatchOf(gate.handle(offer(), 30))
    gate.handle({ kind: 'bounce', permitId: refused.permitId, cause: 'engine_full' }, 40)
    expect(sent(gate.handle(offer(), 50))).toBe(0)
    const report = { outcome: 'completed', endedAtMs: 60, contentEvents: 1 } as const
    expect(sent(gate.handle({ kind: 'settle', permitId: running.permitId, report }, 60))).toBe(0)
    expect(sent(gate.handle(offer(), 239))).toBe(0)
    expect(sent(gate.handle({ kind: 'tick' }, 240))).toBeGreaterThan(0)
    expect(gate.counts.failed).toBe(0)
  })

  it('leaves a waiter the patience that it had when it was sent: a failed attempt is no waiting', () => {
    const state = { open: false }
    const gate = gateWith({ scheduler: holding(state) })
    const slo = sloOf({ maxWaitMs: 1000, overload: 'wait' })
    gate.handle({ kind: 'offer', offer: someOffer({ slo }) }, 0)
    state.open = true
    const first = dispatchOf(gate.handle({ kind: 'tick' }, 400))
    state.open = false
    const effects = gate.handle({ kind: 'bounce', permitId: first.permitId, cause: 'engine_full' }, 5400)
    expect(effects).toEqual([{ kind: 'wakeAt', atMs: 6000 }])
    expect(gate.handle({ kind: 'tick' }, 5999)).toEqual([{ kind: 'wakeAt', atMs: 6000 }])
    expect(gate.handle({ kind: 'tick' }, 6000)).toMatchObject([{ kind: 'shed', reason: 'wait_expired' }, {}])
  })

  it('still ends when the client has given up', () => {
    const state = { open: true }
    const gate = gateWith({ scheduler: holding(state) })
    const slo = sloOf({ maxWaitMs: 60_000, overload: 'wait' })
    const first = dispatchOf(
      gate.handle({ kind: 'offer', offer: someOffer({ slo, clientDeadlineAtMs: 500 }) }, 0),
    )
    state.open = false
    const effects = gate.handle({ kind: 'bounce', permitId: first.permitId, cause: 'reset' }, 100)
    expect(effects).toContainEqual({ kind: 'wakeAt', atMs: 500 })
    expect(gate.handle({ kind: 'tick' }, 500)).toMatchObject([{ kind: 'shed', reason: 'wait_expired' }, {}])
  })
})

describe('an offer', () => {
  it('of an id that waits already throws and changes nothing', () => {
    const gate = gateWith({
      scheduler: holding({ open: false }),
      settings: settingsOf({ tenants: { t: { concurrentRequests: 2 } } }),
    })
    const offer = someOffer()
    gate.handle({ kind: 'offer', offer }, 0)
    expect(() => gate.handle({ kind: 'offer', offer }, 1)).toThrow(/waits already/)
    expect(gate.counts.offered).toBe(1)
    gate.handle({ kind: 'offer', offer: someOffer() }, 2)
    expect(gate.counts).toMatchObject({ offered: 2, shed: 0 })
  })

  it('is refused over the tenant’s limit, with the time to come back, and takes no place', () => {
    const gate = gateWith({ settings: settingsOf({ tenants: { t: { requestsPerSec: 1 } } }) })
    gate.handle({ kind: 'offer', offer: someOffer() }, 0)
    const effects = gate.handle({ kind: 'offer', offer: someOffer() }, 250)
    expect(effects).toMatchObject([
      { kind: 'shed', reason: 'tenant_limit', retryAfterMs: 750 },
      { kind: 'settled', settlement: { outcome: 'shed', attempts: 0, verdict: { kind: 'excluded' } } },
    ])
  })

  it('is refused by a full waiting room with a computed time to come back', () => {
    const settings = settingsOf({ waiting: { requests: 1, bytes: 1e6, tokens: 1e6 } })
    const gate = gateWith({ settings, scheduler: holding({ open: false }) })
    gate.handle({ kind: 'offer', offer: someOffer() }, 0)
    const [shed] = gate.handle({ kind: 'offer', offer: someOffer() }, 1)
    expect(shed).toMatchObject({ kind: 'shed', reason: 'waiting_full' })
    expect(shed?.kind === 'shed' && (shed.retryAfterMs ?? 0) > 0).toBe(true)
  })

  it('goes on to an open replica however full the waiting room is', () => {
    const settings = settingsOf({ waiting: { requests: 1, bytes: 1e6, tokens: 1e6 } })
    const valve = { open: false }
    const gate = gateWith({ settings, scheduler: holding(valve) }, ['r1'])
    gate.handle({ kind: 'offer', offer: someOffer() }, 0)
    valve.open = true
    const effects = gate.handle({ kind: 'offer', offer: someOffer() }, 1)
    expect(effects.filter(({ kind }) => kind === 'dispatch')).toHaveLength(2)
    expect(effects.filter(({ kind }) => kind === 'shed')).toEqual([])
  })

  it('takes the place of one to whom nothing is promised', () => {
    const settings = settingsOf({ waiting: { requests: 1, bytes: 1e6, tokens: 1e6 } })
    const gate = gateWith({ settings, scheduler: holding({ open: false }) })
    const batch = someOffer({ slo: sloOf({ overload: 'wait', maxWaitMs: 60_000 }) })
    gate.handle({ kind: 'offer', offer: batch }, 0)
    const effects = gate.handle({ kind: 'offer', offer: someOffer() }, 1)
    expect(effects).toMatchObject([
      { kind: 'shed', requestId: batch.requestId, reason: 'waiting_full' },
      { kind: 'settled', settlement: { outcome: 'shed', shedReason: 'waiting_full' } },
      { kind: 'wakeAt' },
    ])
    expect(gate.state.waiting.requests).toBe(1)
  })
})

describe('progress', () => {
  it('that is no number of events books nothing', () => {
    const gate = gateWith({}, ['r1'])
    const { permitId } = dispatchOf(
      gate.handle({ kind: 'offer', offer: someOffer({ promptTokens: 100 }) }, 0),
    )
    gate.handle({ kind: 'firstToken', permitId }, 10)
    for (const odd of [Number.NaN, -3, 0])
      gate.handle({ kind: 'progress', permitIds: [permitId, 999], contentEvents: [odd, 4] }, 20)
    expect(gate.state.replicas.get('r1')?.contextTokens).toBe(100)
  })
})

describe('a stream behind whose first token nothing can be read', () => {
  it('decodes and is not counted among those whose tokens are told', () => {
    const gate = gateWith({}, ['r1'])
    const { permitId } = dispatchOf(gate.handle({ kind: 'offer', offer: someOffer() }, 0))
    gate.handle({ kind: 'firstToken', permitId, opaque: true }, 10)
    const ledger = gate.state.replicas.get('r1')
    expect([ledger?.decodingSequences, ledger?.visibleSequences]).toEqual([1, 0])
  })
})

describe('an answer that does not stream', () => {
  it('is assumed to decode when its prefill should be over', () => {
    const gate = gateWith({}, ['r1'])
    gate.handle({ kind: 'offer', offer: someOffer({ streamed: false }) }, 0)
    const ledger = gate.state.replicas.get('r1')
    gate.handle({ kind: 'tick' }, 499)
    expect(ledger?.prefilling.size).toBe(1)
    gate.handle({ kind: 'tick' }, 500)
    expect([ledger?.prefilling.size, ledger?.decoding.size]).toEqual([0, 1])
  })
})

describe('the timer', () => {
  it('is wished for again when a tick came too early', () => {
    const gate = gateWith({ scheduler: holding({ open: false }) })
    expect(gate.handle({ kind: 'offer', offer: someOffer() }, 0)).toContainEqual({
      kind: 'wakeAt',
      atMs: 1000,
    })
    expect(gate.handle({ kind: 'tick' }, 990)).toContainEqual({ kind: 'wakeAt', atMs: 1000 })
  })
})

describe('feedback', () => {
  it('never speaks of a replica again once it was forgotten', () => {
    const heard: string[] = []
    const scheduler: Scheduler = {
      ...createLeastOutstanding(),
      settled: (_, ledger) => heard.push(`settled ${ledger.replicaId}`),
      bounced: (_, ledger) => heard.push(`bounced ${ledger.replicaId}`),
      replicaReset: (replicaId) => heard.push(`reset ${replicaId}`),
    }
    const gate = gateWith({ scheduler })
    const permits = [1, 2].map(
      () => dispatchOf(gate.handle({ kind: 'offer', offer: someOffer() }, 0)).permitId,
    )
    gate.handle({ kind: 'replicaRemoved', replicaId: 'r1' }, 1)
    gate.handle({ kind: 'replicaRemoved', replicaId: 'r2' }, 1)
    expect(heard).toEqual([])
    const report = { outcome: 'client_left', endedAtMs: 2, contentEvents: 0 } as const
    gate.handle({ kind: 'settle', permitId: permits[0] ?? 0, report }, 2)
    gate.handle({ kind: 'bounce', permitId: permits[1] ?? 0, cause: 'reset' }, 2)
    expect(heard).toEqual(['settled r1', 'reset r1', 'bounced r2', 'reset r2'])
    expect(gate.state.replicas.size).toBe(0)
  })

  it('forgets what a restarted engine had cached, and lets it start at once', () => {
    const resets: string[] = []
    const scheduler = { ...createLeastOutstanding(), replicaReset: (id: string) => resets.push(id) }
    const gate = gateWith({ scheduler }, ['r1'])
    gate.handle({ kind: 'replicaChanged', replica: reportOf('r1', { state: 'ramping' }) }, 1)
    expect(resets).toEqual([])
    gate.handle({ kind: 'replicaChanged', replica: reportOf('r1', { generation: 1 }) }, 2)
    expect(resets).toEqual(['r1'])
  })
})

describe('shadow mode', () => {
  const shadow = () => {
    const advisor = createSluice()
    return { gate: gateWith({ advisor }, ['r1']), advisor }
  }

  it('I18 decides by the active scheduler at once and records what the advisor would have done', () => {
    const { gate } = shadow()
    const first = dispatchOf(gate.handle({ kind: 'offer', offer: someOffer({ promptTokens: 1800 }) }, 0))
    expect(first.record.wouldHave).toEqual({ kind: 'admit', replicaId: 'r1', permitId: 0 })
    expect(first.record.verdict).toMatchObject({ kind: 'admit', permitId: first.permitId })
    // A full chunk is being prefilled, so the advisor would have held this one back.
    const second = dispatchOf(gate.handle({ kind: 'offer', offer: someOffer({ promptTokens: 1800 }) }, 1))
    expect(second.record.wouldHave?.kind).toBe('wait')
    expect(gate.inFlight).toBe(2)
  })

  it('books what the advisor predicted, so that its errors can be seen', () => {
    const { gate } = shadow()
    const offer = someOffer({ promptTokens: 640, prefixHashes: ['a', 'b'], prefixBlockTokens: 256 })
    const first = dispatchOf(gate.handle({ kind: 'offer', offer }, 0))
    expect(first.record.candidates[0]?.predictedTtftMs).toBeGreaterThan(0)
    gate.handle({ kind: 'firstToken', permitId: first.permitId }, 60)
    const report = {
      outcome: 'completed',
      endedAtMs: 90,
      firstTokenAtMs: 60,
      lastTokenAtMs: 90,
      contentEvents: 3,
    } as const
    const [settled] = gate.handle({ kind: 'settle', permitId: first.permitId, report }, 90)
    expect(settled?.kind === 'settled' && settled.settlement.predictedTtftMs).toBe(
      first.record.candidates[0]?.predictedTtftMs,
    )
    gate.handle({ kind: 'offer', offer: { ...offer, requestId: 'again' } }, 100)
    expect(gate.state.replicas.get('r1')?.backlogTokens).toBe(640 - 512)
  })

  it('books what is cached there too where the advisor would have waited, or gone elsewhere', () => {
    const gate = gateWith({ advisor: createSluice() })
    const cached = { promptTokens: 640, prefixHashes: ['a', 'b'], prefixBlockTokens: 256 }
    const first = dispatchOf(gate.handle({ kind: 'offer', offer: someOffer(cached) }, 0))
    const { replicaId } = first
    gate.handle({ kind: 'firstToken', permitId: first.permitId }, 60)
    const report = { outcome: 'completed', endedAtMs: 90, contentEvents: 3 } as const
    gate.handle({ kind: 'settle', permitId: first.permitId, report }, 90)
    for (let i = 0; i < 2; i++) gate.handle({ kind: 'offer', offer: someOffer({ promptTokens: 4000 }) }, 100)
    const backlog = () => gate.state.replicas.get(replicaId)?.backlogTokens ?? 0
    const before = backlog()
    const again = dispatchOf(gate.handle({ kind: 'offer', offer: someOffer(cached) }, 100))
    expect(again.replicaId).toBe(replicaId)
    expect(again.record.wouldHave?.kind).toBe('wait')
    expect(backlog() - before).toBe(640 - 512)
    expect(again.record.candidates).toMatchObject([{ replicaId, uncachedTokens: 128 }])
  })

  it('teaches the advisor from traffic that it did not send', () => {
    const { gate, advisor } = shadow()
    let nowMs = 0
    for (let i = 0; i < 30; i++) {
      const { permitId } = dispatchOf(
        gate.handle(
          {
            kind: 'offer',
            offer: someOffer({ promptTokens: 500 + 100 * (i % 8), receivedAtMs: nowMs, slo: SLO }),
          },
          nowMs,
        ),
      )
      nowMs += 20 + 0.05 * (500 + 100 * (i % 8))
      gate.handle({ kind: 'firstToken', permitId }, nowMs)
      for (let turn = 0; turn < 5; turn++) {
        nowMs += 100
        gate.handle({ kind: 'progress', permitIds: [permitId], contentEvents: [10] }, nowMs)
      }
      const report = {
        outcome: 'completed',
        endedAtMs: nowMs,
        contentEvents: 50,
        usage: { outputTokens: 50 },
      } as const
      gate.handle({ kind: 'settle', permitId, report }, nowMs)
      nowMs += 50
    }
    expect(advisor.trust('m')).not.toBe('fallback')
    expect(
      dispatchOf(gate.handle({ kind: 'offer', offer: someOffer({ receivedAtMs: nowMs }) }, nowMs)).record
        .trusted,
    ).toBe(true)
  })
})
