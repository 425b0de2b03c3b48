/** The spans of one request: their order in time, their places in the trace, and what they say. */
import { describe, expect, it } from 'vitest'
import type { ExchangeFacts, Settlement } from '../../src/core/records.ts'
import type { AttemptFacts, TraceFacts } from '../../src/core/trace.ts'
import type { SpanFacts } from '../../src/otel/span-facts.ts'
import { rejectedSpan, type SpanPorts, spansOf } from '../../src/otel/spans.ts'
import { decisionOf, good, shed } from '../telemetry/rig.ts'

const ports = (): SpanPorts => {
  let made = 0
  return {
    newSpanId: () => `child-${++made}`,
    nameOf: (id) => `name-of-${id}`,
    engineOf: () => 'vllm',
  }
}

const attempt = (spanId: string, sentAtMs: number, more: Partial<AttemptFacts> = {}): AttemptFacts => {
  return { spanId, attempt: 1, replicaId: 'r1', sentAtMs, ...more }
}
const traceOf = (attempts: readonly AttemptFacts[], change: Partial<TraceFacts> = {}): TraceFacts => ({
  traceId: 'trace',
  spanId: 'root',
  parentSpanId: 'client',
  sampled: true,
  path: '/v1/chat/completions',
  arrivedAtMs: 90,
  attempts,
  ...change,
})
const story = (settlement: Settlement, exchange: ExchangeFacts): SpanFacts[] =>
  spansOf({ settlement, exchange, decisions: [decisionOf(settlement.offer)] }, ports())
const outline = (spans: readonly SpanFacts[]) =>
  spans.map(({ name, parentSpanId, startMs, endMs }) => [name, parentSpanId, startMs, endMs])

/** All groups in one. */
const said = (span: SpanFacts | undefined) => Object.assign({}, ...(span?.attributes ?? []))

const served = { ...good({ receivedAtMs: 100, maxOutputTokens: 64 }), replicaId: 'r1' }

describe('the spans of a request', () => {
  it('are its wait, its attempt, and the prefill and stream within', () => {
    const trace = traceOf([attempt('first', 105)])
    const spans = story(served, { status: 200, finishReason: 'stop', trace })
    expect(outline(spans)).toEqual([
      ['POST /v1/chat/completions', 'client', 90, 3100],
      ['queue', 'root', 100, 105],
      ['dispatch', 'root', 105, 3100],
      ['prefill', 'first', 105, 400],
      ['stream', 'first', 400, 3100],
    ])
    expect(spans.map(({ kind }) => kind)).toEqual(['server', 'internal', 'client', 'internal', 'internal'])
    expect(spans[2]?.spanId).toBe('first')
    expect(spans.filter(({ error }) => error !== undefined)).toEqual([])
  })

  it('carry the words of the conventions and the numbers of the decision', () => {
    const trace = traceOf([attempt('first', 105)])
    const [server, , dispatch] = story(served, { status: 200, finishReason: 'stop', trace })
    expect(said(server)).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/v1/chat/completions',
      'http.response.status_code': 200,
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'vllm',
      'gen_ai.request.model': 'm',
      'gen_ai.request.max_tokens': 64,
      'gen_ai.request.stream': true,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.usage.input_tokens': 200,
      'gen_ai.usage.output_tokens': 50,
      'gen_ai.response.time_to_first_chunk': 0.3,
      'sluice.class': 'chat',
      'sluice.decision': 'queued',
      'sluice.verdict': 'admit',
      'sluice.slo': 'good',
      'sluice.ttft_target_ms': 450,
      'sluice.predicted_ttft_ms': 210,
      'sluice.slack_ms': 240,
      'sluice.replica': 'name-of-r1',
    })
    expect(said(dispatch)).toMatchObject({ 'sluice.attempt': 1, 'sluice.backlog_tokens': 90 })
  })

  it('show the attempt that came back and the wait behind it', () => {
    const bounced = attempt('first', 105, { bounce: { atMs: 150, cause: 'engine_full' } })
    const trace = traceOf([bounced, attempt('second', 170, { attempt: 2, replicaId: 'r2' })])
    const settlement = { ...served, attempts: 2 }
    const verdict = { kind: 'admit', replicaId: 'r2', permitId: 2 } as const
    const decisions = [decisionOf(settlement.offer), decisionOf(settlement.offer, { attempt: 2, verdict })]
    const spans = spansOf({ settlement, exchange: { status: 200, trace }, decisions }, ports())
    const dispatches = spans.filter(({ name }) => name === 'dispatch').map(said)
    expect(dispatches.map((each) => each['sluice.backlog_tokens'])).toEqual([90, undefined])
    expect(outline(spans).slice(1)).toEqual([
      ['queue', 'root', 100, 105],
      ['dispatch', 'root', 105, 150],
      ['queue', 'root', 150, 170],
      ['dispatch', 'root', 170, 3100],
      ['prefill', 'second', 170, 400],
      ['stream', 'second', 400, 3100],
    ])
    expect(spans.map(({ error }) => error)).toEqual([
      undefined,
      undefined,
      'engine_full',
      undefined,
      undefined,
      undefined,
      undefined,
    ])
  })

  it('end with the wait when it was refused, which is no error of ours below 500', () => {
    const settlement = shed({ receivedAtMs: 100 })
    const spans = story(settlement, { status: 429, trace: traceOf([]) })
    expect(outline(spans).map(([name]) => name)).toEqual(['POST /v1/chat/completions', 'queue'])
    expect(spans[0]?.error).toBeUndefined()
    expect(said(spans[0])).toMatchObject({
      'sluice.reason': 'slo_unreachable',
      'gen_ai.usage.output_tokens': undefined,
      'error.type': undefined,
    })
    const [none] = story({ ...settlement, shedReason: 'no_replica' }, { status: 503, trace: traceOf([]) })
    expect(none?.error).toBe('no_replica')
    expect(said(none)['error.type']).toBe('no_replica')
  })

  it('name what broke a stream after its 200', () => {
    const trace = traceOf([attempt('first', 105)])
    const spans = story({ ...served, outcome: 'truncated' }, { status: 200, trace })
    const errors = spans.map(({ name, error }) => [name, error])
    expect(errors).toContainEqual(['POST /v1/chat/completions', 'truncated'])
    expect(errors).toContainEqual(['stream', 'truncated'])
    expect(errors).toContainEqual(['prefill', undefined])
  })

  it('are none when the trace is not recorded or none is kept', () => {
    expect(story(served, { status: 200, trace: traceOf([], { sampled: false }) })).toEqual([])
    expect(story(served, { status: 200 })).toEqual([])
  })

  it('are one for a request that never became an offer', () => {
    const trace = traceOf([])
    const malformed = rejectedSpan({ code: 'malformed', trace }, 95)
    expect(malformed).toMatchObject({ endMs: 95, error: undefined })
    expect(said(malformed)).toMatchObject({ 'http.response.status_code': 400, 'sluice.reason': 'malformed' })
    expect(rejectedSpan({ code: 'buffers_full', trace }, 95)).toMatchObject({ error: 'buffers_full' })
    expect(rejectedSpan({ code: 'malformed' }, 95)).toBeUndefined()
  })
})
