import { describe, expect, it } from 'vitest'
import { traceIdOf } from '../../src/edge/request-id.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

describe('the trace of a request', () => {
  it('is the one that traceparent names, in later versions too', () => {
    expect(traceIdOf(`00-${TRACE}-${PARENT}-01`)).toBe(TRACE)
    expect(traceIdOf(`01-${TRACE}-${PARENT}-01-more`)).toBe(TRACE)
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
    `00-${TRACE}-${PARENT}`,
  ])('is none for %s', (header) => {
    expect(traceIdOf(header)).toBeUndefined()
  })
})
