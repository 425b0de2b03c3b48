/** Finds the class and the product of a request: header, else product rule, else default; then what the tenant may. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Draft } from '../core/draft.ts'
import type { SloClass } from '../core/request.ts'
import { ProxyError } from '../errors.ts'
import type { EdgeSettings, ProductSettings, TenantSettings } from './settings.ts'

export interface Subject {
  readonly headers: IncomingHttpHeaders
  readonly path: string
  readonly tenant: TenantSettings
  /** The configured name of the model. */
  readonly model: string
}

export interface Classified {
  readonly slo: SloClass
  readonly product: string
  /** The class that was asked for and is not allowed to this tenant. */
  readonly clampedFrom?: string
}

/** The product of requests that no rule matches. */
export const NO_PRODUCT = 'none'

/** Throws `forbidden` for a tenant that may use no class at all. Unknown class names in the header count as absent. */
export function classify(settings: EdgeSettings, subject: Subject): Classified {
  const product = settings.products.find((candidate) => matches(candidate, subject))
  const asked = headerOf(subject.headers, 'x-slo-class')
  const known = asked !== undefined && Object.hasOwn(settings.classes, asked) ? asked : undefined
  const wanted = known ?? product?.class ?? settings.defaultClass
  const allowed = subject.tenant.classes
  const name = allowed === undefined || allowed.includes(wanted) ? wanted : allowed[0]
  if (name === undefined) throw new ProxyError('forbidden', 'this key may not use any class')
  const slo = settings.classesByModel[name]?.[subject.model] ?? settings.classes[name]
  if (slo === undefined) throw new ProxyError('internal', `class ${name} is not configured`)
  const classified: Draft<Classified> = { slo, product: product?.name ?? NO_PRODUCT }
  if (name !== wanted) classified.clampedFrom = wanted
  return classified
}

function matches(rule: ProductSettings, subject: Subject): boolean {
  const { header, path, tenant, model } = rule.match
  if (path !== undefined && path !== subject.path) return false
  if (tenant !== undefined && tenant !== subject.tenant.name) return false
  if (model !== undefined && model !== subject.model) return false
  return Object.entries(header ?? {}).every(
    ([name, value]) => headerOf(subject.headers, name.toLowerCase()) === value,
  )
}

export interface Steering {
  readonly steerTtftMs?: number
  readonly steerTpotMs?: number
}

/**
 * Targets that the client steers by. They may not be tighter than the tightest that its tenant could have by class,
 * so that a header never outranks a key.
 */
export function steering(settings: EdgeSettings, subject: Subject): Steering {
  const ttftMs = wished(subject.headers, 'x-slo-ttft-ms', 'x-llm-d-slo-ttft-ms')
  const tpotMs = wished(subject.headers, 'x-slo-tpot-ms', 'x-llm-d-slo-tpot-ms')
  if (ttftMs === undefined && tpotMs === undefined) return {}
  const names = subject.tenant.classes ?? Object.keys(settings.classes)
  const classes = names.map(
    (name) => settings.classesByModel[name]?.[subject.model] ?? settings.classes[name],
  )
  const atLeast = (wantedMs: number | undefined, of: (slo: SloClass) => number | undefined) => {
    const targetsMs = classes.map(
      (slo) => (slo === undefined ? undefined : of(slo)) ?? Number.POSITIVE_INFINITY,
    )
    const steeredMs = Math.max(wantedMs ?? Number.POSITIVE_INFINITY, Math.min(...targetsMs))
    return Number.isFinite(steeredMs) ? steeredMs : undefined
  }
  const steerTtftMs = atLeast(ttftMs, (slo) => slo.ttftMs)
  const steerTpotMs = atLeast(tpotMs, (slo) => slo.tpotMs)
  return {
    ...(steerTtftMs === undefined ? {} : { steerTtftMs }),
    ...(steerTpotMs === undefined ? {} : { steerTpotMs }),
  }
}

function wished(headers: IncomingHttpHeaders, name: string, otherName: string): number | undefined {
  const text = headerOf(headers, name) ?? headerOf(headers, otherName)
  const wanted = text === undefined ? Number.NaN : Number(text)
  return Number.isFinite(wanted) && wanted > 0 ? wanted : undefined
}

/** A header's single value, or undefined. The name is in lower case. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  const text = typeof value === 'string' ? value.trim() : undefined
  return text === '' ? undefined : text
}
