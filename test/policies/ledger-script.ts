/** What happens to one replica's books, at random: tests of what is kept of them play it and look again. */
import fc from 'fast-check'
import { type InFlight, ReplicaLedger } from '../../src/core/ledger.ts'
import type { Offer } from '../../src/core/request.ts'
import { learnLength } from '../../src/estimate/output-length.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'
import { sloOf } from '../slo/facts.ts'

/** How often each happens, in parts of all. */
const WEIGHTS = {
  dispatch: 6,
  /** Dispatched and at once with its first token, so that batches grow. */
  start: 16,
  firstToken: 3,
  progress: 9,
  release: 5,
  bounce: 2,
  reset: 1,
  learn: 1,
  look: 6,
}
const kinds = Object.entries(WEIGHTS).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind) }))

export const step = fc.record({
  kind: fc.oneof(...kinds),
  afterMs: fc.integer({ min: 1, max: 30 }),
  /** Whom it happens to, among those that it can happen to. */
  nth: fc.nat({ max: 60 }),
  tokens: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 400 })),
  /** Powers of two, so that a sequence's part of its tokens is exact. */
  sequences: fc.constantFrom(1, 1, 2, 4),
  /** What the client says of its answer. */
  told: fc.constantFrom('cap', 'length', 'nothing', 'nothing'),
  lengthTokens: fc.integer({ min: 1, max: 1500 }),
  tpotMs: fc.option(fc.integer({ min: 30, max: 200 }), { nil: undefined }),
  streamed: fc.boolean(),
})
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** A replica to which things happen, each at an instant of its own. */
export class LedgerScript {
  readonly learnt = new Learnt({})
  readonly ledger = new ReplicaLedger(reportOf('r1'))
  nowMs = 0
  #permits = 0

  take(one: Step): void {
    const { kind, nth, tokens } = one
    this.nowMs += one.afterMs
    const { ledger, nowMs } = this
    const prefilling = [...ledger.prefilling.values()]
    const decoding = [...ledger.decoding.values()]
    if (kind === 'dispatch') this.dispatch(offerOf(one))
    if (kind === 'start') ledger.firstToken(this.dispatch(offerOf(one)), nowMs)
    if (kind === 'firstToken') {
      for (const { permitId } of pick(prefilling, nth)) ledger.firstToken(permitId, nowMs)
    }
    if (kind === 'progress') for (const its of pick(decoding, nth)) ledger.progress(its, tokens, nowMs)
    if (kind === 'release') {
      for (const { permitId } of pick([...prefilling, ...decoding], nth)) ledger.release(permitId)
    }
    if (kind === 'bounce') {
      for (const { permitId } of pick(prefilling, nth)) this.dispatch(ledger.release(permitId).offer)
    }
    if (kind === 'reset') {
      for (const { permitId } of [...prefilling, ...decoding]) ledger.release(permitId)
      this.learnt.reset(ledger.replicaId)
    }
    if (kind === 'learn') {
      const offer = offerOf(one)
      for (let i = 0; i < 10; i++) learnLength(this.learnt.lengthsOf(offer), tokens, offer)
    }
  }

  /** Returns its permit. */
  dispatch(offer: Offer): number {
    const permitId = ++this.#permits
    // Half of some prompts is cached.
    const uncachedTokens = Math.ceil(offer.promptTokens / (1 + (permitId % 2)))
    this.ledger.dispatch(inFlightOf(permitId, offer, { uncachedTokens }))
    return permitId
  }

  /** The same books, of which nobody has read anything yet. */
  afresh(): ReplicaLedger {
    const copy = new ReplicaLedger(this.ledger.report)
    for (const inFlight of this.ledger.decoding.values()) {
      const { permitId, contentEvents, firstTokenAtMs = Number.NaN, lastTokenAtMs = Number.NaN } = inFlight
      const its = { ...inFlight, contentEvents: 0 }
      copy.dispatch(its)
      copy.firstToken(permitId, firstTokenAtMs)
      copy.progress(its, contentEvents, lastTokenAtMs)
    }
    for (const inFlight of this.ledger.prefilling.values()) copy.dispatch({ ...inFlight })
    return copy
  }
}

/** None where there are none. */
function pick(from: readonly InFlight[], nth: number): readonly InFlight[] {
  const at = nth % Math.max(1, from.length)
  return from.slice(at, at + 1)
}

function offerOf({ tokens, sequences, told, lengthTokens, tpotMs, streamed }: Step): Offer {
  return someOffer({
    promptTokens: tokens,
    sequences,
    streamed,
    slo: sloOf(tpotMs === undefined ? {} : { tpotMs }),
    route: told === 'nothing' ? 'plain' : 'chat',
    ...(told === 'nothing' ? {} : { maxOutputTokens: lengthTokens }),
    ...(told === 'length' ? { minOutputTokens: lengthTokens } : {}),
  })
}
