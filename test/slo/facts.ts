/** Offers, classes and facts for tests, plain and arbitrary. */
import fc from 'fast-check'
import { type JudgeFacts, OUTCOMES, RECORD_VERSION, type Settlement } from '../../src/core/records.ts'
import type { Offer, SloClass } from '../../src/core/request.ts'
import { judge } from '../../src/slo/judge.ts'

export function sloOf(targets: Partial<SloClass>): SloClass {
  return { name: 'chat', ttftPer1kTokensMs: 0, weight: 1, overload: 'shed', maxWaitMs: 1000, ...targets }
}

export function offerOf(slo: SloClass, change: Partial<Offer> = {}): Offer {
  return {
    requestId: 'r1',
    pool: 'm',
    kind: 'generate',
    tenant: 't',
    product: 'p',
    slo,
    route: 'chat',
    receivedAtMs: 0,
    promptTokens: 200,
    promptTokensExact: false,
    sequences: 1,
    prefixHashes: [],
    prefixBlockTokens: 256,
    bodyBytes: 800,
    streamed: true,
    retryCount: 0,
    ...change,
  }
}

const spanMs = fc.double({ min: 0, max: 30_000, noNaN: true })
const maybeMs = fc.option(spanMs, { nil: undefined })

const anySlo = fc
  .record({
    ttftMs: maybeMs,
    tpotMs: fc.option(fc.double({ min: 1, max: 300, noNaN: true }), { nil: undefined }),
    e2eMs: maybeMs,
  })
  .map(({ ttftMs, tpotMs, e2eMs }) =>
    sloOf({
      ...(ttftMs === undefined ? {} : { ttftMs }),
      ...(tpotMs === undefined ? {} : { tpotMs }),
      ...(e2eMs === undefined ? {} : { e2eMs }),
    }),
  )

export const anyFacts: fc.Arbitrary<JudgeFacts> = fc
  .record({
    slo: anySlo,
    outcome: fc.constantFrom(...OUTCOMES),
    streamed: fc.boolean(),
    sequences: fc.integer({ min: 1, max: 4 }),
    e2eMs: spanMs,
    ttftMs: maybeMs,
    tpotMs: fc.option(fc.double({ min: 0, max: 300, noNaN: true }), { nil: undefined }),
    promptTokens: fc.integer({ min: 0, max: 100_000 }),
    outputTokens: fc.integer({ min: 0, max: 5000 }),
    slowReader: fc.boolean(),
  })
  .map(({ slo, streamed, sequences, ttftMs, tpotMs, outcome, ...rest }) => ({
    offer: offerOf(slo, { streamed, sequences }),
    outcome,
    ...(outcome === 'shed' ? { shedReason: 'slo_unreachable' as const } : {}),
    ...(ttftMs === undefined ? {} : { ttftMs }),
    ...(tpotMs === undefined || ttftMs === undefined ? {} : { tpotMs }),
    ...rest,
  }))

/** A settlement as the gate would make it from those facts. */
export function settlementOf(change: Partial<JudgeFacts> & { attempts?: number; offer: Offer }): Settlement {
  const { slowReader = false, attempts = 1, ...rest } = change
  const facts: JudgeFacts = {
    outcome: 'completed',
    e2eMs: 3000,
    promptTokens: 200,
    outputTokens: 50,
    slowReader,
    ...rest,
  }
  const { slowReader: _, ...kept } = facts
  return {
    version: RECORD_VERSION,
    requestId: facts.offer.requestId,
    ...kept,
    attempts,
    queueMs: 5,
    countedBy: 'usage',
    verdict: judge(facts),
  }
}
