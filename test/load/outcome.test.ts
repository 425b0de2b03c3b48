/** What a client saw becomes the verdict that the server would have given. */
import { describe, expect, it } from 'vitest'
import type { SloClass } from '../../src/core/request.ts'
import type { ExchangeOutcome } from '../../src/load/exchange.ts'
import { mayRetry, retryAfterOf, settleExchange } from '../../src/load/outcome.ts'
import type { PlannedRequest } from '../../src/load/plan.ts'

const slo: SloClass = {
  name: 'chat',
  ttftMs: 500,
  ttftPer1kTokensMs: 0,
  tpotMs: 50,
  weight: 1,
  overload: 'shed',
  maxWaitMs: 1000,
}
const planned: PlannedRequest = {
  id: 'r1',
  atMs: 0,
  phase: 'all',
  slo,
  promptTokens: 100,
  maxTokens: 11,
  outputTokens: 11,
}
const served: ExchangeOutcome = {
  status: 200,
  headers: {},
  stream: {
    firstTokenAtMs: 1300,
    lastTokenAtMs: 1700,
    contentEvents: 9,
    usage: { promptTokens: 104, outputTokens: 11 },
    done: true,
    finished: false,
  },
  endedAtMs: 1710,
}
const settle = (seen: ExchangeOutcome, dueAtMs = 1000) => settleExchange(planned, seen, 'm', dueAtMs, 0)
const unanswered = (status: number, headers: Record<string, string> = {}): ExchangeOutcome => ({
  status,
  headers,
  stream: { contentEvents: 0, done: false, finished: false, error: { message: 'no' } },
  endedAtMs: 1010,
})

describe('settleExchange', () => {
  it('measures TTFT from the planned instant and TPOT by usage, not by frames', () => {
    const { facts, verdict } = settle(served)
    expect(facts).toMatchObject({
      ttftMs: 300,
      tpotMs: 40,
      outputTokens: 11,
      promptTokens: 104,
      outcome: 'completed',
    })
    expect(verdict.kind).toBe('good')
  })

  it('counts a client that sent late against the request', () => {
    expect(settle(served, 700).verdict).toMatchObject({ kind: 'bad', cause: 'ttft' })
  })

  it('takes a refusal as shed, with its reason and its wait', () => {
    const headers = { 'x-sluice-reason': 'slo_unreachable', 'retry-after': '2', 'retry-after-ms': '1500' }
    expect(settle(unanswered(429, headers))).toMatchObject({
      facts: { outcome: 'shed', shedReason: 'slo_unreachable' },
      verdict: { kind: 'bad', cause: 'shed' },
      refusal: { reason: 'slo_unreachable', retryAfterMs: 1500 },
    })
    expect(settle(unanswered(503)).refusal).toEqual({ reason: 'status_503' })
  })

  it.each([
    ['a 502', unanswered(502), 'upstream_failed', 'failed'],
    ['a 504', unanswered(504), 'upstream_timeout', 'timeout'],
    [
      'a reset before content',
      { ...unanswered(0), fault: { message: 'ECONNRESET' } },
      'upstream_failed',
      'failed',
    ],
    ['a reset after content', { ...served, fault: { message: 'ECONNRESET' } }, 'truncated', 'truncated'],
    [
      'a stream without its end marker',
      { ...served, stream: { ...served.stream, done: false } },
      'truncated',
      'truncated',
    ],
  ] as const)('judges %s as bad', (_name, seen, outcome, cause) => {
    expect(settle(seen)).toMatchObject({ facts: { outcome }, verdict: { kind: 'bad', cause } })
  })

  it('takes a whole answer with a finish reason for complete without its end marker', () => {
    const unmarked = { ...served.stream, done: false, finished: true }
    expect(settle({ ...served, stream: unmarked }).facts.outcome).toBe('completed')
    const cut = { ...served, stream: unmarked, fault: { message: 'ECONNRESET' } }
    expect(settle(cut).facts.outcome).toBe('truncated')
  })

  it('takes an engine-full event inside a 200 as a refusal', () => {
    const seen = {
      ...served,
      stream: { contentEvents: 0, done: true, finished: false, error: { code: 503, message: 'busy' } },
    }
    expect(settle(seen)).toMatchObject({ facts: { outcome: 'shed' }, refusal: { reason: 'status_503' } })
  })

  it.each(['slo_unreachable', 'draining'])(
    'takes a waiter that is told %s inside its 200 as refused',
    (code) => {
      const stream = { contentEvents: 0, done: true, finished: false, error: { code, message: 'no' } }
      expect(settle({ ...served, stream })).toMatchObject({
        facts: { outcome: 'shed' },
        verdict: { kind: 'bad', cause: 'shed' },
        refusal: { reason: code },
      })
    },
  )

  it("excludes the client's own mistake", () => {
    expect(settle(unanswered(400)).verdict).toMatchObject({ kind: 'excluded', cause: 'client_error' })
  })

  it('judges what was left open at the end by what was due', () => {
    const left = (endedAtMs: number): ExchangeOutcome => ({ ...unanswered(0), fault: 'aborted', endedAtMs })
    expect(settle(left(1400)).verdict).toMatchObject({ kind: 'excluded', cause: 'left_early' })
    expect(settle(left(1600)).verdict).toMatchObject({ kind: 'bad', cause: 'left_late' })
  })
})

describe('retry advice', () => {
  it('retries refusals unless the server says that it is no use', () => {
    expect(mayRetry(unanswered(429))).toBe(true)
    expect(mayRetry(unanswered(429, { 'x-should-retry': 'false' }))).toBe(false)
    expect(mayRetry(unanswered(502))).toBe(false)
    expect(mayRetry(served)).toBe(false)
  })

  it('reads the wait in ms before the one in seconds', () => {
    expect(retryAfterOf({ 'retry-after': '3' })).toBe(3000)
    expect(retryAfterOf({ 'retry-after': 'soon' })).toBeUndefined()
    expect(retryAfterOf({})).toBeUndefined()
  })
})
