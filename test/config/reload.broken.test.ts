/** Files that a reload must refuse, or find unchanged: broken, cut, emptied, or written for another Sluice. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/config.ts'
import { formatProblem } from '../../src/config/problem.ts'
import { createReloader, type Reloader } from '../../src/config/reload.ts'
import { HASH_A, load, loaded } from './files.ts'

const FULL = `models:
  - name: llama
    aliases: [default]
    engine_args: { max_num_seqs: 64 }
    replicas:
      - http://10.0.0.11:8000
      - { url: http://10.0.0.12:8000, engine: tgi }
mode: enforce
classes:
  chat: { ttft: 500ms, tpot: 50ms, objective: 99% }
tenants:
  - name: acme
    key_sha256: ["${HASH_A}"]
    classes: [chat]
limits: { body: 32MiB }
`

let folder: string
let path: string
let applied: Config[]
let told: { readonly level: string; readonly facts: object }[]
let failures: number
let reloader: Reloader

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-broken-'))
  path = join(folder, 'sluice.yaml')
  applied = []
  told = []
  failures = 0
  const say = (level: string) => (facts: object) => void told.push({ level, facts })
  reloader = createReloader({
    path,
    current: loaded(FULL),
    env: {},
    apply: (config) => void applied.push(config),
    log: { info: say('info'), warn: say('warn'), error: say('error') },
    onResult: ({ ok }) => {
      if (!ok) failures += 1
    },
  })
})
afterEach(() => rm(folder, { recursive: true }))

describe('a reload of a file', () => {
  it.each([
    ['that is empty', '', 1],
    ['that is only a comment', '# models:\n', 1],
    ['of null', 'null\n', 1],
    ['of a list', '- models\n', 1],
    ['of a word', 'models\n', 1],
    ['that is no YAML', `${FULL}  : [\n`, 17],
    ['with a tab for a space', FULL.replace('  chat:', '\tchat:'), 10],
    ['with an unknown key', `${FULL}timeout: 1s\n`, 16],
    ['of an older Sluice', FULL.replace('max_num_seqs', 'max_seqs'), 4],
    ['with a key twice', `${FULL}mode: off\n`, 16],
    ['without models', FULL.slice(FULL.indexOf('mode:')), 1],
    ['with a model without replicas', 'models: [{ name: llama }]\nauth: none\n', 1],
    ['with a number without its unit', FULL.replace('500ms', '500'), 10],
    ['with a word for a number', FULL.replace('64', 'many'), 4],
    ['with an unset variable', `${FULL}admin: { token: "\${TOKEN}" }\n`, 16],
    ['with bytes that are no text', `${FULL}\0\0`, 16],
  ])('%s changes nothing, and is told once with its line', async (_name, text, line) => {
    await writeFile(path, text)
    const result = await reloader.reload('watch')
    if (result.ok) throw new Error('it was taken')
    expect(applied).toEqual([])
    expect(reloader.current).toEqual(loaded(FULL))
    expect(failures).toBe(1)
    expect(told.map(({ level }) => level)).toEqual(['error'])
    const problems = result.problems.map(formatProblem)
    expect(problems.join('\n')).toMatch(/^\S*sluice\.yaml:\d+:\d+: error: \S/)
    expect(problems.map((problem) => Number(/yaml:(\d+):/.exec(problem)?.[1]))).toContain(line)
    await writeFile(path, FULL)
    expect(await reloader.reload('watch')).toMatchObject({ ok: true, changes: [] })
  })

  it('that is a folder or is not there changes nothing', async () => {
    expect(await reloader.reload('signal')).toMatchObject({ ok: false })
    await mkdir(path)
    expect(await reloader.reload('signal')).toMatchObject({ ok: false })
    expect([applied.length, failures]).toEqual([0, 2])
    await rm(path, { recursive: true })
    await writeFile(path, FULL.replace('enforce', 'off'))
    expect(await reloader.reload('signal')).toMatchObject({ ok: true, changes: ['mode: enforce → off'] })
  })

  it('that is half written never opens what keys guard', () => {
    for (let length = 0; length < FULL.length; length += 1) {
      const result = load(FULL.slice(0, length))
      if (!result.ok) {
        for (const { line, column } of result.problems) expect(Math.min(line, column)).toBeGreaterThan(0)
        continue
      }
      // Only where the tenants are there can it be taken.
      expect(result.config.auth).toEqual({ kind: 'keys' })
      expect(result.config.tenants).toHaveLength(1)
    }
  })
})
