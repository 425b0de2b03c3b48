/** Shares the tokens of one pool between its tenants: who has had most for its share is refused first. */
import { PassingMap } from '../../core/passing-map.ts'
import { clamp, type Ms, type Ratio, type Tokens } from '../../core/units.ts'
import { Fading } from './fading.ts'

/** A tenant that asked for nothing for this long has no part in the shares, in ms. */
const IDLE_MS: Ms = 10_000
/** The most that a tenant can be behind, as part of what its share has brought it within memory. */
const CREDIT_RATIO: Ratio = 0.2
/** What a request of a tenant that far behind is worth: above the ratio of a long prompt's cost to a short one's. */
const MOST_WORTH = 1000
/** Tenants kept apart; those unseen for longest go first. */
const MOST_TENANTS = 1000

interface Account {
  /** Tokens for each unit of share. Only differences between accounts mean anything. */
  counter: number
  readonly share: number
  readonly seenAtMs: Ms
}

/**
 * A virtual token counter for each tenant (Sheng et al., Fairness in Serving Large Language Models, OSDI 2024): its
 * tokens over its share. Among tenants that want more than there is the counters stay together, so what each gets goes
 * by its share. Nobody is further behind the tenant that has had most than a window, so that neither an idle tenant
 * nor a modest one saves up a claim to starve the others with; within it they come first. The window is a part of what
 * was served lately, and so decays with it.
 */
export class TenantShares {
  /** Those unseen for longest first. */
  readonly #accounts = new PassingMap<string, Account>()
  #served: Tokens = 0
  readonly #memory = new Fading()

  /** Tenants with an account. */
  get tenants(): number {
    return this.#accounts.size
  }

  /** It asks for something. `share` is its weight against other tenants, above 0. */
  seen(tenant: string, share: number, nowMs: Ms): void {
    const known = this.#accounts.get(tenant)
    this.#accounts.delete(tenant)
    if (this.#accounts.size >= MOST_TENANTS) {
      for (const [oldest] of this.#accounts) {
        this.#accounts.delete(oldest)
        break
      }
    }
    const isBack = known === undefined || isIdle(known, nowMs)
    const counter = isBack ? this.#lowest(nowMs) : known.counter
    this.#accounts.set(tenant, { counter, share, seenAtMs: nowMs })
  }

  /** Charges tokens to it; negative ones give back what was charged too much, and no number is nothing. */
  charge(tenant: string, share: number, tokens: Tokens, nowMs: Ms): void {
    this.seen(tenant, share, nowMs)
    if (!Number.isFinite(tokens)) return
    this.#fade(nowMs)
    this.#served = Math.max(0, this.#served + tokens)
    const account = this.#accounts.get(tenant)
    if (account !== undefined) account.counter += tokens / share
  }

  /**
   * What requests of a tenant are worth times, from 1 for the one that has had most for its share to `MOST_WORTH`. 1 for
   * all of them while there is but one.
   */
  worth(nowMs: Ms): (tenant: string) => number {
    this.#fade(nowMs)
    this.#forgetIdle(nowMs)
    const { top, width } = this.#window(nowMs)
    for (const account of this.#accounts.values()) account.counter = Math.max(account.counter, top - width)
    return this.#worthIn(top, width)
  }

  /** The same of every tenant that asks, by name. Changes nothing: people may look at any time. */
  worths(nowMs: Ms): ReadonlyMap<string, number> {
    const { top, width } = this.#window(nowMs)
    const worthOf = this.#worthIn(top, width)
    const asking = [...this.#accounts].filter(([, account]) => !isIdle(account, nowMs))
    return new Map(asking.map(([tenant]) => [tenant, worthOf(tenant)]))
  }

  #worthIn(top: number, width: number): (tenant: string) => number {
    const known = new Map<string, number>()
    return (tenant) => {
      const asked = known.get(tenant)
      if (asked !== undefined) return asked
      const counter = this.#accounts.get(tenant)?.counter ?? top
      const worth = MOST_WORTH ** (width > 0 ? clamp((top - counter) / width, 0, 1) : 0)
      known.set(tenant, worth)
      return worth
    }
  }

  /** Where a tenant stands that comes back: as far behind as one may be. */
  #lowest(nowMs: Ms): number {
    this.#fade(nowMs)
    this.#forgetIdle(nowMs)
    const { top, width } = this.#window(nowMs)
    return top - width
  }

  #forgetIdle(nowMs: Ms): void {
    for (const [tenant, account] of this.#accounts) if (isIdle(account, nowMs)) this.#accounts.delete(tenant)
    // Whoever was served is gone, so whoever comes starts level.
    if (this.#accounts.size === 0) this.#served = 0
  }

  /** The highest counter among those who ask, and how far below it the others may be. */
  #window(nowMs: Ms): { top: number; width: number } {
    let top = Number.NEGATIVE_INFINITY
    let shares = 0
    for (const account of this.#accounts.values()) {
      if (isIdle(account, nowMs)) continue
      top = Math.max(top, account.counter)
      shares += account.share
    }
    if (shares === 0) return { top: 0, width: 0 }
    const servedTokens = this.#served * this.#memory.leftRatio(nowMs)
    return { top, width: (CREDIT_RATIO * servedTokens) / shares }
  }

  #fade(nowMs: Ms): void {
    this.#served *= this.#memory.pass(nowMs)
  }
}

function isIdle({ seenAtMs }: Account, nowMs: Ms): boolean {
  return nowMs - seenAtMs > IDLE_MS
}
