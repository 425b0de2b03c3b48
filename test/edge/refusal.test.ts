import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { errorEvent, refusalOf } from '../../src/edge/refusal.ts'
import { ERROR_TABLE, type ErrorCode } from '../../src/errors.ts'

const codes = Object.keys(ERROR_TABLE) as ErrorCode[]
const dialects = ['openai', 'responses', 'anthropic', 'tgi'] as const
const anyCode = fc.constantFrom(...codes)
const anyDialect = fc.constantFrom(...dialects)

describe('a refusal', () => {
  it('advises to come back in whole seconds of 1 to 60, whatever was computed', () => {
    const law = fc.property(
      anyCode,
      anyDialect,
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.option(fc.double({ min: 0, max: 1e9, noNaN: true }), { nil: undefined }),
      (code, dialect, random, retryAfterMs) => {
        const { status, headers } = refusalOf({ code, message: 'no', dialect, retryAfterMs }, () => random)
        expect(status).toBe(ERROR_TABLE[code].status)
        expect(headers['x-sluice-reason']).toBe(code)
        const seconds = headers['retry-after']
        if (headers['x-should-retry'] === 'false') return seconds === undefined
        const ms = Number(headers['retry-after-ms'])
        return (
          /^\d+$/.test(seconds ?? '') &&
          ms >= 1000 &&
          ms <= 60_000 &&
          Number(seconds) === Math.ceil(ms / 1000)
        )
      },
    )
    fc.assert(law)
  })

  it('spreads clients that were shed together over a quarter of the wait', () => {
    const at = (random: number) =>
      Number(
        refusalOf(
          { code: 'slo_unreachable', message: '', dialect: 'openai', retryAfterMs: 8000 },
          () => random,
        ).headers['retry-after-ms'],
      )
    expect([at(0), at(0.5), at(0.999999)]).toEqual([8000, 9000, 10_000])
  })

  it('forbids a retry when no wait was computed', () => {
    const { headers } = refusalOf({ code: 'infeasible', message: '', dialect: 'openai' }, () => 0)
    expect(headers).toMatchObject({ 'x-should-retry': 'false' })
    expect(headers['retry-after']).toBeUndefined()
  })

  it.each([
    ['openai', { error: { message: 'm', type: 'rate_limit_error', param: null, code: 'tenant_limit' } }],
    ['responses', { error: { message: 'm', type: 'rate_limit_error', param: null, code: 'tenant_limit' } }],
    ['anthropic', { type: 'error', error: { type: 'rate_limit_error', message: 'm' } }],
    ['tgi', { error: 'm', error_type: 'rate_limit_error' }],
  ] as const)('has the body of %s', (dialect, body) => {
    const { body: text } = refusalOf({ code: 'tenant_limit', message: 'm', dialect }, () => 0)
    expect(JSON.parse(text)).toEqual(body)
  })

  it('as an event is one frame whose payload is JSON', () => {
    const law = fc.property(anyCode, anyDialect, fc.string(), (code, dialect, message) => {
      const frame = errorEvent({ code, message, dialect })
      const data = /^(?:event: error\n)?data: (.*)\n\n$/s.exec(frame)?.[1] ?? ''
      return !data.includes('\n') && typeof JSON.parse(data) === 'object'
    })
    fc.assert(law)
  })
})
