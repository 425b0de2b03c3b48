import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createAuthenticator } from '../../src/edge/auth.ts'
import type { TenantSettings } from '../../src/edge/settings.ts'

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')
const tenants: readonly TenantSettings[] = [
  { name: 'acme', keySha256: [hashOf('old'), hashOf('new')], scheduling: false },
  { name: 'ops', keySha256: [hashOf('ops')], scheduling: true },
]
const present = (headers: Record<string, string>, remoteAddress = '127.0.0.1', apiKeyHeader = false) => ({
  headers,
  remoteAddress,
  apiKeyHeader,
})

describe('authentication by key', () => {
  const authenticate = createAuthenticator({ kind: 'keys' }, tenants)

  it('finds the tenant of each of its keys, again and again', () => {
    for (const key of ['old', 'new', 'old']) {
      expect(authenticate(present({ authorization: `Bearer ${key}` })).name).toBe('acme')
    }
    expect(authenticate(present({ authorization: 'BEARER  ops ' })).name).toBe('ops')
  })

  it.each([
    ['nothing', {}],
    ['another scheme', { authorization: 'Basic b2xk' }],
    ['an unknown key', { authorization: 'Bearer nope' }],
    ['a hash in place of its key', { authorization: `Bearer ${hashOf('old')}` }],
    ['an API key header where it has no meaning', { 'x-api-key': 'old' }],
  ])('refuses %s', (_name, headers) => {
    expect(() => authenticate(present(headers))).toThrow(/key/)
    expect(() => authenticate(present(headers))).toThrow(expect.objectContaining({ code: 'unauthorized' }))
  })

  it('takes an API key header where the dialect has one', () => {
    expect(authenticate(present({ 'x-api-key': 'ops' }, '127.0.0.1', true)).name).toBe('ops')
  })
})

describe('authentication by a gateway', () => {
  const auth = {
    kind: 'header',
    header: 'X-Tenant',
    trusted: ['10.0.0.0/8', 'fd00::/8', '192.0.2.7'],
  } as const
  const authenticate = createAuthenticator(auth, tenants)

  it.each(['10.1.2.3', '::ffff:10.1.2.3', 'fd00::1', '192.0.2.7'])('believes %s', (address) => {
    expect(authenticate(present({ 'x-tenant': 'ops' }, address)).name).toBe('ops')
  })

  it.each([
    ['11.0.0.1', 'ops'],
    ['192.0.2.8', 'ops'],
    ['::1', 'ops'],
    ['10.0.0.1', 'nobody'],
  ])('refuses %s that names %s', (address, name) => {
    expect(() => authenticate(present({ 'x-tenant': name }, address))).toThrow()
  })
})
