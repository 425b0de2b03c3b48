/** What a valid file means: every value, default and target, and the digest of it all. */
import { describe, expect, it } from 'vitest'
import { HASH_A, load, loaded, MINIMAL, problemsOf } from './files.ts'

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

  it('refuses a secret that no header can carry, without showing it', () => {
    const text = MINIMAL.replace(
      '[http://10.0.0.11:8000]',
      '[{ url: http://10.0.0.11:8000, key: "$' + '{KEY}" }]',
    )
    const [problem] = problemsOf(load(text, { env: { KEY: 'from-a-mounted-file\n' } }))
    expect(problem).toMatchObject({ severity: 'error', message: expect.stringContaining('malformed') })
    expect(JSON.stringify(problem)).toMatch(/no space or line break/)
    expect(JSON.stringify(problem)).not.toContain('mounted')
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
