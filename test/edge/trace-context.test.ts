import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RequestTrace } from '../../src/edge/request-trace.ts'
import { parentOf, traceparentOf } from '../../src/edge/trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

describe('the parent that a client names', () => {
  it('is read from traceparent, in later versions too', () => {
    const parent = { traceId: TRACE, spanId: PARENT, sampled: true }
    expect(parentOf(`00-${TRACE}-${PARENT}-01`)).toEqual(parent)
    expect(parentOf(`01-${TRACE}-${PARENT}-01-more`)).toEqual(parent)
    expect(parentOf(`00-${TRACE}-${PARENT}-02`)).toEqual({ ...parent, sampled: false })
  })

  it.each([
    undefined,
    '',
    TRACE,
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `ff-${TRACE}-${PARENT}-01`,
    `00-${TRACE}-${PARENT}-01x`,
    `00-${TRACE}-${PARENT}-01-more`,
    `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`,
    `00-${TRACE}-${PARENT}`,
  ])('is none for %s', (header) => {
    expect(parentOf(header)).toBeUndefined()
  })

  it('is the same again once it is written', () => {
    const hex = (digits: number) =>
      fc
        .array(fc.constantFrom(...'0123456789abcdef'), { minLength: digits, maxLength: digits })
        .map((all) => all.join(''))
        .filter((id) => !/^0+$/.test(id))
    const parents = fc.record({ traceId: hex(32), spanId: hex(16), sampled: fc.boolean() })
    fc.assert(
      fc.property(parents, (parent) => {
        expect(parentOf(traceparentOf(parent))).toEqual(parent)
      }),
    )
  })
})

describe('the trace of a request', () => {
  const headers = { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'vendor=1' }
  const sampler = { sampled: () => true }

  it('goes on the client’s, with a span of its own for each attempt', () => {
    const trace = new RequestTrace(headers, '/v1/chat/completions', 5, sampler)
    expect(trace).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, sampled: true, arrivedAtMs: 5 })
    const sent = [
      trace.sent({ attempt: 1, replicaId: 'r1' }, 6),
      trace.sent({ attempt: 2, replicaId: 'r2' }, 9),
    ]
    const spanIds = sent.map(({ traceparent }) => parentOf(traceparent)?.spanId)
    expect(spanIds).toEqual(trace.attempts.map(({ spanId }) => spanId))
    expect(new Set([PARENT, trace.spanId, ...spanIds]).size).toBe(4)
    expect(sent[0]).toMatchObject({ tracestate: 'vendor=1' })
  })

  it('begins anew when the client’s can’t be read, and its tracestate goes with it', () => {
    const trace = new RequestTrace({ ...headers, traceparent: 'nonsense' }, '/', 0, sampler)
    expect(trace.traceId).toMatch(/^[0-9a-f]{32}$/)
    expect(trace.traceId).not.toBe(TRACE)
    expect(trace).toMatchObject({ parentSpanId: undefined, tracestate: undefined })
  })

  it('tells the engine when it is not recorded', () => {
    const trace = new RequestTrace(headers, '/', 0, { sampled: () => false })
    expect(parentOf(trace.sent({ attempt: 1, replicaId: 'r1' }, 1).traceparent)).toMatchObject({
      traceId: TRACE,
      sampled: false,
    })
  })
})
