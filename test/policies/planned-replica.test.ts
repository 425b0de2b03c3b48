/** A request that the plan has on a replica without room waits for it rather than go where it would be later. */
import { describe, expect, it } from 'vitest'
import { createGate } from '../../src/core/gate.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { judge } from '../../src/slo/judge.ts'
import { reportOf, settingsOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { PRIOR } from './policy-rig.ts'

const SLO = sloOf({ ttftMs: 3000, tpotMs: 100, maxWaitMs: 10_000 })
const BLOCK_TOKENS = 256
const SHARED = Array.from({ length: 32 }, (_, block) => `shared ${block}`)
const SHARED_TOKENS = SHARED.length * BLOCK_TOKENS

/** A prompt that begins with the shared blocks. */
const warm = (ownTokens: number, receivedAtMs: number) =>
  someOffer({
    slo: SLO,
    promptTokens: SHARED_TOKENS + ownTokens,
    prefixHashes: SHARED,
    prefixBlockTokens: BLOCK_TOKENS,
    receivedAtMs,
  })

describe('a prompt that is cached on a busy replica beside an idle one', () => {
  it('waits there as long as that is sooner', () => {
    const scheduler = createSluice({ priors: { g: PRIOR } })
    const gate = createGate({ settings: settingsOf(), scheduler, judge })
    for (const replicaId of ['r0', 'r1'])
      gate.handle({ kind: 'replicaChanged', replica: reportOf(replicaId) }, 0)
    const goneTo = (effects: ReturnType<typeof gate.handle>) =>
      effects.flatMap((effect) => (effect.kind === 'dispatch' ? [[effect.replicaId, effect.permitId]] : []))
    const [[home, first] = []] = goneTo(gate.handle({ kind: 'offer', offer: warm(10, 0) }, 0))
    gate.handle({ kind: 'firstToken', permitId: Number(first) }, 600)
    const report = { outcome: 'completed', firstTokenAtMs: 600, endedAtMs: 610, contentEvents: 1 } as const
    gate.handle({ kind: 'settle', permitId: Number(first), report }, 610)
    // Some 200 ms of work there, so that its backlog is full.
    const [[next, second] = []] = goneTo(gate.handle({ kind: 'offer', offer: warm(3000, 620) }, 620))
    expect(next).toBe(home)
    expect(goneTo(gate.handle({ kind: 'offer', offer: warm(50, 630) }, 630))).toEqual([])
    const then = goneTo(gate.handle({ kind: 'firstToken', permitId: Number(second) }, 830))
    expect(then.map(([replicaId]) => replicaId)).toEqual([home])
  })

  it('goes to the idle one when that is sooner', () => {
    const scheduler = createSluice({ priors: { g: PRIOR } })
    const gate = createGate({ settings: settingsOf(), scheduler, judge })
    for (const replicaId of ['r0', 'r1'])
      gate.handle({ kind: 'replicaChanged', replica: reportOf(replicaId) }, 0)
    const replicas = [warm(10, 0), warm(10, 1)].map((offer) => {
      const [effect] = gate.handle({ kind: 'offer', offer }, offer.receivedAtMs)
      return effect?.kind === 'dispatch' ? effect.replicaId : undefined
    })
    expect(new Set(replicas).size).toBe(2)
  })
})
