import { describe, expect, it } from 'vitest'
import { createGate } from '../../src/core/gate.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { judge } from '../../src/slo/judge.ts'
import { reportOf, settingsOf, someOffer } from '../core/core-rig.ts'

describe('a fleet of more replicas than a record keeps', () => {
  it('has the chosen one in the record, and its prediction in the books', () => {
    const gate = createGate({ settings: settingsOf(), scheduler: createSluice(), judge })
    const fleet = Array.from({ length: 12 }, (_, index) => `r${index}`)
    for (const replicaId of fleet) gate.handle({ kind: 'replicaChanged', replica: reportOf(replicaId) }, 0)
    const chosen = fleet.map(() => {
      const effects = gate.handle({ kind: 'offer', offer: someOffer({ promptTokens: 100 }) }, 1)
      const [effect] = effects
      if (effect?.kind !== 'dispatch') throw new Error(JSON.stringify(effects))
      expect(effect.record.candidates.map(({ replicaId }) => replicaId)).toContain(effect.replicaId)
      expect(effect.record.candidates.length).toBeLessThanOrEqual(8)
      return effect.replicaId
    })
    expect(new Set(chosen).size).toBe(12)
    for (const ledger of gate.state.replicas.values())
      for (const inFlight of ledger.prefilling.values()) expect(inFlight.predictedTtftMs).toBeGreaterThan(0)
  })
})

describe('a wide pool whose replicas are all taken', () => {
  /** Twenty replicas of one slot each, all taken at 0 ms by permits 1 to 20, and one request that waits: planned at 30 ms. */
  function takenFleet() {
    const gate = createGate({ settings: settingsOf(), scheduler: createSluice(), judge })
    for (let index = 0; index < 20; index++) {
      const replica = reportOf(`r${index}`, { limits: { maxNumSeqs: 1, maxNumBatchedTokens: 2048 } })
      gate.handle({ kind: 'replicaChanged', replica }, 0)
    }
    for (let index = 0; index < 20; index++) gate.handle({ kind: 'offer', offer: someOffer() }, 0)
    gate.handle({ kind: 'offer', offer: someOffer({ receivedAtMs: 1 }) }, 1)
    gate.handle({ kind: 'tick' }, 30)
    expect([gate.inFlight, gate.state.waiting.requests]).toEqual([20, 1])
    return gate
  }
  const ended = (permitId: number, endedAtMs: number) =>
    ({
      kind: 'settle',
      permitId,
      report: { outcome: 'completed', endedAtMs, contentEvents: 1 },
    }) as const

  it('asks to be called back for whoever came since its last plan', () => {
    const gate = takenFleet()
    const effects = gate.handle({ kind: 'offer', offer: someOffer({ receivedAtMs: 31 }) }, 31)
    expect(effects).toEqual([{ kind: 'wakeAt', atMs: 55 }])
  })

  it('gives freed places to those in the plan first, then to newcomers, without planning anew', () => {
    const gate = takenFleet()
    const offer = someOffer({ receivedAtMs: 31 })
    gate.handle({ kind: 'offer', offer }, 31)
    const first = gate.handle(ended(3, 32), 32).filter(({ kind }) => kind === 'dispatch')
    expect(first).toHaveLength(1)
    expect(gate.state.waiting.get(offer.requestId)?.offer).toBe(offer)
    const second = gate.handle(ended(9, 33), 33).filter(({ kind }) => kind === 'dispatch')
    expect(second).toMatchObject([{ requestId: offer.requestId, replicaId: 'r8' }])
  })

  it('tells newcomers within 25 ms that their deadline has gone', () => {
    const gate = takenFleet()
    const offer = someOffer({ receivedAtMs: -600 })
    const before = gate.handle({ kind: 'offer', offer }, 31)
    expect(before.map(({ kind }) => kind)).not.toContain('shed')
    const effects = gate.handle({ kind: 'tick' }, 55)
    expect(effects).toContainEqual(expect.objectContaining({ kind: 'shed', requestId: offer.requestId }))
  })
})
