/** Every fault of a file is told once, at its place, with what to write. */
import { describe, expect, it } from 'vitest'
import type { Problem } from '../../src/config/problem.ts'
import { HASH_A, load, MINIMAL, problemsOf, profiles } from './files.ts'

const FAULTS: readonly [string, string, string, string?][] = [
  ['', '1:1 ', 'empty', 'sluice init'],
  ['# only a comment\n', '1:1 ', 'empty', 'sluice init'],
  ['- a\n', '1:1 ', 'must be a mapping', 'key: value'],
  ['auth: none\n', '1:1 ', 'models is missing', 'add models'],
  [`${MINIMAL}---\nmode: off\n`, '4:1 ', 'second document', 'remove the ---'],
  ['models:\n\t- a\n', '2:1 ', 'tab', 'spaces'],
  [`${MINIMAL}mode: off\nmode: shadow\n`, '5:1 ', 'twice', 'keep one'],
  [`${MINIMAL}slo: { window: 30d\n`, '5:1 ', 'flow map'],
  [`${MINIMAL}slo: "30d\n`, '5:1 ', 'not YAML: missing closing'],
  [`${MINIMAL}timeout: { connect: 1s }\n`, '4:1 timeout', 'unknown key', 'did you mean timeouts?'],
  [`${MINIMAL}classes: { c: { tttf: 1s } }\n`, '4:17 classes.c.tttf', 'unknown key', 'did you mean ttft?'],
  [
    `${MINIMAL}classes: { c: { maxWait: 1s } }\n`,
    '4:17 classes.c.maxWait',
    'unknown',
    'did you mean max_wait?',
  ],
  [`${MINIMAL}drain: 60s\n`, '4:1 drain', 'unknown key', 'it belongs to timeouts.drain'],
  [`${MINIMAL}classes: { c: { ttft: 500 } }\n`, '4:23 classes.c.ttft', 'no unit', 'write 500ms'],
  [`${MINIMAL}mode: enforced\n`, '4:7 mode', 'none of', 'did you mean enforce?'],
  [`${MINIMAL}default_class: caht\n`, '4:16 default_class', 'no class "caht"', 'did you mean chat?'],
  [`${MINIMAL}products:\n`, '4:1 products', 'no value', 'remove the key'],
  [
    `${MINIMAL}classes: { c: { objective: 100%, ttft: 1s } }\n`,
    '4:28 classes.c.objective',
    'range',
    'error budget',
  ],
  [
    `${MINIMAL}classes: { c: { objective: 99% } }\n`,
    '4:17 classes.c.objective',
    'measures nothing',
    'add ttft',
  ],
  [`${MINIMAL}classes: { c: { overload: shed } }\n`, '4:27 classes.c.overload', 'too late', 'wait'],
  [
    `${MINIMAL}classes: { c: { ttft_per_1k_tokens: 1s } }\n`,
    '4:17 classes.c.ttft_per_1k_tokens',
    'grow',
    'add ttft',
  ],
  [
    `${MINIMAL}classes: { c: { ttft: 2s, e2e: 1s } }\n`,
    '4:23 classes.c.ttft',
    'later than e2e',
    'before the last',
  ],
  [
    `${MINIMAL}classes: { c: { ttft: 1s, models: { lama: {} } } }\n`,
    '4:37 classes.c.models.lama',
    'no model',
    'llama',
  ],
  [`${MINIMAL}classes: { "a b": {} }\n`, '4:12 classes.a b', 'can not be a name', 'letters'],
  [`${MINIMAL}admin: { listen: 0.0.0.0:9090 }\n`, '4:18 admin.listen', 'no token', 'admin.token'],
  [
    `${MINIMAL}admin: { agent: 127.0.0.1:9090 }\n`,
    '4:17 admin.agent',
    'the admin port already listens',
    'another port',
  ],
  [`${MINIMAL}admin: { listen: 127.0.0.1:8080 }\n`, '4:18 admin.listen', 'already listens', 'another port'],
  [
    `${MINIMAL}products: [{ name: a, match: {}, class: chat }]\n`,
    '4:30 products[0].match',
    'every request',
    'default_class',
  ],
  [
    `${MINIMAL}products: [{ name: a, match: { path: /x }, class: cat }]\n`,
    '4:51 products[0].class',
    'no class',
    'chat',
  ],
  [
    `${MINIMAL}products: [{ name: a, match: { tenant: t }, class: chat }]\n`,
    '4:40 products[0].match.tenant',
    'no tenant',
  ],
  [
    `${MINIMAL}products: [{ name: none, match: { path: /x }, class: chat }]\n`,
    '4:20 products[0].name',
    'without product',
  ],
  [`${MINIMAL}passthrough: [/v1/completions]\n`, '4:15 passthrough[0]', 'route of Sluice', 'remove'],
  [`${MINIMAL}limits: { body: 2GiB }\n`, '4:17 limits.body', 'never fits', 'limits.buffered'],
  [`${MINIMAL}slo: { state_file: "\${GONE}" }\n`, '4:20 ', 'no variable GONE', 'give a default'],
]

/** Faults of a model's lines: what follows `- name: llama`, then as above. */
const MODEL_FAULTS: readonly [string, string, string, string?][] = [
  ['replicas: []', 'models[0].replicas', 'list is empty', 'give it an entry'],
  ['replicas: http://a:1', 'models[0].replicas', 'must be a list', '[ ]'],
  ['replicas: [10.0.0.1:8000]', 'models[0].replicas[0]', 'not a URL', 'write http://10.0.0.1:8000'],
  ['replicas: [http://a:1/v1]', 'models[0].replicas[0]', 'has a path', 'write http://a:1'],
  ['replicas: [ftp://a:1]', 'models[0].replicas[0]', 'neither http', 'http://a:1'],
  ['replicas: [http://u:pw@a:1]', 'models[0].replicas[0]', 'credentials', 'key:'],
  ['replicas: [http://a:1, http://a:1/]', 'models[0].replicas[1]', 'second time', 'keep one'],
  ['replicas: [{ key: k }]', 'models[0].replicas[0]', 'no address', 'dns:'],
  ['replicas: [{ dns: a }]', 'models[0].replicas[0].dns', 'needs a port', 'port: 8000'],
  ['replicas: [{ dns: a, port: 1, url: http://a:1 }]', 'models[0].replicas[0].dns', 'either url or dns'],
  ['{ replicas: [http://a:1], aliases: [x, x] }', 'models[0].aliases[1]', 'already stands', 'one meaning'],
  ['{ replicas: [http://a:1], profile: H200 }', 'models[0].profile', 'no profile', 'known here: known/gpu'],
]

describe('a fault', () => {
  const expectFault = (problems: readonly Problem[], place: string, message: string, suggestion = '') => {
    const told = problems.map((problem) => `${problem.line}:${problem.column} ${problem.path}`)
    const found = problems.find((problem) =>
      `${problem.line}:${problem.column} ${problem.path}`.endsWith(place),
    )
    expect(found, `${place} among ${told.join(' | ')}`).toBeDefined()
    expect(found?.message).toContain(message)
    expect(found?.suggestion ?? '').toContain(suggestion)
  }

  it.each(FAULTS)('%j is told at %s', (text, place, message, suggestion) => {
    const result = load(text)
    expect(result.ok).toBe(false)
    expect(problemsOf(result).map(({ severity }) => severity)).not.toContain('warning')
    expect(problemsOf(result)).toHaveLength(1)
    expectFault(problemsOf(result), place, message, suggestion)
  })

  it.each(MODEL_FAULTS)('of a model, %s, is told', (lines, place, message, suggestion) => {
    const rest = lines.startsWith('{') ? lines.slice(1, -1) : lines
    const result = load(`auth: none\nmodels:\n  - { name: llama, ${rest} }\n`, { profiles })
    expect(result.ok).toBe(false)
    expectFault(problemsOf(result), place, message, suggestion)
  })

  it.each([
    ['"<sha256 of the key>"', 'placeholder'],
    ['sk-sluice-abcdef', 'a key itself'],
    ['abc', '64 hex digits'],
    [`"${'0'.repeat(64)}"`, 'placeholder'],
    ['e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 'placeholder'],
    [`${'1'.repeat(64)}`, 'as a number'],
  ])('of a key hash, %s, is told once and without it', (hash, message) => {
    const text = `${MINIMAL.replace('none', 'keys')}tenants: [{ name: a, key_sha256: [${hash}] }]\n`
    const problems = problemsOf(load(text))
    expect(problems).toHaveLength(1)
    expect(problems[0]?.message).toContain(message)
    expect(problems[0]?.suggestion).toBeDefined()
  })

  it('of tenants is told for each', () => {
    const text = `${MINIMAL.replace('none', 'keys')}tenants:
  - { name: a, key_sha256: ["${HASH_A}"], classes: [chatt], models: [lama] }
  - { name: a, key_sha256: ["${HASH_A}"] }
  - { name: anonymous }
`
    const told = problemsOf(load(text)).map(({ line, path }) => `${line} ${path}`)
    expect(told).toEqual([
      '5 tenants[0].classes[0]',
      '5 tenants[0].models[0]',
      '6 tenants[1].name',
      '6 tenants[1].key_sha256[0]',
      '7 tenants[2]',
      '7 tenants[2].name',
    ])
  })

  it('of a missing auth says what the choices are', () => {
    const [problem] = problemsOf(load(MINIMAL.replace('auth: none\n', '')))
    expect(problem?.message).toContain('who may call')
    expect(problem?.suggestion).toContain('auth: none')
  })

  it('of names between models is told at the second use', () => {
    const text = `auth: none
models:
  - { name: a, aliases: [b], replicas: [http://x:1] }
  - { name: b, adapters: [lora], replicas: [{ url: http://x:1, engine: tgi }] }
  - { name: c, adapters: [lora], replicas: [{ url: http://x:1, key: k }] }
`
    const told = problemsOf(load(text)).map(
      ({ line, path, message }) => `${line} ${path} ${message.split(' ').at(-1)}`,
    )
    expect(told).toEqual([
      '4 models[1].name "a"',
      '4 models[1].replicas[0] here',
      '5 models[2].adapters[0] "b"',
      '5 models[2].replicas[0] model',
    ])
  })

  it('keeps its place when wrong neighbours were cut out before', () => {
    const text = `auth: none
models:
  - { nam: a }
  - { name: b, replicas: [http://x:1/path, http://y:1, http://y:1] }
default_class: none-such
`
    const told = problemsOf(load(text)).map(({ line, column, path }) => `${line}:${column} ${path}`)
    expect(told).toContain('4:56 models[1].replicas[2]')
    expect(told).toContain('5:16 default_class')
  })

  it('of a variable does not count twice', () => {
    expect(problemsOf(load(`${MINIMAL}timeouts: { connect: "\${NONE}" }\n`))).toHaveLength(1)
  })

  it('of size or depth is told and never thrown', () => {
    expect(problemsOf(load('#'.repeat(2 ** 20 + 1)))[0]?.message).toContain('1 MiB')
    expect(load('['.repeat(20_000)).ok).toBe(false)
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]']
    for (let level = 1; level < 9; level++) {
      const before = String.fromCharCode(96 + level)
      bomb.push(
        `${String.fromCharCode(97 + level)}: &${String.fromCharCode(97 + level)} [${`*${before},`.repeat(9)}]`,
      )
    }
    expect(problemsOf(load(bomb.join('\n')))[0]?.message).toContain('aliases')
  })
})
