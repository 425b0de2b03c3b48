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
