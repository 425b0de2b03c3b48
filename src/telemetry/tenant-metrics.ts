/** What each tenant of the file got: judged requests and tokens. Nobody else makes a series. */
import type { Settlement } from '../core/records.ts'
import { OTHER } from '../slo/attainment.ts'
import { BoundCounter } from './bound-counter.ts'
import type { GlobalKey, Instruments } from './instruments.ts'
import { LABEL_VALUES } from './metric-table.ts'

interface TenantCounters {
  readonly requests: Readonly<Record<(typeof LABEL_VALUES.slo)[number], BoundCounter>>
  readonly tokens: Readonly<Record<(typeof LABEL_VALUES.kind)[number], BoundCounter>>
}

type TenantInstruments = Pick<Instruments<GlobalKey>, 'tenantRequests' | 'tenantTokens' | 'tenantShare'>

export class TenantMetrics {
  readonly #on: TenantInstruments
  readonly #tenants = new Map<string, TenantCounters>()

  constructor(on: TenantInstruments) {
    this.#on = on
  }

  /** Tenants of the file start at 0; those that left it go. `shares` are their weights, 1 where absent. */
  configure(tenants: readonly string[], shares: Readonly<Record<string, number>> = {}): void {
    for (const tenant of this.#tenants.keys()) if (!tenants.includes(tenant)) this.#forget(tenant)
    const all = tenants.reduce((sum, tenant) => sum + (shares[tenant] ?? 1), 0)
    for (const tenant of tenants) {
      this.#countersOf(tenant)
      this.#on.tenantShare.labels({ tenant }).set((shares[tenant] ?? 1) / all)
    }
  }

  settled({ offer, verdict, attempts, promptTokens, outputTokens }: Settlement): void {
    const counters = this.#tenants.get(offer.tenant) ?? this.#countersOf(OTHER)
    counters.requests[verdict.kind].inc()
    if (attempts === 0) return
    if (promptTokens > 0) counters.tokens.prompt.inc(promptTokens)
    if (outputTokens > 0) counters.tokens.output.inc(outputTokens)
  }

  /** Brings the counters up to date; to be called before the registry is printed. */
  refresh(): void {
    for (const { requests, tokens } of this.#tenants.values()) {
      for (const counter of [...Object.values(requests), ...Object.values(tokens)]) counter.tell()
    }
  }

  #countersOf(tenant: string): TenantCounters {
    const found = this.#tenants.get(tenant)
    if (found !== undefined) return found
    const requests = (slo: string) => new BoundCounter(this.#on.tenantRequests.labels({ tenant, slo }))
    const tokens = (kind: string) => new BoundCounter(this.#on.tenantTokens.labels({ tenant, kind }))
    const made = {
      requests: { good: requests('good'), bad: requests('bad'), excluded: requests('excluded') },
      tokens: { prompt: tokens('prompt'), output: tokens('output') },
    }
    this.#tenants.set(tenant, made)
    return made
  }

  #forget(tenant: string): void {
    this.#tenants.delete(tenant)
    for (const slo of LABEL_VALUES.slo) this.#on.tenantRequests.remove({ tenant, slo })
    for (const kind of LABEL_VALUES.kind) this.#on.tenantTokens.remove({ tenant, kind })
    this.#on.tenantShare.remove({ tenant })
  }
}
