/** What a class says of overload is kept: only who may be shed is shed, the others wait as long as they are willing to. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OverloadAction, RequestId } from '../../src/core/request.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { reportOf } from '../core/core-rig.ts'
import { GateWorld } from '../property/gate-world.ts'
import { offerOf, sloOf } from '../slo/facts.ts'

const PATIENCE_MS = 4000

interface Asked {
  readonly overload: OverloadAction
  readonly ttftMs: number
  readonly promptTokens: number
  readonly passMs: number
}

const asked: fc.Arbitrary<Asked> = fc.record({
  overload: fc.constantFrom('shed', 'demote', 'wait'),
  ttftMs: fc.constantFrom(100, 300, 1000),
  promptTokens: fc.integer({ min: 50, max: 6000 }),
  passMs: fc.constantFrom(0, 0, 0, 10, 60),
})

/** Remembers whom the plan sheds. */
function watched(scheduler: Scheduler, shed: Set<RequestId>): Scheduler {
  return {
    ...scheduler,
    plan(state, nowMs) {
      const plan = scheduler.plan(state, nowMs)
      for (const intent of plan.intents) if (intent.kind === 'shed') shed.add(intent.requestId)
      return plan
    },
  }
}

/** A replica that has shown often enough how fast it is: predictions are trusted. */
function trustedWorld(shed: Set<RequestId>): GateWorld {
  const scheduler = createSluice()
  const world = new GateWorld(watched(scheduler, shed))
  world.tell({ kind: 'replicaChanged', replica: reportOf('r1', { limits: { maxNumSeqs: 8 } }) })
  for (let i = 0; i < 80; i++) {
    const promptTokens = 100 + 150 * (i % 12)
    const slo = sloOf({ ttftMs: 60_000, maxWaitMs: 60_000 })
    world.tell({
      kind: 'offer',
      offer: offerOf(slo, { requestId: `p${i}`, receivedAtMs: world.nowMs, promptTokens }),
    })
    for (const permit of [...world.permits.values()]) {
      world.pass(30 + 0.2 * promptTokens)
      world.firstToken(permit)
      world.pass(160)
      world.progress([permit], 8)
      world.settle(permit, 'completed')
    }
  }
  expect(scheduler.trust('m')).toBe('trusted')
  return world
}

describe('overload', () => {
  it('sheds whom the class lets it shed, and nobody else before their patience is over', () => {
    let shedInAll = 0
    let waitedOut = 0
    fc.assert(
      fc.property(fc.array(asked, { minLength: 10, maxLength: 40, size: 'max' }), (rows) => {
        const shed = new Set<RequestId>()
        const world = trustedWorld(shed)
        for (const [i, { overload, ttftMs, promptTokens, passMs }] of rows.entries()) {
          const slo = sloOf({ ttftMs, overload, maxWaitMs: PATIENCE_MS })
          const change = { requestId: `a${i}`, receivedAtMs: world.nowMs, promptTokens, maxOutputTokens: 300 }
          world.tell({ kind: 'offer', offer: offerOf(slo, change) })
          world.pass(passMs)
        }
        // Nobody of the patient has waited so long yet.
        const patient = [...world.stories.values()].filter(({ offer }) => offer.slo.overload !== 'shed')
        for (const { offer, dispatches, settlements } of patient) {
          expect(dispatches + settlements > 0 || world.waiting.includes(offer), offer.requestId).toBe(true)
          expect(dispatches === 0 && settlements > 0, `${offer.requestId} is refused early`).toBe(false)
        }
        world.pass(PATIENCE_MS)
        for (const requestId of shed)
          expect(world.stories.get(requestId)?.offer.slo.overload, requestId).toBe('shed')
        shedInAll += shed.size
        waitedOut += patient.filter(
          ({ dispatches, settlements }) => dispatches === 0 && settlements > 0,
        ).length
        expect(world.waiting).toEqual([])
      }),
      { numRuns: 10, seed: 6 },
    )
    // Both ends were met, or the law would be empty.
    expect(shedInAll).toBeGreaterThan(20)
    expect(waitedOut).toBeGreaterThan(20)
  })
})
