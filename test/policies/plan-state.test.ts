/** What a plan makes of a job and a replica: the pause that keeps the pace, and deadlines that agents' answers leave. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import { newWaiter } from '../../src/core/waiting-room.ts'
import { decodeStepMs, prefillMs, prefillStallMs, stepModel } from '../../src/estimate/step-model.ts'
import { type Job, jobOf } from '../../src/policies/job.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { type Outlook, outlook, riskFactor } from '../../src/policies/outlook.ts'
import { depthTokens, plannedOption, usableSlots, virtualStart } from '../../src/policies/plan-state.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'
import { NOW_MS as LATER_MS, LEARNT, ledgerOf, PRIOR } from './policy-rig.ts'

const NOW_MS = 1000
/** The part of a TPOT target that plans use. */
const TPOT_USE_RATIO = 0.95

/** A replica with that many streams. */
function viewOf(learnt: Learnt, streams: number): Outlook {
  const ledger = new ReplicaLedger(reportOf('r1', { limits: { maxNumBatchedTokens: 2048 } }))
  for (let id = 0; id < streams; id++) {
    ledger.dispatch(inFlightOf(id, someOffer({ promptTokens: 300 }), { dispatchedAtMs: 0 }))
    ledger.firstToken(id, NOW_MS)
  }
  return outlook(ledger, learnt, 1, NOW_MS)
}

const job = (learnt: Learnt, promptTokens: number): Job => {
  const offer = someOffer({ promptTokens, receivedAtMs: NOW_MS, slo: sloOf({ ttftMs: 5000 }) })
  return jobOf(newWaiter(offer, NOW_MS), { value: 1, owed: false }, learnt, 12, NOW_MS, 0)
}

describe('the pause after a prefill', () => {
  it('brings the mean gap of those who stream back to their target, and is none where the target holds', () => {
    let paused = 0
    const learnt = new Learnt({ g: PRIOR })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        // One chunk.
        fc.integer({ min: 1, max: 1900 }),
        fc.integer({ min: 25, max: 200 }),
        (streams, promptTokens, tpotMs) => {
          const view = viewOf(learnt, streams)
          const { pauseMs } = plannedOption(job(learnt, promptTokens), view, 0, tpotMs)
          const stallMs = prefillStallMs(view.model, promptTokens, view.chunkTokens)
          const steps = pauseMs / riskFactor(view, promptTokens) / view.decodeStepMs
          const meanGapMs = (stallMs + (1 + steps) * view.decodeStepMs) / (1 + steps)
          const target = tpotMs * TPOT_USE_RATIO
          if (pauseMs === 0) expect(stallMs + view.decodeStepMs).toBeLessThanOrEqual(target + 1e-9)
          // Ten steps are the most that a plan keeps free.
          else if (steps < 10 - 1e-9) expect(meanGapMs).toBeCloseTo(target, 6)
          if (pauseMs > 0) paused++
        },
      ),
      { numRuns: 100, seed: 8 },
    )
    expect(paused).toBeGreaterThan(10)
  })

  it('is none where nobody streams', () => {
    const learnt = new Learnt({ g: PRIOR })
    expect(plannedOption(job(learnt, 2000), viewOf(learnt, 0), 0, 20).pauseMs).toBe(0)
  })
})

describe('the backlog that is kept in an engine', () => {
  const idle = viewOf(new Learnt({ g: PRIOR }), 0)

  it('is a sixth of the tightest TTFT in prefill, at most a chunk or 70 ms and never next to nothing', () => {
    fc.assert(
      fc.property(
        fc.option(fc.integer({ min: 1, max: 20_000 }), { nil: undefined }),
        fc.integer({ min: 1, max: 3 }),
        fc.double({ min: 0.001, max: 2, noNaN: true }),
        (ttftMs, instances, perPrefillTokenMs) => {
          const view = { ...idle, model: stepModel({ ...PRIOR, perPrefillTokenMs }) }
          const kept = depthTokens(view, ttftMs, instances) * instances
          expect(kept).toBeGreaterThanOrEqual(128)
          // What a full chunk takes is shared out over its tokens.
          const chunkMs = prefillMs(view.model, 2048, 2048, 0, 0)
          const most = 2048 * Math.max(1, 70 / chunkMs)
          expect(kept).toBeLessThanOrEqual(most + 1e-6)
          const keptMs = (kept / 2048) * chunkMs
          const wantedMs = (ttftMs ?? 3000) / 6
          if (kept > 128 && kept < most - 1e-6) expect(keptMs).toBeCloseTo(wantedMs, 6)
          if (kept === 128) expect(keptMs).toBeGreaterThanOrEqual(wantedMs - 1e-6)
          if (kept > most - 1e-6) expect(keptMs).toBeLessThanOrEqual(wantedMs + 1e-6)
        },
      ),
      { numRuns: 300, seed: 5 },
    )
  })
})

describe('the slots that a plan counts on', () => {
  const learnt = new Learnt({ g: PRIOR })

  it('are the largest batch that keeps the tightest pace with the prefills that renew it, one at least', () => {
    let bound = 0
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 80 }), fc.integer({ min: 5, max: 60 }), (streams, tpotMs) => {
        const view = viewOf(learnt, streams)
        const contextEach = view.ledger.contextTokens / streams
        const paceMs = (batch: number) =>
          decodeStepMs(view.model, batch, batch * contextEach) + (batch - 1) * view.renewalMs
        const slots = usableSlots(view, tpotMs)
        expect(usableSlots(view, Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY)
        if (slots > 1) expect(paceMs(slots)).toBeLessThanOrEqual(tpotMs * TPOT_USE_RATIO + 1e-9)
        expect(paceMs(slots + 1)).toBeGreaterThan(tpotMs * TPOT_USE_RATIO - 1e-9)
        if (slots > 1) bound++
      }),
      { numRuns: 200, seed: 5 },
    )
    expect(bound).toBeGreaterThan(50)
  })

  it('come free when their streams end, the first to end making no room while more run than there are slots', () => {
    const streams = fc.array(fc.integer({ min: 1, max: 199 }), { maxLength: 30 })
    fc.assert(
      fc.property(streams, fc.integer({ min: 1, max: 30 }), fc.nat(30), (made, slots, waiting) => {
        const rows = made.map((tokens) => ({ promptTokens: 300, sequences: 1, made: tokens }))
        const view = outlook(ledgerOf('r1', rows, slots), LEARNT, 1, LATER_MS)
        const { prefillFreeAtMs, slotsFreeAtMs } = virtualStart(view, LEARNT, slots, waiting, LATER_MS, 0)
        expect(prefillFreeAtMs).toBe(LATER_MS)
        if (made.length + waiting <= slots) {
          expect(slotsFreeAtMs).toBeUndefined()
          return
        }
        const endsAtMs = made
          .map((tokens) => LATER_MS + (200 - tokens) * view.decodeStepMs)
          .sort((one, other) => one - other)
        const free = new Array<number>(Math.max(0, slots - made.length)).fill(LATER_MS)
        expect(slotsFreeAtMs).toEqual([...free, ...endsAtMs.slice(Math.max(0, made.length - slots))])
      }),
      { numRuns: 200, seed: 5 },
    )
  })
})

const asked = fc.record({
  ttftMs: fc.option(fc.integer({ min: 1, max: 4000 }), { nil: undefined }),
  e2eMs: fc.integer({ min: 1, max: 20_000 }),
  waitedMs: fc.integer({ min: 0, max: 5000 }),
  stepMs: fc.integer({ min: 1, max: 80 }),
})

describe('a class with a target for the whole answer', () => {
  const learnt = new Learnt({})
  const read = (ttftMs: number | undefined, e2eMs: number, waitedMs: number, stepMs: number): Job => {
    const slo = sloOf({ e2eMs, ...(ttftMs === undefined ? {} : { ttftMs }) })
    const offer = someOffer({ slo, receivedAtMs: NOW_MS, maxOutputTokens: 300 })
    const waiter = newWaiter(offer, NOW_MS)
    return jobOf(waiter, { value: 1, owed: false }, learnt, stepMs, NOW_MS + waitedMs, 0)
  }

  it('leaves its answer the time that it is expected to take', () => {
    fc.assert(
      fc.property(asked, ({ ttftMs, e2eMs, waitedMs, stepMs }) => {
        const { late, deadlineAtMs = 0, breaksAtMs = 0 } = read(ttftMs, e2eMs, waitedMs, stepMs)
        if (late) return
        expect(deadlineAtMs).toBeLessThanOrEqual(breaksAtMs)
        expect(deadlineAtMs).toBeLessThan(NOW_MS + e2eMs)
        expect(deadlineAtMs).toBeLessThanOrEqual(NOW_MS + (ttftMs ?? Number.POSITIVE_INFINITY))
        const slower = read(ttftMs, e2eMs, waitedMs, stepMs + 10)
        expect(slower.deadlineAtMs).toBeLessThanOrEqual(deadlineAtMs)
      }),
      { numRuns: 300, seed: 4 },
    )
  })

  it('is called broken by the clock alone, and never by a guess of how long the answer will be', () => {
    fc.assert(
      fc.property(asked, ({ ttftMs, e2eMs, waitedMs, stepMs }) => {
        const lastMs = Math.min(e2eMs, ttftMs ?? Number.POSITIVE_INFINITY)
        expect(read(ttftMs, e2eMs, waitedMs, stepMs).late).toBe(waitedMs >= lastMs)
      }),
      { numRuns: 300, seed: 4 },
    )
  })
})
