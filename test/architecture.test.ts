/** Holds the house to its law: arrows, homes, purity, sizes and names; and shows that each rule can fail. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { findBreaches, type RuleName, type SourceText } from './architecture/check.ts'
import { FOLDERS, HOMES } from './architecture/rules.ts'

const ROOT = new URL('../', import.meta.url)

function sourcesUnder(folder: string): SourceText[] {
  return readdirSync(new URL(`${folder}/`, ROOT), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .sort()
    .map((path) => ({ path, text: readFileSync(new URL(path, ROOT), 'utf8') }))
}

describe('the sources', () => {
  const sources = sourcesUnder('src')

  it('are found', () => {
    expect(sources.length).toBeGreaterThan(10)
    expect(sources.map((source) => source.path)).toContain('src/core/ledger.ts')
  })

  it('keep every rule', () => {
    const found = findBreaches(sources).map((breach) => {
      return `${breach.path}:${breach.line} [${breach.rule}] ${breach.message}`
    })
    expect(found).toEqual([])
  })

  it('live in folders of the table, each of which exists', () => {
    const names = readdirSync(new URL('src/', ROOT))
    expect([...names].sort()).toEqual(FOLDERS.map((folder) => folder.name).sort())
  })
})

describe('the table of folders', () => {
  it('has no arrow to an unknown folder and none that leads back', () => {
    const arrows = new Map(FOLDERS.map((folder) => [folder.name, folder.mayImport.map((arrow) => arrow.to)]))
    const reach = (name: string, path: readonly string[]): void => {
      expect(path, `a circle through ${name}`).not.toContain(name)
      const targets = arrows.get(name)
      expect(targets, `${name} is no row of the table`).toBeDefined()
      for (const target of targets ?? []) reach(target, [...path, name])
    }
    for (const folder of FOLDERS) reach(folder.name, [])
  })

  it('lets pure folders import pure folders only', () => {
    const pure = new Set(FOLDERS.filter((folder) => folder.pure).map((folder) => folder.name))
    const leaks = FOLDERS.filter((folder) => folder.pure).flatMap((folder) =>
      folder.mayImport.filter((arrow) => !pure.has(arrow.to)).map((arrow) => `${folder.name} → ${arrow.to}`),
    )
    expect(leaks).toEqual([])
  })

  it('gives a home to each runtime dependency', () => {
    const manifest = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
      dependencies: Record<string, string>
      optionalDependencies: Record<string, string>
    }
    const names = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
    const homeless = names.filter((name) => HOMES[name] === undefined)
    expect(homeless).toEqual([])
  })
})

describe('the checker', () => {
  const OPENING = '/** Decides a thing. */\n'
  const breachesOf = (path: string, code: string): string[] =>
    findBreaches([{ path, text: OPENING + code }]).map((breach) => breach.rule)
  const lines = (count: number): string => 'x()\n'.repeat(count)

  const planted: readonly (readonly [rule: RuleName, path: string, code: string])[] = [
    ['folder', 'src/utils/a.ts', ''],
    ['folder', 'src/stray.ts', ''],
    ['arrow', 'src/core/a.ts', `import { x } from '../slo/judge.ts'`],
    ['arrow', 'src/core/a.ts', `export * from '../errors.ts'`],
    ['arrow', 'src/slo/a.ts', `const x = () => import('../edge/app.ts')`],
    ['arrow', 'src/engines/a.ts', `type X = import('../upstream/ports.ts').Fleet`],
    ['arrow', 'src/edge/a.ts', `import type { X } from '../upstream/pool.ts'`],
    ['arrow', 'src/edge/a.ts', `import type { X } from '../../test/support/x.ts'`],
    ['arrow', 'src/policies/ordering/a.ts', `import { x } from '../../sim/engine.ts'`],
    ['types-only', 'src/edge/a.ts', `import { x } from '../upstream/ports.ts'`],
    ['home', 'src/edge/a.ts', `import { request } from 'undici'`],
    ['home', 'src/upstream/pool.ts', `import CircuitBreaker from 'opossum'`],
    ['home', 'src/cli/a.ts', `import { serve } from '@hono/node-server'`],
    ['home', 'src/cli/a.ts', `import { x } from 'left-pad'`],
    ['home', 'src/core/a.ts', `import { LRUCache } from 'lru-cache'`],
    ['home', 'src/edge/a.ts', `import { spawn } from 'node:child_process'`],
    ['node-module', 'src/engines/a.ts', `import { readFileSync } from 'node:fs'`],
    ['node-module', 'src/sim/a.ts', `import { setTimeout } from 'node:timers/promises'`],
    ['impure', 'src/core/a.ts', `export const x = Date.now()`],
    ['impure', 'src/slo/a.ts', `export const x = performance.now()`],
    ['impure', 'src/estimate/a.ts', `setTimeout(f, 1)`],
    ['impure', 'src/sim/a.ts', `export const x = Math.random()`],
    ['impure', 'src/policies/a.ts', `export const x = process.env.X`],
    ['impure', 'src/engines/a.ts', `console.log(1)`],
    ['impure', 'src/engines/a.ts', `fetch('http://x')`],
    ['impure', 'src/core/a.ts', `export type X = Promise<void>`],
    ['async', 'src/core/a.ts', `export const x = async () => 1`],
    ['file-length', 'src/core/a.ts', lines(300)],
    ['function-length', 'src/core/a.ts', `export function f() {\n${lines(49)}}`],
    ['function-length', 'src/core/a.ts', `export const f = () => {\n${lines(49)}}`],
    ['function-length', 'src/core/a.ts', `class A {\n  f() {\n${lines(49)}  }\n}`],
    ['default-export', 'src/core/a.ts', `export default 1`],
    ['default-export', 'src/core/a.ts', `export default function f() {}`],
    ['default-export', 'src/core/a.ts', `const x = 1\nexport { x as default }`],
    ['enum', 'src/core/a.ts', `enum X { A }`],
    ['any', 'src/core/a.ts', `export const x: any = 1`],
    ['non-null', 'src/core/a.ts', `export const x = y!`],
    ['non-null', 'src/core/a.ts', `class A {\n  x!: number\n}`],
    ['banned-word', 'src/core/queue-helpers.ts', ''],
    ['banned-word', 'src/core/a.ts', `export class QueueManager {}`],
    ['banned-word', 'src/core/a.ts', `export const replicaInfo = 1`],
    ['banned-word', 'src/core/a.ts', `export interface HTTPData {}`],
    ['banned-word', 'src/core/a.ts', `export function eventHandler() {}`],
    ['banned-word', 'src/core/a.ts', `const x = 1\nexport { x as utils }`],
  ]

  const firstLine = (code: string): string => code.split('\n')[0] ?? ''

  it.each(planted.map(([rule, path, code]) => ({ rule, path, code, shown: firstLine(code) })))(
    'catches a breach of "$rule" in $path: $shown',
    ({ rule, path, code }) => {
      expect(breachesOf(path, code)).toContain(rule)
    },
  )

  it.each(['import x from "y"\n', '/** No full stop */\n', '// A comment.\n', '/**\n * Two lines. */\n', ''])(
    'catches a file that opens with %j',
    (text) => {
      expect(findBreaches([{ path: 'src/core/a.ts', text }]).map((breach) => breach.rule)).toContain(
        'first-line',
      )
    },
  )

  it('has a planted breach for each rule', () => {
    const rules: Record<RuleName, true> = {
      folder: true,
      arrow: true,
      'types-only': true,
      home: true,
      'node-module': true,
      impure: true,
      async: true,
      'first-line': true,
      'file-length': true,
      'function-length': true,
      'default-export': true,
      enum: true,
      any: true,
      'non-null': true,
      'banned-word': true,
    }
    const shown = new Set<string>([...planted.map(([rule]) => rule), 'first-line'])
    expect([...shown].sort()).toEqual(Object.keys(rules).sort())
  })

  const innocent: readonly (readonly [path: string, code: string])[] = [
    ['src/edge/a.ts', `import type { Fleet } from '../upstream/ports.ts'`],
    ['src/edge/a.ts', `import { type Fleet, type Replica } from '../upstream/ports.ts'`],
    ['src/edge/a.ts', `import { Hono } from 'hono'\nimport { createServer } from 'node:http'`],
    ['src/edge/a.ts', `export const routeHandler = () => Date.now()`],
    ['src/upstream/breaker.ts', `import CircuitBreaker from 'opossum'`],
    ['src/policies/ordering/a.ts', `import type { Ms } from '../../core/units.ts'`],
    ['src/core/a.ts', `export const x = { fetch: 1 }\nexport const y = x.fetch`],
    ['src/core/a.ts', `export function f() {\n${lines(48)}}`],
    ['src/core/a.ts', lines(299)],
    ['src/core/database.ts', `export const dataset = 1`],
  ]

  it.each(innocent.map(([path, code]) => ({ path, code, shown: firstLine(code) })))(
    'finds nothing wrong in $path: $shown',
    ({ path, code }) => {
      expect(breachesOf(path, code)).toEqual([])
    },
  )
})
