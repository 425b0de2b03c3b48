/** Shares of tenants: by weight when all want more, nothing saved up, nobody shut out, and bounded books. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TenantShares } from '../../../src/policies/fairness/tenant-shares.ts'

interface Tenant {
  readonly name: string
  readonly share: number
  /** Tokens of each of its requests. */
  readonly tokens: number
}

/** What the engines do, in tokens a millisecond. */
const SPEED = 20
/** What a fifth of the tokens within memory (a half-life of 10 s) takes the engines, in ms. */
const LONGEST_TURN_MS = (0.2 * 10_000) / Math.LN2

/** Engines that are never idle: of those who ask they serve the one that is worth most for its cost. */
class Engines {
  readonly shares = new TenantShares()
  readonly served = new Map<string, number>()
  nowMs = 0

  serve(asking: readonly Tenant[]): Tenant {
    for (const { name, share } of asking) this.shares.seen(name, share, this.nowMs)
    const worthOf = this.shares.worth(this.nowMs)
    const worth = ({ name, tokens }: Tenant): number => worthOf(name) / tokens
    const next = [...asking].sort((a, b) => worth(b) - worth(a))[0]
    if (next === undefined) throw new Error('nobody asks')
    this.shares.charge(next.name, next.share, next.tokens, this.nowMs)
    this.served.set(next.name, (this.served.get(next.name) ?? 0) + next.tokens)
    this.nowMs += next.tokens / SPEED
    return next
  }

  serveFor(spanMs: number, asking: readonly Tenant[]): void {
    const untilMs = this.nowMs + spanMs
    while (this.nowMs < untilMs) this.serve(asking)
  }
}

function tenants(mostTokens: number): fc.Arbitrary<readonly Tenant[]> {
  const row = fc.record({ share: fc.constantFrom(1, 2, 4), tokens: fc.integer({ min: 50, max: mostTokens }) })
  return fc
    .array(row, { minLength: 2, maxLength: 5 })
    .map((rows) => rows.map((one, index): Tenant => ({ name: `t${index}`, ...one })))
}

describe('the shares of tenants', () => {
  it('I32 give each tenant tokens by its share while all want more, whatever their requests cost', () => {
    fc.assert(
      fc.property(tenants(2000), (all) => {
        const engines = new Engines()
        engines.serveFor(20_000, all)
        engines.served.clear()
        engines.serveFor(60_000, all)
        const shares = all.reduce((sum, { share }) => sum + share, 0)
        for (const { name, share } of all) {
          const due = (60_000 * SPEED * share) / shares
          expect((engines.served.get(name) ?? 0) / due).toBeGreaterThan(0.9)
          expect((engines.served.get(name) ?? 0) / due).toBeLessThan(1.1)
        }
      }),
      { numRuns: 25 },
    )
  })

  // One request is small beside the window here; a larger one would put its tenant a whole window ahead.
  it('I32 serve a tenant that asks for less than its share at once, however costly its requests', () => {
    fc.assert(
      fc.property(tenants(300), fc.double({ min: 0.1, max: 0.7, noNaN: true }), (all, part) => {
        const engines = new Engines()
        const [modest, ...others] = all
        if (modest === undefined) return
        const shares = all.reduce((sum, { share }) => sum + share, 0)
        const everyMs = modest.tokens / SPEED / ((part * modest.share) / shares)
        let nextAtMs = 5000
        while (engines.nowMs < 30_000) {
          const asks = engines.nowMs >= nextAtMs
          const next = engines.serve(asks ? all : others)
          if (!asks) continue
          expect(next.name).toBe(modest.name)
          nextAtMs += everyMs
        }
      }),
      { numRuns: 25 },
    )
  })

  it('I32 let nobody save up: who comes back keeps the others waiting for seconds at most', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 0, max: 3_600_000 }),
        fc.integer({ min: 50, max: 2000 }),
        (comers, idleMs, tokens) => {
          const engines = new Engines()
          const tenant = (name: string): Tenant => ({ name, share: 1, tokens })
          const back = Array.from({ length: comers }, (_, index) => tenant(`back${index}`))
          engines.serveFor(5000, back)
          engines.nowMs += idleMs
          const steady = tenant('steady')
          engines.serveFor(60_000, [steady])
          const sinceMs = engines.nowMs
          while (engines.serve([steady, ...back]) !== steady) {
            // Others first.
          }
          expect(engines.nowMs - sinceMs).toBeLessThan(LONGEST_TURN_MS + ((comers + 1) * 2 * tokens) / SPEED)
        },
      ),
      { numRuns: 25 },
    )
  })

  it('are worth nothing to a tenant that is alone', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -50, max: 5000 }), { maxLength: 50 }), (charges) => {
        const shares = new TenantShares()
        for (const [index, tokens] of charges.entries()) {
          shares.charge('only', 3, tokens, index * 100)
          expect(shares.worths(index * 100)).toEqual(new Map([['only', 1]]))
        }
      }),
    )
  })

  it('I32 are forgotten: after a silence all stand alike but for what came since', () => {
    const shares = new TenantShares()
    for (let atMs = 0; atMs < 20_000; atMs += 100) {
      shares.charge('greedy', 1, 2000, atMs)
      shares.charge('modest', 1, 20, atMs)
    }
    expect(shares.worths(20_000).get('modest')).toBeGreaterThan(100)
    expect(shares.worths(31_000)).toEqual(new Map())
    shares.seen('greedy', 1, 31_000)
    shares.seen('modest', 1, 31_000)
    expect(shares.worths(31_000)).toEqual(
      new Map([
        ['greedy', 1],
        ['modest', 1],
      ]),
    )
  })

  it('stay as they are whoever looks, and at whatever time', () => {
    const shares = [new TenantShares(), new TenantShares()]
    const [watched, alone] = shares
    const worth = (of: TenantShares | undefined, atMs: number) => of?.worth(atMs)('modest')
    for (const one of shares) {
      one.charge('greedy', 1, 2000, 0)
      one.charge('modest', 1, 1900, 0)
    }
    for (let atMs = 0; atMs < 9000; atMs += 500) {
      expect(worth(watched, atMs)).toBe(worth(alone, atMs))
      for (const lookedAtMs of [0, atMs, atMs + 60_000]) watched?.worths(lookedAtMs)
    }
  })

  it('I32 keep books of so many tenants at most, and of none that is idle', () => {
    const shares = new TenantShares()
    for (let index = 0; index < 5000; index++) {
      shares.charge(`t${index}`, 1, 100, index)
      expect(shares.tenants).toBeLessThanOrEqual(1000)
    }
    for (const worth of shares.worths(5000).values()) {
      expect(worth).toBeGreaterThanOrEqual(1)
      expect(worth).toBeLessThanOrEqual(1000)
    }
    shares.charge('last', 1, 100, 60_000)
    shares.worths(60_000)
    expect(shares.tenants).toBe(1)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('are charged nothing for %d tokens', (odd) => {
    const shares = new TenantShares()
    for (const tenant of ['greedy', 'modest']) shares.charge(tenant, 1, tenant === 'greedy' ? 2000 : 100, 0)
    const before = shares.worth(0)('modest')
    shares.charge('modest', 1, odd, 0)
    expect(shares.worth(0)('modest')).toBe(before)
    expect(before).toBeGreaterThan(1)
  })
})
