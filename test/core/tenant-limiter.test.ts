/** Tenant limits: concurrency, requests a second and tokens a minute, with a retry time that holds. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TenantLimits } from '../../src/core/gate-settings.ts'
import { TenantLimiter } from '../../src/core/tenant-limiter.ts'

describe('the tenant limiter', () => {
  it('keeps concurrency and gives places back', () => {
    const limiter = new TenantLimiter()
    const limits = { concurrentRequests: 2 }
    expect(limiter.take('a', limits, 10, 0)).toBeUndefined()
    expect(limiter.take('a', limits, 10, 0)).toBeUndefined()
    expect(limiter.take('a', limits, 10, 0)).toBeGreaterThan(0)
    expect(limiter.take('b', limits, 10, 0)).toBeUndefined()
    limiter.release('a', limits)
    expect(limiter.take('a', limits, 10, 0)).toBeUndefined()
    expect(limiter.concurrentRequests('a')).toBe(2)
  })

  it('throws when more is given back than was taken, and changes nothing', () => {
    const limiter = new TenantLimiter()
    limiter.take('a', undefined, 10, 0)
    limiter.release('a', undefined)
    expect(() => limiter.release('a', undefined)).toThrow(/tenant a has no request/)
    expect(limiter.concurrentRequests('a')).toBe(0)
  })

  it('lets a second’s worth of requests burst and then one per interval', () => {
    const limiter = new TenantLimiter()
    const limits = { requestsPerSec: 5 }
    const passed = (nowMs: number) => limiter.take('a', limits, 1, nowMs) === undefined
    expect(Array.from({ length: 6 }, () => passed(0))).toEqual([true, true, true, true, true, false])
    expect(passed(199)).toBe(false)
    expect(passed(200)).toBe(true)
    expect(passed(200)).toBe(false)
    expect(Array.from({ length: 6 }, () => passed(60_000))).toEqual([true, true, true, true, true, false])
  })

  it('serves a rate below one a second', () => {
    const limiter = new TenantLimiter()
    const limits = { requestsPerSec: 0.1 }
    expect(limiter.take('a', limits, 1, 0)).toBeUndefined()
    expect(limiter.take('a', limits, 1, 0)).toBeCloseTo(10_000, 6)
    expect(limiter.take('a', limits, 1, 10_000)).toBeUndefined()
  })

  it('lets a prompt larger than the bucket pass once it is full, and has it paid off', () => {
    const limiter = new TenantLimiter()
    const limits = { tokensPerMin: 600 }
    expect(limiter.take('a', limits, 900, 0)).toBeUndefined()
    // 300 tokens of debt and one more token at 10 tokens a second.
    expect(limiter.take('a', limits, 1, 0)).toBeCloseTo(30_100, 6)
    expect(limiter.take('a', limits, 900, 80_000)).toBeCloseTo(10_000, 6)
    expect(limiter.take('a', limits, 900, 90_000)).toBeUndefined()
  })

  it('charges neither bucket for what it refuses', () => {
    const limiter = new TenantLimiter()
    const limits = { requestsPerSec: 2, tokensPerMin: 600 }
    expect(limiter.take('a', limits, 600, 0)).toBeUndefined()
    for (let i = 0; i < 50; i++) expect(limiter.take('a', limits, 600, 0)).toBeCloseTo(60_000, 6)
    expect(limiter.take('a', limits, 600, 60_000)).toBeUndefined()
    expect(limiter.concurrentRequests('a')).toBe(2)
  })

  it('names a retry time after which the same request passes', () => {
    const law: fc.Arbitrary<TenantLimits> = fc.record({
      requestsPerSec: fc.double({ min: 0.05, max: 100, noNaN: true }),
      tokensPerMin: fc.integer({ min: 10, max: 100_000 }),
    })
    const sizes = fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(law, sizes, (limits, prompts) => {
        const limiter = new TenantLimiter()
        let nowMs = 0
        for (const tokens of prompts) {
          const waitMs = limiter.take('a', limits, tokens, nowMs)
          if (waitMs === undefined) continue
          expect(waitMs).toBeGreaterThan(0)
          nowMs += waitMs
          expect(limiter.take('a', limits, tokens, nowMs)).toBeUndefined()
        }
      }),
    )
  })

  it('never lets more through than burst and rate allow', () => {
    const gaps = fc.array(fc.double({ min: 0, max: 400, noNaN: true }), { maxLength: 60 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), gaps, (requestsPerSec, spans) => {
        const limiter = new TenantLimiter()
        let nowMs = 0
        let passed = 0
        for (const span of spans) {
          nowMs += span
          if (limiter.take('a', { requestsPerSec }, 1, nowMs) === undefined) passed++
        }
        expect(passed).toBeLessThanOrEqual(requestsPerSec + (requestsPerSec * nowMs) / 1000 + 1e-6)
      }),
    )
  })

  it('survives limits that come, change and go while requests run', () => {
    const limiter = new TenantLimiter()
    limiter.take('a', undefined, 10, 0)
    expect(limiter.take('a', { concurrentRequests: 1 }, 10, 1)).toBeGreaterThan(0)
    limiter.release('a', { concurrentRequests: 1 })
    expect(limiter.take('a', { concurrentRequests: 1 }, 10, 2)).toBeUndefined()
    limiter.release('a', undefined)
    expect(limiter.concurrentRequests('a')).toBe(0)
  })

  it('gives a tenant its whole bucket when a limit is first set', () => {
    const limiter = new TenantLimiter()
    limiter.take('a', undefined, 10, 0)
    expect(limiter.take('a', { requestsPerSec: 5, tokensPerMin: 6000 }, 3000, 10)).toBeUndefined()
  })
})
