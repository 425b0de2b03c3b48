/** Every file in config/ loads as it stands, without a warning. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { PROFILE_FACTS } from '../../src/cli/profile-facts.ts'
import { STARTER } from '../../src/cli/starter.ts'
import { BUILTIN_CLASSES } from '../../src/config/builtin-classes.ts'
import { HASH_A, HASH_B, load, loaded, MINIMAL } from './files.ts'

const folder = new URL('../../config/', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'))
const env = {
  SLUICE_ADMIN_TOKEN: 'a-token-that-is-long-enough',
  ACME_KEY_SHA256: HASH_A,
  EVALS_KEY_SHA256: HASH_B,
}

describe('the examples', () => {
  it('are all there', () => {
    expect(files).toEqual(
      expect.arrayContaining(['minimal.yaml', 'products.yaml', 'shadow.yaml', 'tenants.yaml']),
    )
  })

  it.each(files)('%s loads', (name) => {
    const text = readFileSync(new URL(name, folder), 'utf8')
    expect(load(text, { env, profiles: PROFILE_FACTS })).toMatchObject({ ok: true, warnings: [] })
    expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=./sluice.schema.json')
  })
})

describe('the starting file', () => {
  it('loads, in shadow mode, open to this machine only', () => {
    const result = load(STARTER, { profiles: PROFILE_FACTS })
    expect(result).toMatchObject({ ok: true, warnings: [] })
    expect(loaded(STARTER)).toMatchObject({
      mode: 'shadow',
      listen: { host: '127.0.0.1' },
      auth: { kind: 'none' },
    })
  })

  it('has the classes that a file without classes has', () => {
    expect(loaded(STARTER).classes).toEqual(loaded(MINIMAL).classes)
    expect(Object.keys(loaded(STARTER).classes)).toEqual(Object.keys(BUILTIN_CLASSES))
  })

  it('shows a placeholder that is refused when it is left in', () => {
    const uncommented = STARTER.replace('auth: none', 'auth: keys').replace(/^# (tenants:| {2})/gm, '$1')
    const result = load(uncommented)
    expect(result.ok).toBe(false)
    expect(JSON.stringify(result)).toContain('placeholder')
  })
})
