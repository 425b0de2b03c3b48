/** What every scheduler of the registry owes the gate, ours and its rivals alike. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Offer, SloClass } from '../../src/core/request.ts'
import type { GateState, Plan, Scheduler } from '../../src/core/scheduler.ts'
import { schedulers } from '../../src/policies/registry.ts'
import { reportOf, someOffer } from '../core/core-rig.ts'
import { carryOut, openWorld, script, warmUp } from '../property/gate-script.ts'
import { GateWorld } from '../property/gate-world.ts'
import { sloOf } from '../slo/facts.ts'

function newScheduler(name: string): Scheduler {
  const entry = schedulers.get(name)
  if (entry === undefined) throw new Error(`no scheduler ${name}`)
  return entry.create()
}

/** Passes everything on and throws when a plan speaks of what it was not shown. */
function watched(scheduler: Scheduler): Scheduler {
  return {
    ...scheduler,
    plan(state, nowMs) {
      const plan = scheduler.plan(state, nowMs)
      check(plan, state, nowMs)
      return plan
    },
  }
}

function check(plan: Plan, state: GateState, nowMs: number): void {
  const named = new Set<string>()
  for (const intent of plan.intents) {
    const waiter = state.waiting.get(intent.requestId)
    if (waiter === undefined || named.has(intent.requestId)) throw new Error(`${intent.requestId} waits not`)
    named.add(intent.requestId)
    if (intent.kind === 'admit') {
      const report = state.replicas.get(intent.replicaId)?.report
      const takes = report?.state === 'live' || report?.state === 'ramping'
      if (
        !takes ||
        report?.pools.includes(waiter.offer.pool) !== true ||
        waiter.excluded.includes(intent.replicaId)
      )
        throw new Error(`${intent.replicaId} may not take ${intent.requestId}`)
    } else if (!(intent.retryAfterMs === undefined || intent.retryAfterMs >= 0))
      throw new Error('retry in the past')
    for (const view of intent.candidates) {
      const numbers = Object.values(view).filter((value) => typeof value === 'number')
      if (!numbers.every(Number.isFinite)) throw new Error(`a record of ${JSON.stringify(view)}`)
    }
  }
  if (plan.wakeAtMs !== undefined && !(plan.wakeAtMs > nowMs))
    throw new Error(`woken at ${plan.wakeAtMs}, now ${nowMs}`)
}

const ms = fc.constantFrom(undefined, 200, 1000, 5000)
const anySlo: fc.Arbitrary<SloClass> = fc
  .record({
    ttftMs: ms,
    e2eMs: ms,
    tpotMs: fc.constantFrom(undefined, 20, 100),
    overload: fc.constantFrom('shed', 'demote', 'wait'),
  })
  .map(({ ttftMs, e2eMs, tpotMs, overload }) =>
    sloOf({
      overload,
      maxWaitMs: 10_000,
      ...(ttftMs === undefined ? {} : { ttftMs }),
      ...(e2eMs === undefined ? {} : { e2eMs }),
      ...(tpotMs === undefined ? {} : { tpotMs }),
    }),
  )
const anyOffer: fc.Arbitrary<Offer> = fc
  .record({
    slo: anySlo,
    promptTokens: fc.integer({ min: 1, max: 20_000 }),
    sequences: fc.integer({ min: 1, max: 4 }),
    streamed: fc.boolean(),
    kind: fc.constantFrom('generate', 'compute'),
    maxOutputTokens: fc.integer({ min: 1, max: 4000 }),
  })
  .map((change) => someOffer(change))

describe.each([...schedulers.keys()])('the scheduler %s', (name) => {
  it('names only waiting requests and replicas that may take them, and is at rest after each event', () => {
    fc.assert(
      fc.property(script, fc.boolean(), (commands, warm) => {
        const scheduler = watched(newScheduler(name))
        const world = new GateWorld(scheduler)
        openWorld(world)
        if (warm) warmUp(world)
        for (const command of commands) {
          carryOut(world, command)
          // Tokens and time alone are looked at when the gate asked to be woken.
          if (command.op !== 'progress' && command.op !== 'pass')
            expect(scheduler.plan(world.gate.state, world.nowMs).intents).toEqual([])
        }
      }),
      { numRuns: 12, seed: 5, interruptAfterTimeLimit: 15_000, markInterruptAsFailure: false },
    )
  })

  it('I27 sheds nothing by prediction while it has seen nothing', () => {
    fc.assert(
      fc.property(
        fc.array(anyOffer, { minLength: 1, maxLength: 30 }),
        fc.boolean(),
        (offers, limitsKnown) => {
          const world = new GateWorld(newScheduler(name))
          const limits = limitsKnown
            ? { maxNumSeqs: 4, maxNumBatchedTokens: 512, kvCapacityTokens: 9000 }
            : {}
          world.tell({ kind: 'replicaChanged', replica: reportOf('r1', { limits }) })
          for (const offer of offers)
            for (const effect of world.tell({ kind: 'offer', offer })) expect(effect.kind).not.toBe('shed')
          world.pass(190)
          // The shortest promise is 200 ms, so until now no deadline has passed.
          expect(world.gate.counts.shed).toBe(0)
        },
      ),
      { numRuns: 30, seed: 5 },
    )
  })

  it('I27 always gives an idle live replica a request that it could serve', () => {
    fc.assert(
      fc.property(anyOffer, fc.boolean(), (offer, warm) => {
        const world = new GateWorld(newScheduler(name))
        world.tell({ kind: 'replicaChanged', replica: reportOf('r1') })
        if (warm) warmUp(world)
        // Learnt predictions may call a promise infeasible; what promises nothing can always be served.
        const slo = warm ? sloOf({ maxWaitMs: 1000, overload: offer.slo.overload }) : offer.slo
        const effects = world.tell({ kind: 'offer', offer: { ...offer, slo, receivedAtMs: world.nowMs } })
        expect(effects[0]?.kind).toBe('dispatch')
      }),
      { numRuns: 30, seed: 5 },
    )
  })

  it('refuses promises when no replica of the pool takes work, with a time to come back', () => {
    const world = new GateWorld(newScheduler(name))
    world.tell({ kind: 'replicaChanged', replica: reportOf('r1', { state: 'down' }) })
    const [shed] = world.tell({ kind: 'offer', offer: someOffer() })
    expect(shed).toMatchObject({ kind: 'shed', reason: 'no_replica' })
    expect(shed?.kind === 'shed' && (shed.retryAfterMs ?? 0) > 0).toBe(true)
  })

  it('shows its learnt state as plain JSON', () => {
    const scheduler = newScheduler(name)
    const world = new GateWorld(scheduler)
    openWorld(world)
    warmUp(world)
    const snapshot = scheduler.snapshot()
    expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot)
  })
})
