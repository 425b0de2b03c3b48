/** Who is told at once that cheaper work fills the engines, and when work without a promise finds room. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OverloadAction } from '../../src/core/request.ts'
import type { TrustState } from '../../src/core/scheduler.ts'
import { newWaiter } from '../../src/core/waiting-room.ts'
import { isProbe } from '../../src/estimate/probe.ts'
import { leavesRoom, opensInMs, outpricedJobs, readDemands } from '../../src/policies/early-shed.ts'
import type { Job } from '../../src/policies/job.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import type { PlanJob } from '../../src/policies/ordering/moore-hodgson.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { inFlightOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { type Flying, jobFor, ledgerOf, NOW_MS, PRIOR, roundOf } from './policy-rig.ts'

/** With it the price remembers 4 s of each replica. */
const TARGET_MS = 500
const BUSY: readonly Flying[] = [{ promptTokens: 100, sequences: 1, made: 3 }]
let pools = 0
/** A pool that nobody has asked anything of, with one busy replica and another. */
function newRound(trust: TrustState, idle: boolean) {
  const round = roundOf([BUSY, idle ? [] : BUSY], { trust, pool: `early-shed-${++pools}` })
  return { round, price: round.learnt.price(round.pool) }
}

/** One busy replica, of whom ten seconds of cheap work have just been asked. */
function crowdedRound() {
  const pool = `early-shed-${++pools}`
  const round = roundOf([BUSY], { trust: 'trusted', pool })
  const price = round.learnt.price(pool)
  for (let i = 0; i < 100; i++) price.arrived({ prefillMs: 100, slotMs: 0, value: 1 }, TARGET_MS, NOW_MS)
  return round
}

const trusts: fc.Arbitrary<TrustState> = fc.constantFrom('trusted', 'cautious', 'fallback')
const asked = fc.record({
  overload: fc.constantFrom<OverloadAction>('shed', 'demote', 'wait'),
  costMs: fc.integer({ min: 1, max: 2000 }),
  hasDemand: fc.boolean(),
})
const offered = fc.record({
  costMs: fc.integer({ min: 1, max: 2000 }),
  count: fc.integer({ min: 0, max: 60 }),
})

describe('a request that cheaper demand has outpriced', () => {
  it('is told at once, unless it is a probe, may wait, or nobody believes it, and never beside an idle replica', () => {
    const told: Record<TrustState, number> = { trusted: 0, cautious: 0, fallback: 0 }
    fc.assert(
      fc.property(
        fc.array(offered, { maxLength: 8 }),
        fc.array(asked, { minLength: 1, maxLength: 80, size: 'max' }),
        fc.boolean(),
        trusts,
        (streams, rows, idle, trust) => {
          const { round, price } = newRound(trust, idle)
          for (const { costMs, count } of streams)
            for (let i = 0; i < count; i++)
              price.arrived({ prefillMs: costMs, slotMs: 0, value: 1 }, TARGET_MS, NOW_MS)
          const demands = new Map()
          const jobs = rows.map(({ overload, costMs, hasDemand }) => {
            const job = jobFor(someOffer({ slo: sloOf({ ttftMs: 500, overload }) }))
            if (hasDemand) demands.set(job.waiter, { prefillMs: costMs, slotMs: 0, value: 1 })
            return job
          })
          const expected = jobs.filter(({ waiter }) => {
            const demand = demands.get(waiter)
            const mayGo = waiter.offer.slo.overload === 'shed' && !isProbe(waiter.offer.requestId)
            return mayGo && demand !== undefined && price.outprices(demand, 2, NOW_MS)
          })
          const gone = outpricedJobs(round, jobs, demands)
          expect(gone).toEqual(idle || trust === 'fallback' ? [] : expected)
          told[trust] += gone.length
        },
      ),
      { numRuns: 150, seed: 3 },
    )
    expect(told.trusted).toBeGreaterThan(50)
    expect(told.cautious).toBeGreaterThan(50)
    expect(told.fallback).toBe(0)
  })
})

describe('a request that waited in vain', () => {
  it('is told when cheaper demand will have faded, though no plan holds it any more', () => {
    const round = crowdedRound()
    const job = jobFor(someOffer({ slo: sloOf({ ttftMs: 500 }) }))
    expect(opensInMs(round, job)).toBe(0)
    const work = { replica: 0, prefillMs: 1500, latencyMs: 0, pauseMs: 0, residenceMs: 0, sequences: 1 }
    const planned: PlanJob<Job> = { job, value: 1, deadlineAtMs: NOW_MS, options: [work] }
    readDemands(round, [planned], [{ prefillFreeAtMs: NOW_MS, slotsFreeAtMs: undefined }])
    // Ten seconds of work, and that one's own, where four are remembered of one replica.
    const expectedMs = 4000 * Math.log(10_000 / 4000)
    expect(opensInMs(round, { ...job, deadlineAtMs: undefined } as Job)).toBeCloseTo(expectedMs, 6)
  })
})

describe('without the price', () => {
  it('nobody is told before a plan gives him up, and work without a promise finds room', () => {
    const priced = crowdedRound()
    const requestId = ['x', 'y'].find((id) => !isProbe(id)) ?? 'z'
    const job = jobFor(someOffer({ requestId, slo: sloOf({ ttftMs: 500, overload: 'shed' }) }))
    const demands = new Map([[job.waiter, { prefillMs: 1500, slotMs: 0, value: 1 }]])
    expect([outpricedJobs(priced, [job], demands), leavesRoom(priced)]).toEqual([[job], false])
    const without = { ...priced, without: new Set(['price'] as const) }
    expect([outpricedJobs(without, [job], demands), leavesRoom(without)]).toEqual([[], true])
  })
})

describe('work without a promise', () => {
  it('finds no room while promises take all of the engines’ time, and nothing else keeps it out', () => {
    let kept = 0
    fc.assert(
      fc.property(fc.array(offered, { maxLength: 8 }), fc.boolean(), trusts, (streams, idle, trust) => {
        const { round, price } = newRound(trust, idle)
        const allMs = streams.reduce((sum, { costMs, count }) => sum + costMs * count, 0)
        for (const { costMs, count } of streams)
          for (let i = 0; i < count; i++)
            price.arrived({ prefillMs: costMs, slotMs: 0, value: 1 }, TARGET_MS, NOW_MS)
        const takesAll = allMs > 2 * 8 * TARGET_MS
        expect(leavesRoom(round)).toBe(idle || trust === 'fallback' || !takesAll)
        if (!leavesRoom(round)) kept++
      }),
      { numRuns: 150, seed: 3 },
    )
    expect(kept).toBeGreaterThan(10)
  })
})

describe('what a plan lets in', () => {
  it('counts into the price once it has gone, wherever, and never while the plan only advises', () => {
    const learnt = new Learnt({ g: PRIOR })
    const scheduler = createSluice({ learnt })
    const { state } = roundOf([BUSY])
    const price = learnt.price('m')
    const demand = { prefillMs: 15, slotMs: 0, value: 1 }
    for (let n = 0; n < 300; n++) price.arrived(demand, TARGET_MS, NOW_MS)
    // What engines have taken they have room for, so a count makes some.
    const isFull = () => price.takesAll(1, NOW_MS)
    const waiter = newWaiter(someOffer({ receivedAtMs: NOW_MS, slo: sloOf({ ttftMs: 500 }) }), NOW_MS)
    state.waiting.add(waiter)
    const advise = (sentTo: string | undefined) => {
      expect(scheduler.plan(state, NOW_MS).intents).toMatchObject([{ kind: 'admit', replicaId: 'r0' }])
      if (sentTo === undefined) return
      scheduler.dispatched(inFlightOf(1, waiter.offer, { replicaId: sentTo }), ledgerOf(sentTo, []), NOW_MS)
    }
    for (let n = 0; n < 400; n++) advise(undefined)
    expect(isFull()).toBe(true)
    for (let n = 0; n < 400; n++) advise(n % 2 === 0 ? 'elsewhere' : 'r0')
    expect(isFull()).toBe(false)
  })
})
