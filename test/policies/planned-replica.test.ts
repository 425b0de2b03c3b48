/** A request that the plan has on a replica without room waits for it rather than go where it would be later. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createGate, type Gate } from '../../src/core/gate.ts'
import type { Offer } from '../../src/core/request.ts'
import { newWaiter } from '../../src/core/waiting-room.ts'
import { isHeadLate } from '../../src/estimate/ttft.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { hasRoom, openReplicas } from '../../src/policies/open-replicas.ts'
import { planPool } from '../../src/policies/plan-pool.ts'
import { planPromised } from '../../src/policies/promised.ts'
import { openRound, type Round } from '../../src/policies/round.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { readWaiters } from '../../src/policies/waiting-jobs.ts'
import { judge } from '../../src/slo/judge.ts'
import { reportOf, settingsOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { type Flying, flying, NOW_MS, PRIOR, roundOf } from './policy-rig.ts'

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
  readonly other: string

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
    this.other = this.home === 'r0' ? 'r1' : 'r0'
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
    expect(effects.filter(({ kind }) => kind === 'dispatch')).toMatchObject([{ replicaId: pair.other }])
  })

  it('goes to the idle one when its own has just called itself full', () => {
    const pair = new Pair()
    const home = pair.gate.state.replicas.get(pair.home)
    if (home !== undefined) home.fullUntilAtMs = 10_200
    expect(pair.offer(warm(50, 10_010))?.replicaId).toBe(pair.other)
  })

  it('goes to the idle one while no prediction is believed', () => {
    const pair = new Pair(false)
    pair.occupy()
    expect(pair.offer(warm(50, 10_010))?.replicaId).toBe(pair.other)
  })
})

/** Believes its predictions, and takes most of each prompt to be cached on the first replica. */
class Believed extends Learnt {
  constructor() {
    super({ g: PRIOR })
    this.prefixes.cachedTokens = ({ promptTokens }) => new Map([['r0', Math.floor(0.9 * promptTokens)]])
  }
  override trust() {
    return 'trusted' as const
  }
}

describe('whom a plan sends on', () => {
  const fleet = fc.array(fc.array(flying, { maxLength: 4 }), { minLength: 1, maxLength: 3 })
  /** More than its room, and less than what is cached there saves. */
  const BACKLOG: Flying = { promptTokens: 2000, sequences: 1, made: 0 }
  const asked = fc.record({
    promptTokens: fc.integer({ min: 100, max: 8000 }),
    sequences: fc.integer({ min: 1, max: 4 }),
    ttftMs: fc.constantFrom(1000, 5000),
  })
  const learnt = new Believed()

  /** Those that the plan keeps, in its order: whether their own replica has room for them, and whether any has. */
  function planOf({ views, ...question }: Round) {
    const { jobs } = readWaiters(question, views)
    const round = openRound(question, jobs, views)
    const open = openReplicas(round)
    return planPromised(round, jobs).plan.kept.map(({ job, replica }) => {
      const roomy = open.filter((each) => hasRoom(round, job, each, 1)).map(({ view }) => view)
      const own = views[replica]
      return {
        requestId: job.waiter.offer.requestId,
        own,
        roomy,
        isHome: own !== undefined && roomy.includes(own),
      }
    })
  }

  it('is never one whose own replica lacks room, whoever else has some', () => {
    let waited = 0
    fc.assert(
      fc.property(fleet, fc.array(asked, { minLength: 1, maxLength: 4 }), (rows, shapes) => {
        const round = { ...roundOf([[BACKLOG], ...rows]), learnt }
        for (const { ttftMs, ...shape } of shapes) {
          const slo = sloOf({ ttftMs, tpotMs: 100, maxWaitMs: 10_000, overload: 'wait' })
          round.state.waiting.add(newWaiter(someOffer({ ...shape, slo, receivedAtMs: NOW_MS }), NOW_MS))
        }
        const kept = planOf(round)
        const [intent] = planPool(round).intents
        const sent = kept.find(({ requestId }) => intent?.kind === 'admit' && intent.requestId === requestId)
        const reliable = ({ own }: (typeof kept)[number]) =>
          own !== undefined && !isHeadLate(own.ledger, NOW_MS)
        if (sent !== undefined && reliable(sent)) expect(sent.isHome).toBe(true)
        const [first] = kept
        if (first !== undefined && reliable(first) && !first.isHome && first.roomy.length > 0) waited++
      }),
      { numRuns: 300, seed: 6 },
    )
    expect(waited).toBeGreaterThan(20)
  })
})
