/** What is learnt of each pool and replica when permits come back. */
import { beforeEach, describe, expect, it } from 'vitest'
import { ReplicaLedger } from '../../src/core/ledger.ts'
import type { SettleOutcome, SettleReport } from '../../src/core/records.ts'
import type { Offer } from '../../src/core/request.ts'
import { Learnt } from '../../src/policies/learnt.ts'
import { inFlightOf, reportOf, someOffer } from '../core/core-rig.ts'

let learnt: Learnt
let ledger: ReplicaLedger
let permits = 0
beforeEach(() => {
  learnt = new Learnt({})
  ledger = new ReplicaLedger(reportOf('r1'))
})

/** Sends it at once; what is returned gives it back, without a report where it bounced. */
function send(offer: Offer) {
  const inFlight = inFlightOf(++permits, offer)
  ledger.dispatch(inFlight)
  learnt.dispatched(inFlight, ledger, 0)
  return {
    begin: () => {
      learnt.firstToken(inFlight, ledger, 10)
      ledger.firstToken(inFlight.permitId, 10)
    },
    /** An answer that does not stream is taken to decode. */
    assume: () => ledger.firstToken(inFlight.permitId, 10),
    end: (report?: SettleReport) => {
      ledger.release(inFlight.permitId)
      learnt.released(inFlight, ledger, report, 20)
    },
  }
}

/** A whole answer of so many tokens, the last of which has no event. */
function answer(outputTokens: number): void {
  const sent = send(someOffer())
  sent.begin()
  const contentEvents = outputTokens - 1
  sent.end({ outcome: 'completed', endedAtMs: 20, contentEvents, usage: { outputTokens } })
}

describe('tokens per content event', () => {
  it('are those of all content together, however many answers are of one word', () => {
    let tokens = 0
    let events = 0
    for (let n = 0; n < 500; n++) {
      const outputTokens = n % 5 === 0 ? 200 : 2
      answer(outputTokens)
      tokens += outputTokens
      events += outputTokens - 1
    }
    expect(tokens / events).toBeLessThan(1.03)
    expect(Math.abs(learnt.tokensPerEvent('m') - tokens / events)).toBeLessThan(0.01)
    expect(learnt.snapshot()).toMatchObject({ tokensPerEvent: { m: learnt.tokensPerEvent('m') } })
  })

  it('are one each until some have come, and follow an engine that puts several into one', () => {
    expect(learnt.tokensPerEvent('m')).toBe(1)
    const sent = send(someOffer())
    sent.begin()
    const usage = { outputTokens: 4 }
    sent.end({ outcome: 'completed', endedAtMs: 20, contentEvents: 1, usage })
    expect(learnt.tokensPerEvent('m')).toBeLessThan(1.1)
    for (let n = 0; n < 300; n++) {
      const next = send(someOffer())
      next.begin()
      next.end({ outcome: 'completed', endedAtMs: 20, contentEvents: 50, usage: { outputTokens: 200 } })
    }
    expect(learnt.tokensPerEvent('m')).toBeCloseTo(4, 2)
  })
})

describe('what a replica has cached of a prompt', () => {
  const prompt = (streamed: boolean) =>
    someOffer({ streamed, prefixHashes: ['a', 'b'], prefixBlockTokens: 256, promptTokens: 600 })
  const cachedTokens = () => learnt.prefixes.cachedTokens(prompt(true)).get('r1') ?? 0
  const ended = (outcome: SettleOutcome) => ({ outcome, endedAtMs: 20, contentEvents: 0 })

  it.each([true, false])('is nothing after a bounce (streamed: %s)', (streamed) => {
    const sent = send(prompt(streamed))
    expect(cachedTokens()).toBe(512)
    if (!streamed) sent.assume()
    sent.end()
    expect(cachedTokens()).toBe(0)
  })

  it.each(['upstream_failed', 'client_error'] as const)(
    'is nothing after %s before a first token',
    (outcome) => {
      send(prompt(true)).end(ended(outcome))
      expect(cachedTokens()).toBe(0)
    },
  )

  it.each(['completed', 'client_left', 'upstream_timeout'] as const)(
    'is all of it after an answer that did not stream and ended as %s',
    (outcome) => {
      send(prompt(false)).end(ended(outcome))
      expect(cachedTokens()).toBe(512)
    },
  )

  it('is all of it after a stream that broke', () => {
    const sent = send(prompt(true))
    sent.begin()
    sent.end({ ...ended('truncated'), firstTokenAtMs: 10 })
    expect(cachedTokens()).toBe(512)
  })

  it('is what it was before another of its turns that bounced', () => {
    const first = send(prompt(true))
    first.begin()
    first.end(ended('completed'))
    send(prompt(true)).end()
    expect(cachedTokens()).toBe(512)
  })
})
