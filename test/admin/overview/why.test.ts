/** Decisions told in sentences. */
import { describe, expect, it } from 'vitest'
import { endSentence, whySentence, wouldHaveSentence } from '../../../src/admin/overview/why.ts'
import type { ShedReason } from '../../../src/core/effects.ts'
import type { CandidateView, DecisionRecord } from '../../../src/core/records.ts'
import type { SloClass } from '../../../src/core/request.ts'
import { offerOf, settlementOf, sloOf } from '../../slo/facts.ts'
import { chat, decisionOf, good, shed } from '../../telemetry/rig.ts'

const nameOf = (replicaId: string) => replicaId.toUpperCase()
const view = (change: Partial<CandidateView>): CandidateView => ({
  replicaId: 'r1',
  uncachedTokens: 200,
  backlogTokens: 0,
  runningSequences: 3,
  gate: 'ok',
  ...change,
})

function why(change: Partial<DecisionRecord>, slo: SloClass = chat) {
  return whySentence(decisionOf(offerOf(slo), change), undefined, nameOf)
}
const refused = (reason: ShedReason, change: Partial<DecisionRecord> = {}, retryAfterMs?: number) =>
  why({
    candidates: [],
    waitedMs: 0,
    verdict: { kind: 'shed', reason, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
    ...change,
  })

describe('why it was let in', () => {
  it('names the replica, the prediction with its margin, and the promise', () => {
    const candidates = [view({ predictedTtftMs: 210, boundTtftMs: 340 })]
    expect(why({ candidates, waitedMs: 0 })).toBe(
      'Sent at once to R1: first token predicted after 210 ms (340 ms with its margin); the promise is 450 ms.',
    )
    expect(why({ candidates, waitedMs: 320 })).toMatch(/^Held 320 ms, then sent to R1: /)
    expect(why({ candidates, attempt: 2 })).toMatch(/^Tried again, after another replica failed it, on R1: /)
    expect(why({ candidates, trusted: false })).toContain(
      '210 ms (340 ms with its margin), a prediction not trusted yet;',
    )
  })

  it('says when nothing was predicted or promised', () => {
    expect(why({ candidates: [view({})] })).toContain('nothing predicts its first token yet')
    expect(why({ candidates: [view({ predictedTtftMs: 9 })], waitedMs: 0 }, sloOf({ name: 'batch' }))).toBe(
      'Sent at once to R1: first token predicted after 9.0 ms.',
    )
  })
})

describe('why it was refused', () => {
  it('points at the soonest replica when even that one is too late', () => {
    const candidates = [
      view({ replicaId: 'r2', predictedTtftMs: 3000, boundTtftMs: 3100 }),
      view({ predictedTtftMs: 1500, boundTtftMs: 1900 }),
    ]
    expect(refused('slo_unreachable', { candidates }, 1450)).toBe(
      'Refused: even the soonest replica, R1, would have given its first token after 1.90 s, past the 450 ms that chat promises. Room is expected in 1.45 s.',
    )
  })

  it('tells a queue before it, and time that has run out, from slow replicas', () => {
    const candidates = [view({ predictedTtftMs: 200, boundTtftMs: 220 })]
    expect(refused('slo_unreachable', { candidates }, 700)).toContain(
      'behind those who come first, its first token would have missed the 450 ms that chat promises. Room is expected in 700 ms.',
    )
    expect(refused('slo_unreachable', { candidates, waitedMs: 460 }, 0)).toBe(
      'Refused: 460 ms of waiting had used up the 450 ms that chat promises.',
    )
  })

  it.each<[ShedReason, RegExp]>([
    ['infeasible', /not even an idle replica .* 200 prompt tokens\. A retry can’t help\.$/],
    ['waiting_full', /the waiting room was full/],
    ['wait_expired', /as long as chat may/],
    ['tenant_limit', /its tenant t is at its own limit/],
    ['no_replica', /no replica of m takes work/],
  ])('has words for %s', (reason, words) => {
    expect(refused(reason)).toMatch(words)
  })
})

describe('how it ended', () => {
  it('says whether the promise was kept, with the times and the cause', () => {
    expect(endSentence(good())).toBe(
      'Kept its promise: first token after 300 ms, then 30 ms a token, 3.00 s in all.',
    )
    expect(endSentence(settlementOf({ offer: offerOf(chat), ttftMs: 900 }))).toMatch(
      /^Missed its promise: first token after 900 ms, .* The first token came too late\.$/,
    )
    expect(endSentence(settlementOf({ offer: offerOf(chat), outcome: 'client_error' }))).toMatch(
      /^Not counted: /,
    )
  })

  it('adds nothing to a refusal, to one that left, or to one that runs', () => {
    expect([endSentence(shed()), endSentence(undefined)]).toEqual([undefined, undefined])
    const left = settlementOf({ offer: offerOf(chat), outcome: 'cancelled', attempts: 0, e2eMs: 3200 })
    expect(endSentence(left)).toBeUndefined()
    expect(whySentence(undefined, left, nameOf)).toBe('Its client left after 3.20 s of waiting.')
  })
})

describe('what enforcing would have done', () => {
  it('is told in shadow mode only', () => {
    expect(wouldHaveSentence(undefined, nameOf)).toBeUndefined()
    expect(wouldHaveSentence({ kind: 'shed', reason: 'slo_unreachable' }, nameOf)).toContain(
      'refused it (slo_unreachable)',
    )
    expect(wouldHaveSentence({ kind: 'wait', untilAtMs: 1 }, nameOf)).toContain('held it')
    expect(wouldHaveSentence({ kind: 'admit', replicaId: 'r2', permitId: 0 }, nameOf)).toContain(
      'sent it to R2',
    )
  })
})
