/** Names a configuration by its meaning: comments, order of keys and spelling of units don't change the name. */
import { createHash } from 'node:crypto'
import type { Config } from './config.ts'

/** Long enough to tell the configurations of one fleet apart, short enough to read out. */
const DIGEST_LENGTH = 12
/** Left out of the digest, which stands in every log line. */
const SECRET_KEYS = new Set(['token', 'key'])

/** JSON with sorted keys. `secret` replaces the value of a secret key. */
export function canonicalJson(value: unknown, secret: (value: unknown) => unknown = (same) => same): string {
  return JSON.stringify(value, (key, inner: unknown) => {
    const own = SECRET_KEYS.has(key) && typeof inner === 'string' ? secret(inner) : inner
    if (typeof own !== 'object' || own === null || Array.isArray(own)) return own
    return Object.fromEntries(Object.entries(own).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

/** The first 12 hex digits of the sha256 of its meaning; whether a secret is set counts, not which. */
export function digestOf(config: Omit<Config, 'digest'>): string {
  const text = canonicalJson(config, () => 'set')
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_LENGTH)
}
