/** Laws of loading: nothing unknown is overlooked, nothing throws, nothing that a variable held is repeated. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMap, isSeq, type Node, parseDocument } from 'yaml'
import { formatProblem } from '../../src/config/problem.ts'
import { HASH_A, load, problemsOf } from './files.ts'

/** Every mapping that a file can have, each once. */
const EVERYTHING = `admin: { listen: 127.0.0.1:9090 }
models:
  - name: llama
    engine_args: { max_num_seqs: 8 }
    replicas:
      - { url: http://10.0.0.11:8000 }
      - { dns: a.b, port: 1 }
classes:
  chat: { ttft: 1s, models: { llama: { ttft: 2s } } }
products:
  - { name: p, match: { header: { x-a: b } }, class: chat }
auth: { header: x-tenant, trusted: [10.0.0.0/8] }
tenants:
  - { name: t, key_sha256: ["${HASH_A}"], limits: { concurrent: 1 } }
slo: { window: 1d }
limits: { body: 1MiB, waiting: { requests: 5 } }
timeouts: { connect: 1s }
reroute: { budget: 5% }
`

fc.configureGlobal({ seed: 20_260_801 })

type Path = (string | number)[]

/** Paths of all mappings below a node. */
function mappings(node: unknown, path: Path = []): Path[] {
  if (isMap(node)) {
    const inner = node.items.flatMap((pair) => mappings(pair.value, [...path, String(pair.key)]))
    return [path, ...inner]
  }
  if (isSeq(node)) return node.items.flatMap((item, index) => mappings(item as Node, [...path, index]))
  return []
}

/** Mappings whose keys are names of one's own. */
const free = (path: Path) =>
  ['classes', 'classes.chat.models', 'products.0.match.header'].includes(path.join('.'))
const closed = mappings(parseDocument(EVERYTHING).contents).filter((path) => !free(path))

describe('loading', () => {
  it('accepts the file that the laws are tried on', () => {
    expect(problemsOf(load(EVERYTHING))).toEqual([])
    expect(closed.length).toBe(18)
  })

  it('names any unknown key anywhere with its position', () => {
    const key = fc
      .string({ unit: fc.constantFrom(...'abcxyz_-'), minLength: 1, maxLength: 8 })
      .map((text) => `q${text}`)
    const keys = fc.oneof({ weight: 9, arbitrary: key }, { weight: 1, arbitrary: fc.constant('__proto__') })
    const law = fc.property(fc.constantFrom(...closed), keys, (path, name) => {
      const document = parseDocument(EVERYTHING)
      const mapping = document.getIn(path)
      if (!isMap(mapping)) throw new Error(`no mapping at ${path}`)
      mapping.set(name, 1)
      const text = document.toString()
      const [problem] = problemsOf(load(text))
      expect(problem?.message).toBe(`unknown key "${name}"`)
      const line = text.split('\n')[(problem?.line ?? 0) - 1] ?? ''
      expect(line.slice((problem?.column ?? 0) - 1)).toMatch(new RegExp(`^"?${name}`))
    })
    fc.assert(law, { numRuns: 60 })
  })

  it('never throws for arbitrary text', () => {
    const pieces = fc.constantFrom(
      ...[
        'models',
        'classes',
        ':',
        ' ',
        '\n',
        '- ',
        '{',
        '}',
        '[',
        ']',
        '"',
        "'",
        '&a ',
        '*a',
        '!!',
        '|',
        '>',
        '#',
      ],
      ...[
        '\t',
        '---',
        '...',
        '${',
        '${A',
        '?',
        '<<',
        '__proto__',
        'null',
        '1s',
        '%',
        '@',
        '\u0000',
        '\ufeff',
        'é',
      ],
    )
    const text = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 60 }).map((parts) => parts.join('')),
    )
    const law = fc.property(text, (source) => {
      const result = load(source)
      for (const problem of problemsOf(result))
        expect(formatProblem(problem)).toMatch(/^sluice\.yaml:\d+:\d+: /)
      return result.ok || result.problems.some(({ severity }) => severity === 'error')
    })
    fc.assert(law, { numRuns: 300 })
  })

  it('never throws for a valid file with pieces cut out or doubled', () => {
    const cut = fc.tuple(fc.nat(EVERYTHING.length), fc.nat(12), fc.boolean())
    const law = fc.property(fc.array(cut, { minLength: 1, maxLength: 4 }), (cuts) => {
      const text = cuts.reduce((source, [at, length, twice]) => {
        const piece = source.slice(at, at + length)
        return source.slice(0, at) + (twice ? piece + piece : '') + source.slice(at + length)
      }, EVERYTHING)
      const result = load(text)
      return result.ok || result.problems.length > 0
    })
    fc.assert(law, { numRuns: 60 })
  })

  it('never throws for any value anywhere', () => {
    const places = mappings(parseDocument(EVERYTHING).contents)
    const law = fc.property(
      fc.constantFrom(...places),
      fc.jsonValue({ maxDepth: 2 }),
      fc.nat(5),
      (path, value, which) => {
        const document = parseDocument(EVERYTHING)
        const mapping = document.getIn(path)
        if (!isMap(mapping)) throw new Error(`no mapping at ${path}`)
        const pair = mapping.items[which % mapping.items.length]
        if (pair !== undefined) mapping.set(pair.key, document.createNode(value))
        return problemsOf(load(document.toString())).every(({ line, column }) => line > 0 && column > 0)
      },
    )
    fc.assert(law, { numRuns: 60 })
  })

  it('never repeats what a variable held', () => {
    const secret = fc.string({ unit: fc.constantFrom(...'abcdefgh0123456789'), minLength: 12, maxLength: 40 })
    const shape = fc.constantFrom('', 'http://user:', 'sk-', '$&', 'ftp://')
    const law = fc.property(
      fc.constantFrom(...closed),
      secret,
      shape,
      fc.nat(5),
      (path, text, start, which) => {
        const document = parseDocument(EVERYTHING)
        const mapping = document.getIn(path)
        if (!isMap(mapping)) throw new Error(`no mapping at ${path}`)
        const pair = mapping.items[which % mapping.items.length]
        if (pair !== undefined) mapping.set(pair.key, document.createNode(`\${SECRET}`))
        const result = load(document.toString(), { env: { SECRET: `${start}${text}@host` } })
        for (const problem of problemsOf(result)) expect(formatProblem(problem)).not.toContain(text)
      },
    )
    fc.assert(law, { numRuns: 60 })
  })
})
