/** What fairness adds to the worth of requests in one pool: shares of tenants, floors of classes. */
import type { PermitId } from '../../core/events.ts'
import type { InFlight } from '../../core/ledger.ts'
import { PassingMap } from '../../core/passing-map.ts'
import type { Offer } from '../../core/request.ts'
import type { Ms, Tokens } from '../../core/units.ts'
import type { Waiter } from '../../core/waiting-room.ts'
import type { SluicePart } from '../parts.ts'
import { ClassFloors } from './class-floors.ts'
import { TenantShares } from './tenant-shares.ts'

/** An output token counts as so many prompt tokens that have to be computed (Sheng et al., OSDI 2024). */
const PROMPT_TOKENS_PER_OUTPUT_TOKEN = 2
/** A request that is owed to its class goes before any other of the usual weights. */
const OWED_WORTH = 1000

const NOBODY: ReadonlySet<Waiter> = new Set()

/** How a waiter stands beside the others. */
export interface Standing {
  /** Worth of a good answer: the weight of its class, more where its tenant or its class has had too little. */
  readonly value: number
  /** Its class is below its floor, and it is the next of it. */
  readonly owed: boolean
}

export class PoolFairness {
  readonly tenants = new TenantShares()
  readonly #floors = new ClassFloors()
  readonly #counted = new WeakSet<Offer>()
  /** Output tokens that each permit was charged for. */
  readonly #charged = new PassingMap<PermitId, Tokens>()

  /**
   * Who stands how now. Counts `fresh`, those that nobody has asked about yet; `waiters` are all, only asked for while
   * some class is below its floor.
   */
  standings(
    fresh: readonly Waiter[],
    waiters: () => readonly Waiter[],
    without: ReadonlySet<SluicePart>,
    nowMs: Ms,
  ): (waiter: Waiter) => Standing {
    for (const { offer } of fresh) this.#count(offer, nowMs)
    const worthOf = without.has('shares') ? () => 1 : this.tenants.worth(nowMs)
    const isDue = !without.has('floors') && this.#floors.anyDue(nowMs)
    const owed = isDue ? this.#owedOf(waiters(), nowMs) : NOBODY
    return (waiter) => {
      const { slo, tenant } = waiter.offer
      const value = slo.weight * worthOf(tenant)
      return owed.has(waiter) ? { value: value * OWED_WORTH, owed: true } : { value, owed: false }
    }
  }

  /** It was sent to a replica and will make about that many tokens. */
  dispatched({ permitId, offer, uncachedTokens, attempt }: InFlight, outputTokens: Tokens, nowMs: Ms): void {
    this.#count(offer, nowMs)
    const tokens = uncachedTokens + PROMPT_TOKENS_PER_OUTPUT_TOKEN * outputTokens
    this.#charged.set(permitId, outputTokens)
    this.#charge(offer, tokens, nowMs)
    if (attempt === 1) this.#floors.admitted(offer.slo.name, tokens, nowMs)
  }

  /** It is back with that many tokens; undefined when it never got to the engine's work. */
  released({ permitId, offer, uncachedTokens }: InFlight, outputTokens: Tokens | undefined, nowMs: Ms): void {
    const charged = this.#charged.get(permitId)
    if (charged === undefined) return
    this.#charged.delete(permitId)
    const more = PROMPT_TOKENS_PER_OUTPUT_TOKEN * ((outputTokens ?? 0) - charged)
    this.#charge(offer, outputTokens === undefined ? more - uncachedTokens : more, nowMs)
  }

  /** What each tenant's requests are worth for its share, and what each class is owed; for people. */
  snapshot(nowMs: Ms): unknown {
    return { tenants: Object.fromEntries(this.tenants.worths(nowMs)), owed: this.#floors.snapshot() }
  }

  #count(offer: Offer, nowMs: Ms): void {
    if (this.#counted.has(offer)) return
    this.#counted.add(offer)
    this.tenants.seen(offer.tenant, shareOf(offer), nowMs)
    this.#floors.offered(offer.slo.name)
  }

  #charge(offer: Offer, tokens: Tokens, nowMs: Ms): void {
    this.tenants.charge(offer.tenant, shareOf(offer), tokens, nowMs)
  }

  /** The longest waiting of each class that is owed some, as many as it is owed. */
  #owedOf(waiters: readonly Waiter[], nowMs: Ms): ReadonlySet<Waiter> {
    const due = new Map<string, number>()
    const owed = new Set<Waiter>()
    for (const waiter of waiters) {
      const { name } = waiter.offer.slo
      const left = due.get(name) ?? this.#floors.due(name, nowMs)
      if (left > 0) owed.add(waiter)
      due.set(name, left - 1)
    }
    return owed
  }
}

const shareOf = ({ tenantShare }: Offer): number => tenantShare ?? 1
