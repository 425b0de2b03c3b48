/** A request that the plan has on a replica without room waits for it rather than go where it would be later. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createGate, type Gate } from '../../src/core/gate.ts'
import type { Offer } from '../../src/core/request.ts'
import { newWaiter } from '../../src/core/waiting-room.ts'
import { hasRoom, openReplicas } from '../../src/policies/open-replicas.ts'
import { planPool } from '../../src/policies/plan-pool.ts'
import { planPromised } from '../../src/policies/promised.ts'
import { openRound, type Round } from '../../src/policies/round.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { readWaiters } from '../../src/policies/waiting-jobs.ts'
import { judge } from '../../src/slo/judge.ts'
import { reportOf, settingsOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { flying, NOW_MS, PRIOR, roundOf } from './policy-rig.ts'

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

/** Two replicas that are seen to be as fast as believed, with the shared prompt cached on `home`; the clock stands at 10 s. */
class Pair {
  readonly gate: Gate
  readonly home: string

  constructor(isLearnt = true) {
    this.gate = createGate({
      settings: settingsOf(),
      scheduler: createSluice({ priors: { g: PRIOR } }),
      judge,
    })
    for (const replicaId of ['r0', 'r1'])
      this.gate.handle({ kind: 'replicaChanged', replica: reportOf(replicaId) }, 0)
    for (let nowMs = 100; isLearnt && nowMs < 7000; nowMs += 100)
      this.#serve(someOffer({ promptTokens: 100, receivedAtMs: nowMs }), nowMs)
    this.home = this.#serve(warm(10, 7000), 7000)
  }

  /** Where the offer goes and by which permit; undefined where it waits. */
  offer(offer: Offer) {
    const effects = this.gate.handle({ kind: 'offer', offer }, offer.receivedAtMs)
    return effects.find((effect) => effect.kind === 'dispatch')
  }

  /** Serves it in the time that was predicted. */
  #serve(offer: Offer, nowMs: number): string {
    const { permitId, replicaId, record } = this.offer(offer) ?? unsent()
    const chosen = record.candidates.find((candidate) => candidate.replicaId === replicaId)
    const firstTokenAtMs = nowMs + (chosen?.predictedTtftMs ?? 0)
    this.gate.handle({ kind: 'firstToken', permitId }, firstTokenAtMs)
    const endedAtMs = firstTokenAtMs + 10
    const report = { outcome: 'completed', firstTokenAtMs, endedAtMs, contentEvents: 1 } as const
    this.gate.handle({ kind: 'settle', permitId, report }, endedAtMs)
    return replicaId
  }

  /** Some 200 ms of work for `home`, so that its backlog is full. */
  occupy() {
    const sent = this.offer(warm(3000, 10_000)) ?? unsent()
    expect(sent.replicaId).toBe(this.home)
    return sent.permitId
  }
}

function unsent(): never {
  throw new Error('nothing was dispatched')
}

describe('a prompt that is cached on a busy replica beside an idle one', () => {
  it('waits there as long as that is sooner', () => {
    const pair = new Pair()
    const permitId = pair.occupy()
    expect(pair.offer(warm(50, 10_010))).toBeUndefined()
    const effects = pair.gate.handle({ kind: 'firstToken', permitId }, 10_200)
    expect(effects).toContainEqual(expect.objectContaining({ kind: 'dispatch', replicaId: pair.home }))
  })

  it('is looked at again soon, whatever happens or does not', () => {
    const pair = new Pair()
    pair.occupy()
    const effects = pair.gate.handle({ kind: 'offer', offer: warm(50, 10_010) }, 10_010)
    const wake = effects.find((effect) => effect.kind === 'wakeAt')
    expect(wake?.kind === 'wakeAt' && wake.atMs).toBeLessThanOrEqual(10_050)
  })

  it('goes to the idle one once the busy one does not get on with its prompt', () => {
    const pair = new Pair()
    pair.occupy()
    expect(pair.offer(warm(2000, 10_010))).toBeUndefined()
    const effects = pair.gate.handle({ kind: 'tick' }, 10_900)
    expect(effects.filter(({ kind }) => kind === 'dispatch')).toHaveLength(1)
    expect(effects).not.toContainEqual(expect.objectContaining({ kind: 'dispatch', replicaId: pair.home }))
  })

  it('goes to the idle one when the busy one has called itself full', () => {
    const pair = new Pair()
    const permitId = pair.occupy()
    pair.gate.handle({ kind: 'bounce', permitId, cause: 'engine_full' }, 10_005)
    expect(pair.offer(warm(50, 10_010))?.replicaId).not.toBe(pair.home)
  })

  it('goes to the idle one while no prediction is believed', () => {
    const pair = new Pair(false)
    pair.occupy()
    expect(pair.offer(warm(50, 10_010))?.replicaId).not.toBe(pair.home)
  })
})

describe('whom a plan sends on', () => {
  const fleet = fc.array(fc.array(flying, { maxLength: 10 }), { minLength: 2, maxLength: 4 })
  const asked = fc.record({
    promptTokens: fc.oneof(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 4000 })),
    sequences: fc.integer({ min: 1, max: 4 }),
    ttftMs: fc.constantFrom(300, 1000, 5000),
  })

  /** Where the plan has each of those that it keeps, and who has room for whom before anybody goes. */
  function planOf({ views, ...question }: Round) {
    const { jobs } = readWaiters(question, views)
    const round = openRound(question, jobs, views)
    const open = openReplicas(round)
    return planPromised(round, jobs).plan.kept.map(({ job, replica }) => ({
      requestId: job.waiter.offer.requestId,
      plannedId: views[replica]?.ledger.replicaId,
      roomy: open.filter((each) => hasRoom(round, job, each, 1)).map(({ view }) => view.ledger.replicaId),
    }))
  }

  it('is never one whose own replica lacks room, whoever else has some', () => {
    let waited = 0
    fc.assert(
      fc.property(fleet, fc.array(asked, { minLength: 1, maxLength: 5 }), (rows, shapes) => {
        // Books of its own, so that no plan before is recalled.
        const round = roundOf(rows, { pool: 'm' })
        for (const { ttftMs, ...shape } of shapes) {
          const slo = sloOf({ ttftMs, tpotMs: 100, maxWaitMs: 10_000 })
          round.state.waiting.add(newWaiter(someOffer({ ...shape, slo, receivedAtMs: NOW_MS }), NOW_MS))
        }
        const kept = planOf(round)
        const [intent] = planPool(round).intents
        for (const { requestId, plannedId, roomy } of kept) {
          if (plannedId === undefined || roomy.includes(plannedId)) continue
          if (roomy.length > 0) waited++
          expect(intent?.kind === 'admit' && intent.requestId === requestId).toBe(false)
        }
      }),
      { numRuns: 300, seed: 6 },
    )
    expect(waited).toBeGreaterThan(20)
  })
})
