/** What the log says of a changed configuration. */
import { describe, expect, it } from 'vitest'
import { diffConfigs, sameConfig } from '../../src/config/diff.ts'
import { HASH_A, HASH_B, loaded } from './files.ts'

const file = (changes: Record<string, string> = {}) => {
  const parts: Record<string, string> = {
    replicas: '[http://10.0.0.11:8000, { dns: a.b, port: 1, key: secret-one }]',
    classes: '{ chat: { ttft: 500ms }, batch: {} }',
    products: '[{ name: p, match: { path: /x }, class: chat }]',
    tenants: `[{ name: acme, key_sha256: ["${HASH_A}"], share: 2 }]`,
    more: '',
    ...changes,
  }
  return loaded(`models: [{ name: llama, replicas: ${parts.replicas} }]
classes: ${parts.classes}
products: ${parts.products}
tenants: ${parts.tenants}
${parts.more}
`)
}

describe('the difference', () => {
  it.each([
    [{}, []],
    [{ more: 'mode: off' }, ['mode: shadow → off']],
    [
      { replicas: '[http://10.0.0.12:8000, { dns: a.b, port: 1, key: secret-one }]' },
      ['models.llama.replicas: - http://10.0.0.11:8000', 'models.llama.replicas: + http://10.0.0.12:8000'],
    ],
    [
      { classes: '{ chat: { ttft: 400ms }, batch: {} }' },
      ['classes.chat.ttftMs: 500 → 400', 'classes.chat.maxWaitMs: 500 → 400'],
    ],
    [{ classes: '{ chat: { ttft: 500ms } }' }, ['classes.batch: -']],
    [{ classes: '{ chat: { ttft: 500ms }, batch: {}, voice: {} }' }, ['classes.voice: +']],
    [{ products: '[]' }, ['products: - p: {"path":"/x"} → chat']],
    [{ more: 'admin: { token: a-secret-that-is-long }' }, ['admin.token: changed']],
    [
      { tenants: `[{ name: acme, key_sha256: ["${HASH_B}"], share: 2 }]` },
      ['tenants.acme.keySha256: changed'],
    ],
    [
      { replicas: '[http://10.0.0.11:8000, { dns: a.b, port: 1, key: secret-two }]' },
      ['models.llama.keys: changed'],
    ],
  ])('with %j reads well', (changes, lines) => {
    const [before, after] = [file(), file(changes)]
    expect(diffConfigs(before, after)).toEqual(lines)
    expect(sameConfig(before, after)).toBe(lines.length === 0)
  })
})
