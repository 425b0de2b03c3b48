/** From text to Config: what a file means, and every fault with its place and what to write instead. */
import { describe, expect, it } from 'vitest'
import type { Problem } from '../../src/config/problem.ts'
import { HASH_A, HASH_B, load, loaded, MINIMAL, problemsOf } from './files.ts'

const WHOLE = `listen: 0.0.0.0:8080
admin: { listen: "[::]:9090", token: "\${TOKEN}" }
mode: enforce
instances: 2
models:
  - name: llama
    aliases: [default]
    served_name: meta-llama/Llama-3.1-8B-Instruct
    adapters: [sql-lora]
    engine_args: { max_num_seqs: 256, max_num_batched_tokens: 8k, max_model_len: 131072, kv_capacity_tokens: 400k }
    replicas:
      - http://10.0.0.11:8000/
      - { url: https://10.0.0.12, key: "\${ENGINE_KEY}", engine: tgi }
      - { dns: vllm.llm.svc, port: 8000 }
classes:
  chat: { ttft: 500ms, tpot: 50ms, models: { default: { ttft: 900ms } } }
  quiet:
default_class: chat
products:
  - { name: ide, match: { header: { X-Product: ide }, model: default }, class: quiet }
auth: keys
tenants:
  - name: acme
    key_sha256: ["${HASH_A.toUpperCase()}"]
    models: [default, sql-lora]
    limits: { concurrent: 5, requests: 50/s, tokens: 500k/min }
passthrough: [/rerank]
`

const env = { TOKEN: 'a-long-enough-token', ENGINE_KEY: 'engine-secret' }

describe('a valid file', () => {
  it('means what it says', () => {
    const config = loaded(WHOLE, { env })
    expect(config).toMatchObject({
      listen: { host: '0.0.0.0', port: 8080 },
      admin: { listen: { host: '::', port: 9090 }, token: 'a-long-enough-token' },
      mode: 'enforce',
      auth: { kind: 'keys' },
      passthrough: ['/rerank'],
      rerouteBudgetRatio: 0.1,
    })
    expect(config.models[0]).toEqual({
      name: 'llama',
      aliases: ['default'],
      servedName: 'meta-llama/Llama-3.1-8B-Instruct',
      adapters: ['sql-lora'],
      engineArgs: {
        maxNumSeqs: 256,
        maxNumBatchedTokens: 8000,
        maxModelLenTokens: 131_072,
        kvCapacityTokens: 400_000,
      },
      priorityScheduling: false,
      renameAnswers: false,
      replicas: [
        { kind: 'url', url: 'http://10.0.0.11:8000', engine: 'vllm' },
        { kind: 'url', url: 'https://10.0.0.12', key: 'engine-secret', engine: 'tgi' },
        { kind: 'dns', host: 'vllm.llm.svc', port: 8000, engine: 'vllm' },
      ],
    })
  })

  it('has aliases resolved, headers in lower case, and adapters left alone', () => {
    const config = loaded(WHOLE, { env })
    expect(config.classesByModel).toMatchObject({ chat: { llama: { ttftMs: 900, tpotMs: 50 } } })
    expect(config.products[0]?.match).toEqual({ header: { 'x-product': 'ide' }, model: 'llama' })
    expect(config.tenants[0]).toMatchObject({ models: ['llama', 'sql-lora'], keySha256: [HASH_A] })
  })

  it('divides the limits of tenants by the instances, once', () => {
    expect(loaded(WHOLE, { env }).tenants[0]?.limits).toEqual({
      concurrentRequests: 2,
      requestsPerSec: 25,
      tokensPerMin: 250_000,
    })
  })

  it('has defaults that are safe in production', () => {
    const config = loaded(MINIMAL)
    expect(config).toMatchObject({
      mode: 'shadow',
      instances: 1,
      listen: { host: '0.0.0.0', port: 8080 },
      admin: { listen: { host: '127.0.0.1', port: 9090 } },
      defaultClass: 'best-effort',
      slo: { windowMs: 30 * 86_400_000 },
      limits: {
        bodyBytes: 32 * 2 ** 20,
        bufferedBytes: 2 ** 30,
        waiting: { requests: 2000, bytes: 512 * 2 ** 20, tokens: 8e6 },
        requestMs: 3_600_000,
      },
      timeouts: {
        connectMs: 1000,
        firstByteMs: 120_000,
        betweenBytesMs: 30_000,
        heartbeatAfterMs: 15_000,
        drainMs: 60_000,
      },
    })
    expect(Object.keys(config.classes)).toEqual([
      'chat',
      'voice',
      'autocomplete',
      'agent',
      'batch',
      'best-effort',
    ])
  })

  it('asks for keys as soon as there are tenants', () => {
    const text = `${MINIMAL.replace('auth: none\n', '')}tenants: [{ name: a, key_sha256: ["${HASH_A}"] }]\n`
    expect(loaded(text).auth).toEqual({ kind: 'keys' })
  })

  it('takes numbers out of variables', () => {
    const config = loaded(`${MINIMAL}instances: \${N:-3}\nlimits: { waiting: { requests: "\${W}" } }\n`, {
      env: { W: '5k' },
    })
    expect(config).toMatchObject({ instances: 3, limits: { waiting: { requests: 5000 } } })
  })

  it.each([
    ['0', /workers: 0.*a whole number from 1 to 64/],
    ['65', /workers: 65.*a whole number from 1 to 64/],
    ['two', /workers: "two" is not a count/],
    ['1.5', /workers: 1.5 is not a count/],
  ])('refuses workers: %s', (workers, said) => {
    const problems = problemsOf(load(`${MINIMAL}workers: ${workers}\n`))
    expect(
      problems.map(({ path, message, suggestion }) => `${path}: ${message}: ${suggestion}`).join('\n'),
    ).toMatch(said)
  })

  it('treats an empty token as none', () => {
    expect(loaded(`${MINIMAL}admin: { token: "\${NONE:-}" }\n`).admin).not.toHaveProperty('token')
  })
})

describe('targets', () => {
  const classOf = (text: string) => loaded(`${MINIMAL}classes: { c: ${text} }\n`).classes.c

  it.each([
    ['{ ttft: 500ms }', { ttftMs: 500, overload: 'shed', objectiveRatio: 0.99, maxWaitMs: 500, weight: 1 }],
    ['{ ttft: 2s, ttft_per_1k_tokens: 250ms }', { ttftPer1kTokensMs: 250, maxWaitMs: 10_000 }],
    ['{ e2e: 20s }', { e2eMs: 20_000, overload: 'shed', maxWaitMs: 20_000 }],
    ['{ tpot: 50ms }', { tpotMs: 50, overload: 'shed', maxWaitMs: 30_000 }],
    ['{ ttft: 1s, overload: demote }', { overload: 'demote', maxWaitMs: 30_000 }],
    ['{ ttft: 1s, e2e: 9s, overload: wait }', { overload: 'wait', maxWaitMs: 9000 }],
    ['{ ttft: 1s, max_wait: 7s }', { maxWaitMs: 7000 }],
  ])('%s has its defaults', (text, expected) => {
    expect(classOf(text)).toMatchObject(expected)
  })

  it('stay absent where there are none', () => {
    expect(classOf('{}')).toEqual({
      name: 'c',
      ttftPer1kTokensMs: 0,
      weight: 1,
      overload: 'wait',
      maxWaitMs: 60_000,
    })
  })
})

describe('the digest', () => {
  it('does not change with comments, order, spelling or a rotated secret', () => {
    const one = loaded(`${MINIMAL}timeouts: { connect: 1s }\nadmin: { token: aaaaaaaaaaaaaaaa }\n`)
    const two = loaded(
      `# hello\nadmin: { token: bbbbbbbbbbbbbbbb }\ntimeouts: { connect: 1000ms }\n${MINIMAL}`,
    )
    expect(one.digest).toMatch(/^[0-9a-f]{12}$/)
    expect(two.digest).toBe(one.digest)
  })

  it('changes with the meaning', () => {
    expect(loaded(`${MINIMAL}mode: off\n`).digest).not.toBe(loaded(MINIMAL).digest)
  })
})

/** Each: the file, then `line:column path`, a word of the message, a word of the suggestion. */
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

const profiles = {
  ids: ['known/gpu'],
  floorTtftMs: (id: string) => (id === 'known/gpu' ? 40 : undefined),
  floorTpotMs: (id: string) => (id === 'known/gpu' ? 8.25 : undefined),
}

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

describe('a warning', () => {
  const warned = (text: string) => {
    const result = load(text, { profiles })
    if (!result.ok) throw new Error(JSON.stringify(result.problems))
    return result.warnings.map(({ path }) => path)
  }
  const tenants = (classes: string) =>
    `${MINIMAL.replace('none', 'keys')}tenants: [{ name: a, key_sha256: ["${HASH_B}"], classes: [${classes}] }]\n`

  it.each([
    [`${MINIMAL}timeouts: { drain: 10s }\n`, 'timeouts.drain'],
    [`${MINIMAL}timeouts: { heartbeat_after: 2m }\n`, 'timeouts.heartbeat_after'],
    [
      `${MINIMAL}limits: { request: 50s }\nclasses: { c: { ttft: 1s, max_wait: 55s } }\n`,
      'classes.c.max_wait',
    ],
    [`${MINIMAL}admin: { token: short }\n`, 'admin.token'],
    [`${MINIMAL}tenants: [{ name: a }]\n`, 'auth'],
    [`${MINIMAL.replace('none', '{ header: x-tenant, trusted: [0.0.0.0/0] }')}`, 'auth.trusted[0]'],
    [`${tenants('chat')}classes: { chat: { ttft: 1s }, spare: { ttft: 1s } }\n`, 'classes.spare'],
    [
      `${tenants('chat')}products: [{ name: p, match: { tenant: a }, class: voice }]\n`,
      'products[0].match.tenant',
    ],
    [
      `${MINIMAL}products: [{ name: p, match: { path: /x }, class: voice }, { name: q, match: { path: /x }, class: chat }]\n`,
      'products[1].match',
    ],
  ])('%j names %s', (text, path) => {
    expect(warned(text)).toContain(path)
  })

  it('is not given for the built-in classes, or without need', () => {
    expect(warned(MINIMAL)).toEqual([])
    expect(warned(tenants('chat'))).toEqual([])
  })
})

describe('the floor of a profile', () => {
  const fleet = (classes: string, second = '') => `auth: none
models:
  - { name: a, profile: known/gpu, replicas: [http://x:1] }
${second}classes: { ${classes} }
`
  const spare = '  - { name: b, replicas: [http://y:1] }\n'

  it('is an error where no model can keep the target', () => {
    const [problem] = problemsOf(load(fleet('c: { ttft: 39ms }'), { profiles }))
    expect(problem).toMatchObject({ severity: 'error', path: 'classes.c.ttft' })
    expect(problem?.message).toContain('40ms')
  })

  it('is a warning where another model can', () => {
    const result = load(fleet('c: { ttft: 39ms }', spare), { profiles })
    expect(result.ok && result.warnings.map(({ path }) => path)).toEqual(['classes.c.ttft'])
  })

  it('is an error in an override for that model', () => {
    const result = load(fleet('c: { ttft: 1s, models: { a: { ttft: 39ms } } }', spare), { profiles })
    expect(problemsOf(result)[0]).toMatchObject({ severity: 'error', path: 'classes.c.models.a.ttft' })
  })

  it('is a warning for the pace of a stream, since engines may speculate', () => {
    const [problem, ...more] = problemsOf(load(fleet('c: { tpot: 8ms }', spare), { profiles }))
    expect(more).toEqual([])
    expect(problem).toMatchObject({ severity: 'warning', path: 'classes.c.tpot', line: 5, column: 23 })
    expect(problem?.message).toContain('8.3ms a token')
    expect(problem?.suggestion).toBe('write for example models: { a: { tpot: 20ms } }')
    const [only] = problemsOf(load(fleet('c: { tpot: 8ms }'), { profiles }))
    expect(only?.suggestion).toBe('write for example tpot: 20ms')
    const [own] = problemsOf(
      load(fleet('c: { tpot: 1s, models: { a: { tpot: 8ms } } }', spare), { profiles }),
    )
    expect(own).toMatchObject({ severity: 'warning', path: 'classes.c.models.a.tpot' })
    expect(own?.suggestion).toBe('write for example tpot: 20ms')
  })

  it('says nothing of targets above it', () => {
    expect(problemsOf(load(fleet('c: { ttft: 40ms, tpot: 9ms }'), { profiles }))).toEqual([])
  })
})
