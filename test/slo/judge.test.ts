/** The verdict table, row by row, and the laws that every row obeys. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JudgeFacts, SloVerdict } from '../../src/core/records.ts'
import type { Offer, SloClass } from '../../src/core/request.ts'
import { EXCLUSION_CAUSES, judge, VERDICT_CAUSES, wholeAnswerTargetMs } from '../../src/slo/judge.ts'
import { anyFacts, offerOf, sloOf } from './facts.ts'

const chat = sloOf({ ttftMs: 500, tpotMs: 50 })
const agent = sloOf({ ttftMs: 2000, ttftPer1kTokensMs: 250, e2eMs: 20_000 })

type Change = Partial<Omit<JudgeFacts, 'offer'>> & { slo?: SloClass; offer?: Partial<Offer> }

function factsOf({ slo = chat, offer, ...rest }: Change): JudgeFacts {
  return {
    offer: offerOf(slo, offer),
    outcome: 'completed',
    e2eMs: 3000,
    promptTokens: 200,
    outputTokens: 50,
    slowReader: false,
    ...rest,
  }
}

const served = { ttftMs: 400, tpotMs: 40 }

const rows: ReadonlyArray<[string, Change, SloVerdict]> = [
  ['completes with each target met', served, { kind: 'good', ttftGood: true, tpotGood: true }],
  [
    'meets a target at its very value',
    { ttftMs: 500, tpotMs: 50 },
    { kind: 'good', ttftGood: true, tpotGood: true },
  ],
  [
    'is late to its first token',
    { ...served, ttftMs: 500.1 },
    { kind: 'bad', cause: 'ttft', ttftGood: false, tpotGood: true },
  ],
  [
    'decodes too slowly',
    { ...served, tpotMs: 50.1 },
    { kind: 'bad', cause: 'tpot', ttftGood: true, tpotGood: false },
  ],
  ['has one token, so no TPOT', { ttftMs: 400, outputTokens: 1 }, { kind: 'good', ttftGood: true }],
  ['has no token at all', { outputTokens: 0 }, { kind: 'bad', cause: 'empty', ttftGood: false }],
  [
    'has a long prompt whose target grew',
    { slo: agent, ttftMs: 4400, promptTokens: 10_000 },
    { kind: 'good', ttftGood: true, e2eGood: true },
  ],
  [
    'has a short prompt and the same TTFT',
    { slo: agent, ttftMs: 4400, promptTokens: 100 },
    { kind: 'bad', cause: 'ttft', ttftGood: false, e2eGood: true },
  ],
  [
    'ends too late',
    { slo: agent, ttftMs: 400, e2eMs: 20_001 },
    { kind: 'bad', cause: 'e2e', ttftGood: true, e2eGood: false },
  ],
  ['is shed', { outcome: 'shed', shedReason: 'slo_unreachable', e2eMs: 1 }, { kind: 'bad', cause: 'shed' }],
  [
    'is shed as infeasible',
    { outcome: 'shed', shedReason: 'infeasible', e2eMs: 1 },
    { kind: 'bad', cause: 'shed' },
  ],
  [
    'hits its tenant limit',
    { outcome: 'shed', shedReason: 'tenant_limit', e2eMs: 1 },
    { kind: 'excluded', cause: 'tenant_limit' },
  ],
  [
    'is truncated',
    { ...served, outcome: 'truncated' },
    { kind: 'bad', cause: 'truncated', ttftGood: true, tpotGood: true },
  ],
  ['fails fast', { outcome: 'upstream_failed', e2eMs: 20 }, { kind: 'bad', cause: 'failed' }],
  [
    'fails after its first token was due',
    { outcome: 'upstream_failed', e2eMs: 900 },
    { kind: 'bad', cause: 'failed', ttftGood: false },
  ],
  [
    'times out',
    { outcome: 'upstream_timeout', e2eMs: 120_000 },
    { kind: 'bad', cause: 'timeout', ttftGood: false },
  ],
  [
    'times out under an e2e target',
    { slo: agent, outcome: 'upstream_timeout', e2eMs: 120_000 },
    { kind: 'bad', cause: 'timeout', ttftGood: false, e2eGood: false },
  ],
  [
    'is ended by our shutdown',
    { ...served, outcome: 'draining' },
    { kind: 'bad', cause: 'draining', ttftGood: true, tpotGood: true },
  ],
  [
    'is the client’s own 4xx',
    { outcome: 'client_error', e2eMs: 9000 },
    { kind: 'excluded', cause: 'client_error' },
  ],
  [
    'has a class without targets',
    { slo: sloOf({}), outcome: 'upstream_failed' },
    { kind: 'excluded', cause: 'no_targets' },
  ],
  [
    'only asks for its tokens to be counted',
    { offer: { streamed: false, kind: 'convert' }, outputTokens: 0, e2eMs: 5 },
    { kind: 'excluded', cause: 'no_targets' },
  ],
  [
    'is refused such a count',
    { offer: { streamed: false, kind: 'convert' }, outcome: 'shed', shedReason: 'slo_unreachable', e2eMs: 1 },
    { kind: 'excluded', cause: 'no_targets' },
  ],
  [
    'left after a good first token',
    { ...served, outcome: 'client_left' },
    { kind: 'good', ttftGood: true, tpotGood: true },
  ],
  [
    'left after a late first token',
    { ttftMs: 600, outcome: 'client_left' },
    { kind: 'bad', cause: 'ttft', ttftGood: false },
  ],
  [
    'left while decode crawled',
    { ...served, tpotMs: 90, outcome: 'client_left' },
    { kind: 'bad', cause: 'tpot', ttftGood: true, tpotGood: false },
  ],
  [
    'left before the first token was due',
    { outcome: 'client_left', e2eMs: 500 },
    { kind: 'excluded', cause: 'left_early' },
  ],
  [
    'left after the first token was due',
    { outcome: 'client_left', e2eMs: 501 },
    { kind: 'bad', cause: 'left_late', ttftGood: false },
  ],
  [
    'left the waiting room early',
    { outcome: 'cancelled', e2eMs: 499 },
    { kind: 'excluded', cause: 'left_early' },
  ],
  ['left the waiting room late', { outcome: 'cancelled', e2eMs: 501 }, { kind: 'bad', cause: 'left_late' }],
  [
    'left before anything promised was due',
    { slo: sloOf({ e2eMs: 9000 }), ttftMs: 10, outcome: 'client_left' },
    { kind: 'excluded', cause: 'left_early' },
  ],
  [
    'left after its e2e target',
    { slo: sloOf({ e2eMs: 900 }), ttftMs: 10, outcome: 'client_left' },
    { kind: 'bad', cause: 'e2e', e2eGood: false },
  ],
  [
    'is whole and within e2e',
    { slo: agent, offer: { streamed: false }, e2eMs: 19_000, ttftMs: 19_000 },
    { kind: 'good', e2eGood: true },
  ],
  [
    'is whole and past e2e',
    { slo: agent, offer: { streamed: false }, e2eMs: 21_000 },
    { kind: 'bad', cause: 'e2e', e2eGood: false },
  ],
  [
    'is whole within ttft + tpot x (n - 1)',
    { offer: { streamed: false }, e2eMs: 2950, ttftMs: 2950 },
    { kind: 'good' },
  ],
  [
    'is whole past ttft + tpot x (n - 1)',
    { offer: { streamed: false }, e2eMs: 2951 },
    { kind: 'bad', cause: 'e2e' },
  ],
  [
    'is whole with two choices',
    { offer: { streamed: false, sequences: 2 }, e2eMs: 1701 },
    { kind: 'bad', cause: 'e2e' },
  ],
  [
    'is whole and nothing bounds its prefill',
    { slo: sloOf({ tpotMs: 50 }), offer: { streamed: false }, e2eMs: 1e6 },
    { kind: 'good' },
  ],
  [
    'is whole and its client left in time',
    { offer: { streamed: false, maxOutputTokens: 50 }, outcome: 'client_left', outputTokens: 0, e2eMs: 2950 },
    { kind: 'excluded', cause: 'left_early' },
  ],
  [
    'is whole and its client left late',
    { offer: { streamed: false, maxOutputTokens: 50 }, outcome: 'client_left', outputTokens: 0, e2eMs: 2951 },
    { kind: 'bad', cause: 'left_late' },
  ],
  [
    'is an embedding in time',
    { offer: { streamed: false, kind: 'compute' }, outputTokens: 0, e2eMs: 480 },
    { kind: 'good' },
  ],
  [
    'is an embedding that is late',
    { offer: { streamed: false, kind: 'compute' }, outputTokens: 0, e2eMs: 510 },
    { kind: 'bad', cause: 'e2e' },
  ],
  [
    'is read too slowly',
    { ttftMs: 400, tpotMs: 900, slowReader: true },
    { kind: 'good', cause: 'slow_reader', ttftGood: true },
  ],
  [
    'is late and read too slowly',
    { ttftMs: 600, tpotMs: 900, slowReader: true },
    { kind: 'bad', cause: 'ttft', ttftGood: false },
  ],
  [
    'is read too slowly and promised only TPOT',
    { slo: sloOf({ tpotMs: 50 }), ttftMs: 9, tpotMs: 90, slowReader: true },
    { kind: 'excluded', cause: 'slow_reader' },
  ],
  [
    'is whole and read too slowly',
    { offer: { streamed: false }, e2eMs: 90_000, slowReader: true },
    { kind: 'excluded', cause: 'slow_reader' },
  ],
]

describe('judge', () => {
  it.each(rows)('a request that %s', (_name, change, verdict) => {
    expect(judge(factsOf(change))).toEqual(verdict)
  })

  it('names only causes that are explained, and excludes only by those that are counted apart', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const { kind, cause } = judge(facts)
        if (cause !== undefined) expect(Object.keys(VERDICT_CAUSES)).toContain(cause)
        if (kind === 'bad') expect(cause).toBeDefined()
        if (kind === 'excluded') expect(EXCLUSION_CAUSES).toContain(cause)
      }),
    )
  })

  it('is never made better by a tighter target', () => {
    const rank = { bad: 0, excluded: 1, good: 2 }
    const tightened = fc.record({ facts: anyFacts, factor: fc.double({ min: 0.01, max: 1, noNaN: true }) })
    fc.assert(
      fc.property(tightened, fc.constantFrom('ttftMs', 'tpotMs', 'e2eMs'), ({ facts, factor }, target) => {
        const looseMs = facts.offer.slo[target]
        if (looseMs === undefined) return
        const slo = { ...facts.offer.slo, [target]: looseMs * factor }
        const tight = judge({ ...facts, offer: { ...facts.offer, slo } })
        expect(rank[tight.kind]).toBeLessThanOrEqual(rank[judge(facts).kind])
      }),
      { numRuns: 500 },
    )
  })

  it('calls nothing good that has a missed indicator, and nothing good that was not served', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const verdict = judge(facts)
        if (verdict.kind !== 'good') return
        expect([verdict.ttftGood, verdict.tpotGood, verdict.e2eGood]).not.toContain(false)
        expect(['completed', 'client_left']).toContain(facts.outcome)
      }),
    )
  })

  it('gives no single indicator for a target that the class lacks, nor for a request never served', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const { slo } = facts.offer
        const { ttftGood, tpotGood, e2eGood } = judge(facts)
        const unserved = facts.outcome === 'shed' || facts.outcome === 'cancelled'
        if (unserved || slo.ttftMs === undefined || !facts.offer.streamed) expect(ttftGood).toBeUndefined()
        if (unserved || slo.tpotMs === undefined || !facts.offer.streamed) expect(tpotGood).toBeUndefined()
        if (unserved || slo.e2eMs === undefined) expect(e2eGood).toBeUndefined()
      }),
    )
  })

  it('does not depend on what the client steered by, nor on who it is', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const offer = { ...facts.offer, tenant: 'other', product: 'p2', steerTtftMs: 1, steerTpotMs: 1 }
        expect(judge({ ...facts, offer })).toEqual(judge(facts))
      }),
    )
  })
})

describe('wholeAnswerTargetMs', () => {
  it('prefers e2e, then adds decode time to the first token, then the first token alone', () => {
    expect(wholeAnswerTargetMs(agent, 1000, 10)).toBe(20_000)
    expect(wholeAnswerTargetMs(chat, 1000, 11)).toBe(1000)
    expect(wholeAnswerTargetMs(sloOf({ ttftMs: 300 }), 10, 100)).toBe(300)
    expect(wholeAnswerTargetMs(sloOf({ tpotMs: 30 }), 10, 100)).toBeUndefined()
  })
})
