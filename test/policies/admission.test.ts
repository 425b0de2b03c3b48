/** Each admission gate alone: a fuller replica or a bigger request never passes where a lesser one was refused. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { attentionPairs } from '../../src/core/attention.ts'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import type { ReplicaState } from '../../src/core/replica.ts'
import type { Offer } from '../../src/core/request.ts'
import { newWaiter } from '../../src/core/waiting-room.ts'
import { observeDecode, observePrefill, prefillStallMs } from '../../src/estimate/step-model.ts'
import type { Candidate } from '../../src/policies/admission/gate.ts'
import { admissionGates } from '../../src/policies/admission/gates.ts'
import { kvPeakRatio } from '../../src/policies/admission/kv-peak.ts'
import { jobOf, uncachedTokens } from '../../src/policies/job.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { outlook, stallMs } from '../../src/policies/outlook.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'

const NOW_MS = 1000

/** A learnt engine: 12 ms + 0.2 per sequence a step, and prompts of which a full chunk is cheaper than its parts. */
function learntEngine(perChunkMs: number): Learnt {
  const learnt = new Learnt({})
  const { model } = learnt.group('g')
  for (let i = 0; i < 300; i++) {
    const sequences = 1 + (i % 12)
    observeDecode(model, 8, 8 * (12 + 0.2 * sequences), sequences, 400 * sequences)
    const tokens = 100 + 90 * (i % 20)
    const chunks = Math.ceil(tokens / 500)
    const elapsedMs = chunks * (12 + 0.2 * sequences) + chunks * perChunkMs + 0.06 * tokens + 10
    const interval = { elapsedMs, starts: 1, prefillTokens: tokens, chunks, steps: chunks, sequences }
    observePrefill(model, { ...interval, pairs: attentionPairs(tokens), contextTokens: 400 * sequences })
  }
  return learnt
}

interface Running {
  readonly promptTokens: number
  readonly sequences: number
  readonly made: number
  readonly prefilling: boolean
}

const running: fc.Arbitrary<Running> = fc.record({
  promptTokens: fc.integer({ min: 1, max: 3000 }),
  sequences: fc.integer({ min: 1, max: 3 }),
  made: fc.integer({ min: 0, max: 60 }),
  prefilling: fc.boolean(),
})

const SLO = sloOf({ ttftMs: 2000, tpotMs: 30 })

function ledgerOf(rows: readonly Running[], state: ReplicaState = 'live'): ReplicaLedger {
  const limits = { maxNumSeqs: 12, maxNumBatchedTokens: 500, kvCapacityTokens: 30_000 }
  const ledger = new ReplicaLedger(reportOf('r1', { limits, state }))
  rows.forEach(({ promptTokens, sequences, made, prefilling }, id) => {
    const offer = someOffer({ promptTokens, sequences, slo: SLO, maxOutputTokens: 200, minOutputTokens: 200 })
    const inFlight = inFlightOf(id, offer, { dispatchedAtMs: NOW_MS - 500 })
    ledger.dispatch(inFlight)
    if (prefilling) return
    ledger.firstToken(id, NOW_MS - 400)
    if (made > 0) ledger.progress(inFlight, made, NOW_MS)
  })
  return ledger
}

function candidate(ledger: ReplicaLedger, offer: Offer, learnt: Learnt): Candidate {
  const view = outlook(ledger, learnt, 1, NOW_MS)
  const job = jobOf(newWaiter(offer, NOW_MS), { value: 1, owed: false }, learnt, 12, NOW_MS, 100)
  return {
    view,
    job,
    uncachedTokens: uncachedTokens(job, 'r1'),
    kvPeakRatio: () => kvPeakRatio(ledger, offer, learnt, 1, NOW_MS, 0),
    depthTokens: 500,
    roomRatio: 1,
    nowMs: NOW_MS,
  }
}

const ask = (promptTokens: number, sequences: number) =>
  someOffer({
    promptTokens,
    sequences,
    slo: SLO,
    receivedAtMs: NOW_MS,
    maxOutputTokens: 200,
    minOutputTokens: 200,
  })

describe.each(admissionGates.map((gate) => [gate.name, gate] as const))('the gate %s', (_, gate) => {
  it.each([-5, 3])(
    'I29 refuses a bigger request wherever it refuses a smaller one (%d ms a chunk)',
    (perChunkMs) => {
      const learnt = learntEngine(perChunkMs)
      fc.assert(
        fc.property(
          fc.array(running, { maxLength: 14 }),
          fc.integer({ min: 1, max: 4000 }),
          fc.integer({ min: 1, max: 4000 }),
          fc.integer({ min: 1, max: 3 }),
          (rows, tokens, more, sequences) => {
            const ledger = ledgerOf(rows)
            const small = gate.passes(candidate(ledger, ask(tokens, sequences), learnt))
            const large = gate.passes(candidate(ledger, ask(tokens + more, sequences + 1), learnt))
            expect(small || !large).toBe(true)
          },
        ),
        { numRuns: 120, seed: 2 },
      )
    },
  )

  it('I29 refuses on a fuller replica wherever it refuses on an emptier one', () => {
    const learnt = learntEngine(0)
    fc.assert(
      fc.property(
        fc.array(running, { maxLength: 14 }),
        running,
        fc.integer({ min: 1, max: 4000 }),
        (rows, newcomer, tokens) => {
          const offer = ask(tokens, 1)
          const emptier = gate.passes(candidate(ledgerOf(rows), offer, learnt))
          const fuller = gate.passes(candidate(ledgerOf([...rows, { ...newcomer, made: 0 }]), offer, learnt))
          // A running stream that is lost no longer vetoes; a slower batch may lose one, so SLACK is left out here.
          if (gate.name !== 'slack') expect(emptier || !fuller).toBe(true)
        },
      ),
      { numRuns: 120, seed: 2 },
    )
  })

  it('passes nothing that it refused when less of the room may be used', () => {
    const learnt = learntEngine(0)
    fc.assert(
      fc.property(fc.array(running, { maxLength: 14 }), fc.integer({ min: 1, max: 4000 }), (rows, tokens) => {
        const whole = candidate(ledgerOf(rows), ask(tokens, 1), learnt)
        expect(gate.passes(whole) || !gate.passes({ ...whole, roomRatio: 0.8 })).toBe(true)
      }),
      { numRuns: 80, seed: 2 },
    )
  })

  it('lets anything into an idle live replica', () => {
    const learnt = learntEngine(0)
    expect(gate.passes(candidate(ledgerOf([]), ask(200_000, 64), learnt))).toBe(true)
  })
})

describe('the gate state', () => {
  const [state] = admissionGates
  const passes = (ledger: ReplicaLedger) => state?.passes(candidate(ledger, ask(10, 1), learntEngine(0)))

  it('lets one prompt at a time into a ramping replica, and nothing into one that takes no work', () => {
    const one = { promptTokens: 10, sequences: 1, made: 0, prefilling: true }
    expect(passes(ledgerOf([], 'ramping'))).toBe(true)
    expect(passes(ledgerOf([one], 'ramping'))).toBe(false)
    expect(passes(ledgerOf([{ ...one, prefilling: false }], 'ramping'))).toBe(true)
    for (const closed of ['suspect', 'down', 'draining'] as const)
      expect(passes(ledgerOf([], closed))).toBe(false)
  })

  it('leaves a full engine alone until the hold ends, and a replica that failed the request for good', () => {
    const ledger = ledgerOf([])
    ledger.fullUntilAtMs = NOW_MS + 1
    expect(passes(ledger)).toBe(false)
    ledger.fullUntilAtMs = NOW_MS
    expect(passes(ledger)).toBe(true)
    const learnt = learntEngine(0)
    const barred = candidate(ledger, ask(10, 1), learnt)
    const waiter = { ...barred.job.waiter, excluded: ['r1'] }
    expect(state?.passes({ ...barred, job: { ...barred.job, waiter } })).toBe(false)
  })
})

describe('the stall of a prompt', () => {
  it.each([-5, 0, 3])(
    'never falls when the prompt grows, whatever a chunk is learnt to cost (%d ms)',
    (perChunkMs) => {
      const view = outlook(ledgerOf([]), learntEngine(perChunkMs), 1, NOW_MS)
      let before = 0
      for (let tokens = 1; tokens < 2600; tokens += 3) {
        const now = stallMs(view, tokens)
        expect(now).toBeGreaterThanOrEqual(before - 1e-9)
        before = now
      }
    },
  )

  it('is that of one chunk where chunks are unbounded', () => {
    const { model } = learntEngine(-5).group('g')
    expect(prefillStallMs(model, 500, Number.POSITIVE_INFINITY)).toBe(prefillStallMs(model, 500, 500))
    expect(prefillStallMs(model, 500, 500)).toBeGreaterThan(10)
  })
})

describe('the KV peak', () => {
  /** Every sequence makes a token a step, and a request frees all of its cache when it is done. */
  function bruteForce(ledger: ReplicaLedger, offer: Offer): number {
    const batch = [...ledger.prefilling.values(), ...ledger.decoding.values(), inFlightOf(99, offer)].map(
      (one) => ({
        used: one.offer.promptTokens + one.contentEvents,
        left: (one.offer.maxOutputTokens ?? 0) - one.contentEvents / one.offer.sequences,
        sequences: one.offer.sequences,
      }),
    )
    let peak = 0
    for (let step = 0; batch.some(({ left }) => left >= step); step++) {
      const alive = batch.filter(({ left }) => left >= step)
      peak = Math.max(
        peak,
        alive.reduce((sum, { used, sequences }) => sum + used + step * sequences, 0),
      )
    }
    return peak / 30_000
  }

  it('I29 equals a simulation of the batch token by token', () => {
    const learnt = new Learnt({})
    const exact = fc.record({
      promptTokens: fc.integer({ min: 1, max: 3000 }),
      sequences: fc.integer({ min: 1, max: 3 }),
      tokens: fc.integer({ min: 1, max: 400 }),
      doneTokens: fc.integer({ min: 0, max: 399 }),
    })
    fc.assert(
      fc.property(fc.array(exact, { maxLength: 10 }), exact, (rows, newcomer) => {
        const ledger = new ReplicaLedger(reportOf('r1', { limits: { kvCapacityTokens: 30_000 } }))
        const offerOf = ({ promptTokens, sequences, tokens }: typeof newcomer) =>
          someOffer({ promptTokens, sequences, maxOutputTokens: tokens, minOutputTokens: tokens })
        rows.forEach((row, id) => {
          const inFlight = inFlightOf(id, offerOf(row))
          ledger.dispatch(inFlight)
          if (row.doneTokens === 0) return
          ledger.firstToken(id, 1)
          ledger.progress(inFlight, Math.min(row.doneTokens, row.tokens - 1) * row.sequences, 2)
        })
        const offer = offerOf(newcomer)
        expect(kvPeakRatio(ledger, offer, learnt, 1, NOW_MS, 0)).toBeCloseTo(bruteForce(ledger, offer), 9)
        expect(kvPeakRatio(ledger, offer, learnt, 2, NOW_MS, 0)).toBeCloseTo(2 * bruteForce(ledger, offer), 9)
      }),
      { numRuns: 120 },
    )
  })

  it('is unknown where the capacity is', () => {
    const ledger = new ReplicaLedger(reportOf('r1', { limits: {} }))
    expect(kvPeakRatio(ledger, ask(10, 1), new Learnt({}), 1, NOW_MS, 0)).toBeUndefined()
  })
})
