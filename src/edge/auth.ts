/** Says whose request it is: by key, by a trusted gateway's header, or nobody's in particular. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIPv6 } from 'node:net'
import { LRUCache } from 'lru-cache'
import { ProxyError } from '../errors.ts'
import type { AuthSettings, TenantSettings } from './settings.ts'

export interface Presented {
  readonly headers: IncomingHttpHeaders
  readonly remoteAddress: string | undefined
  /** Whether `x-api-key` may carry the key on this route. */
  readonly apiKeyHeader: boolean
}

/** Returns the tenant, or throws a ProxyError `unauthorized`. */
export type Authenticator = (presented: Presented) => TenantSettings

/** Whoever comes in with `auth: none`: every class and model, no limits. */
export const ANONYMOUS: TenantSettings = { name: 'anonymous', keySha256: [], scheduling: false }

/** Looked-up keys remembered by their hash, so that a busy key is not compared with all others each time. */
const REMEMBERED_KEYS = 1024

/** Makes the check that the configuration asks for. */
export function createAuthenticator(auth: AuthSettings, tenants: readonly TenantSettings[]): Authenticator {
  switch (auth.kind) {
    case 'none':
      return () => ANONYMOUS
    case 'header':
      return byHeader(auth.header, auth.trusted, tenants)
    case 'keys':
      return byKey(tenants)
    default:
      return auth satisfies never
  }
}

function byKey(tenants: readonly TenantSettings[]): Authenticator {
  const known = tenants.flatMap((tenant) =>
    tenant.keySha256.map((hash) => ({ digest: Buffer.from(hash, 'hex'), tenant })),
  )
  const seen = new LRUCache<string, { readonly tenant: TenantSettings | undefined }>({ max: REMEMBERED_KEYS })
  return ({ headers, apiKeyHeader }) => {
    const key = presentedKey(headers, apiKeyHeader)
    if (key === undefined) {
      throw new ProxyError('unauthorized', 'no key: send `authorization: Bearer <key>`')
    }
    const digest = createHash('sha256').update(key).digest()
    const name = digest.toString('hex')
    let found = seen.get(name)
    if (found === undefined) {
      found = { tenant: findTenant(known, digest) }
      seen.set(name, found)
    }
    if (found.tenant === undefined) throw new ProxyError('unauthorized', 'this key is not known here')
    return found.tenant
  }
}

/** Compares with every key in constant time each, and never stops early. */
function findTenant(
  known: readonly { readonly digest: Buffer; readonly tenant: TenantSettings }[],
  digest: Buffer,
): TenantSettings | undefined {
  let found: TenantSettings | undefined
  for (const entry of known) {
    if (entry.digest.length === digest.length && timingSafeEqual(entry.digest, digest)) found ??= entry.tenant
  }
  return found
}

function presentedKey(headers: IncomingHttpHeaders, apiKeyHeader: boolean): string | undefined {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
  if (bearer !== undefined) return bearer
  const apiKey = apiKeyHeader ? headers['x-api-key'] : undefined
  return typeof apiKey === 'string' && apiKey !== '' ? apiKey : undefined
}

function byHeader(
  header: string,
  trusted: readonly string[],
  tenants: readonly TenantSettings[],
): Authenticator {
  const byName = new Map(tenants.map((tenant) => [tenant.name, tenant]))
  const isTrusted = createAddressCheck(trusted)
  const key = header.toLowerCase()
  return ({ headers, remoteAddress }) => {
    if (!isTrusted(remoteAddress)) {
      throw new ProxyError(
        'unauthorized',
        `this address may not name a tenant in ${header}; see auth.trusted`,
      )
    }
    const name = headers[key]
    const tenant = typeof name === 'string' ? byName.get(name) : undefined
    if (tenant === undefined) {
      throw new ProxyError('unauthorized', `${header} must name one of the configured tenants`)
    }
    return tenant
  }
}

/** Whether an address is in one of the ranges; IPv4 in IPv6 clothes counts as IPv4. */
function createAddressCheck(ranges: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family)
  }
  return (remote) => {
    const address = remote?.replace(/^::ffff:(?=\d+\.)/i, '')
    return address !== undefined && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
  }
}
