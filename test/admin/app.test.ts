/** The admin port, asked in memory. */
import { describe, expect, it } from 'vitest'
import type { LearntState } from '../../src/admin/learnt-json.ts'
import type { AdminPorts } from '../../src/admin/ports.ts'
import { offerOf, settlementOf } from '../slo/facts.ts'
import { agent, decisionOf, good, replicaOf, shed } from '../telemetry/rig.ts'
import { setUp } from './admin-rig.ts'

describe('probes', () => {
  it('are live whatever the upstream does', async () => {
    const { get, parts } = setUp({ draining: () => true })
    parts.replicas = []
    expect((await get('/livez')).status).toBe(200)
  })

  it('are ready with one model that can be served, and name the one that can’t', async () => {
    const { get, observer, parts } = setUp()
    observer.onLoaded({
      digest: 'x',
      mode: 'enforce',
      catalog: { ...observer.attainment.catalog, models: ['m', 'n'] },
    })
    parts.replicas = [
      replicaOf({ state: 'ramping' }),
      replicaOf({ name: 'r2', models: ['n'], state: 'down' }),
    ]
    expect(await (await get('/readyz')).text()).toBe('ok\n')
    const verbose = await get('/readyz?verbose')
    expect(verbose.status).toBe(200)
    expect(await verbose.text()).toContain('[!] model n: 0 of 1 replicas live')
  })

  it.each([
    ['draining', { draining: () => true }, /draining: shutting down/],
    ['without configuration', { configLoaded: () => false }, /config: no valid/],
    ['without a live replica', {}, /no model has a live replica/],
  ] as const)('are not ready %s', async (name, change, text) => {
    const { get, parts } = setUp(change)
    if (name === 'without a live replica') parts.replicas = [replicaOf({ state: 'suspect' })]
    const answer = await get('/readyz')
    expect(answer.status).toBe(503)
    expect(await answer.text()).toMatch(text)
  })
})

describe('/metrics', () => {
  it('is text, or OpenMetrics for whoever accepts it', async () => {
    const { get } = setUp()
    const text = await get('/metrics')
    expect(text.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(await text.text()).toContain('sluice_build_info{version="0.1.0",node_version="v20"} 1')
    const open = await get('/metrics', {
      headers: { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' },
    })
    expect(open.headers.get('content-type')).toContain('application/openmetrics-text')
    expect(await open.text()).toMatch(/# EOF\n$/)
  })
})

describe('/slo', () => {
  it('tells attainment over offered, admitted and first attempts, burn, budget, goodput and what was left out', async () => {
    const { json, observer, clock } = setUp()
    clock.nowMs = 0
    observer.onSettled(good())
    observer.onSettled(shed({ retryCount: 1 }))
    clock.nowMs = 10_000
    const answer = await json('/slo')
    expect(answer).toMatchObject({
      mode: 'enforce',
      quantile_error_ratio: 0.05,
      burn_pairs: [{ factor: 14.4 }, { factor: 6 }, { factor: 3 }, { factor: 1 }],
      total: { '5m': { offered: { all: { good: 1, bad: 1 } } } },
      series: [
        {
          model: 'm',
          class: 'chat',
          product: 'p',
          state: 'unknown',
          objective_ratio: 0.99,
          error_budget_remaining_ratio: -49,
          targets: { ttft_ms: 450, tpot_ms: 55 },
          windows: {
            '5m': {
              offered: {
                all: { good: 1, bad: 1, attainment_ratio: 0.5, burn_rate: 50 },
                e2e: { attainment_ratio: null },
              },
              admitted: { good: 1, bad: 0, attainment_ratio: 1 },
              first_attempts: { good: 1, bad: 0 },
              excluded: { client_error: 0 },
              goodput_requests_per_second: 0.1,
            },
          },
          ttft: { '5m': { samples: 1 }, '1h': { samples: 1 }, '6h': { samples: 1 }, period: { samples: 1 } },
          e2e: { '5m': { samples: 1 } },
        },
      ],
    })
    expect(Object.keys((answer.series as { windows: object }[])[0]?.windows ?? {})).toEqual([
      '5m',
      '30m',
      '1h',
      '2h',
      '6h',
      '1d',
      '3d',
      'period',
    ])
  })

  it('narrows by model, class and product', async () => {
    const { json, observer } = setUp()
    for (let index = 0; index < 3; index++) observer.onSettled(good({ product: index === 0 ? 'p' : 'none' }))
    expect((await json('/slo?product=none')).series).toHaveLength(1)
    expect((await json('/slo?model=x')).series).toEqual([])
    expect((await json('/slo')).series).toHaveLength(2)
  })
})

describe('/health/slo', () => {
  it('is 200 with the state in the body, and 503 only on request', async () => {
    const { get, json, observer } = setUp()
    expect(await json('/health/slo')).toEqual({ state: 'unknown', classes: {}, raised: [] })
    expect((await get('/health/slo?status=1')).status).toBe(200)
    for (let index = 0; index < 50; index++) observer.onSettled(shed())
    expect((await get('/health/slo')).status).toBe(200)
    expect(await json('/health/slo')).toMatchObject({
      state: 'critical',
      raised: [{ class: 'chat', raised_by: '1h/5m' }],
    })
    expect((await get('/health/slo?status=1')).status).toBe(503)
  })

  it('tells each class apart, and one alone when asked', async () => {
    const { get, json, observer } = setUp()
    for (let index = 0; index < 50; index++) {
      observer.onSettled(shed())
      observer.onSettled(settlementOf({ offer: offerOf(agent), ttftMs: 100 }))
    }
    expect(await json('/health/slo')).toMatchObject({
      state: 'critical',
      classes: { chat: 'critical', agent: 'ok' },
    })
    expect(await json('/health/slo?class=agent')).toEqual({
      state: 'ok',
      classes: { agent: 'ok' },
      raised: [],
    })
    expect((await get('/health/slo?class=agent&status=1')).status).toBe(200)
    expect((await get('/health/slo?class=chat&status=1')).status).toBe(503)
  })

  it('is 200 with status=1 while all is well', async () => {
    const { get, observer } = setUp()
    for (let index = 0; index < 50; index++) observer.onSettled(good())
    expect((await get('/health/slo?status=1')).status).toBe(200)
  })
})

describe('/replicas', () => {
  const learnt: LearntState = {
    groups: [],
    slots: {},
    fairness: {},
    tokensPerEvent: { m: 1.5 },
    prefixBlocks: 7,
    caches: {},
  }

  it('tells state, ledger, gauges with their age, trust and what was learnt; no URL', async () => {
    const { get, parts, clock } = setUp({ predictor: () => learnt })
    clock.nowMs = 3000
    parts.replicas = [
      replicaOf({
        limits: { maxNumSeqs: 128, maxNumBatchedTokens: 2048, kvCapacityTokens: 400_000 },
        gauges: { seenAtMs: 1000, runningRequests: 2, waitingRequests: 0, kvUsageRatio: 0.4 },
      }),
    ]
    const text = await (await get('/replicas')).text()
    expect(text).not.toContain('10.0.0.1')
    expect(JSON.parse(text)).toMatchObject({
      replicas: [
        {
          name: 'r1',
          state: 'live',
          limits: { max_num_seqs: 128, max_num_batched_tokens: 2048, kv_capacity_tokens: 400_000 },
          ledger: { in_flight_requests: 3, backlog_tokens: 700 },
          gauges: { age_ms: 2000 },
        },
      ],
      waiting: { requests: 2 },
      trust: [{ model: 'm', state: 'trusted' }],
      predictor: { groups: [], tokens_per_event: { m: 1.5 }, prefix_blocks: 7 },
    })
  })

  it('has no predictor to tell of where nothing predicts', async () => {
    expect((await setUp().json('/replicas')).predictor).toBeNull()
  })
})

describe('/decisions', () => {
  const withTraffic = (change: Partial<AdminPorts> = {}) => {
    const made = setUp(change)
    for (const requestId of ['a', 'b', 'c']) made.observer.onDecision(decisionOf(good({ requestId }).offer))
    made.observer.onSettled(good({ requestId: 'a' }))
    return made
  }

  it('shows the last ones and filters', async () => {
    const { json } = withTraffic()
    const ids = async (query: string) =>
      ((await json(`/decisions${query}`)).decisions as { request_id: string }[]).map(
        (entry) => entry.request_id,
      )
    expect(await ids('')).toEqual(['a', 'c', 'b'])
    expect(await ids('?request_id=b')).toEqual(['b'])
    expect(await ids('?verdict=good')).toEqual(['a'])
    expect(await ids('?class=voice')).toEqual([])
    expect(await ids('?limit=1')).toEqual(['a'])
  })

  it.each(['limit=0', 'limit=x', 'limit=1.5', 'limit=99999', 'verdict=maybe'])(
    'refuses %s and says what it takes',
    async (query) => {
      const answer = await withTraffic().get(`/decisions?${query}`)
      expect(answer.status).toBe(400)
      expect(await answer.text()).toMatch(/whole number|one of/)
    },
  )

  it('wants the token when one is set', async () => {
    const { get } = withTraffic({ token: () => 's3cret' })
    const status = async (authorization?: string) =>
      (await get('/decisions', authorization === undefined ? {} : { headers: { authorization } })).status
    expect(await status()).toBe(401)
    expect(await status('Bearer wrong')).toBe(401)
    expect(await status('Bearer ')).toBe(401)
    expect(await status('Basic s3cret')).toBe(401)
    expect(await status('Bearer s3cret')).toBe(200)
    expect(await status('bearer s3cret')).toBe(200)
    expect((await get('/decisions')).headers.get('www-authenticate')).toContain('Bearer')
    expect((await get('/metrics')).status).toBe(200)
  })
})

describe('/-/reload', () => {
  it('reloads by POST only', async () => {
    const { get, post, reloads } = setUp()
    const wrong = await get('/-/reload')
    expect([wrong.status, wrong.headers.get('allow'), reloads.length]).toEqual([405, 'POST', 0])
    const answer = await post('/-/reload')
    expect(await answer.json()).toEqual({ reloaded: true, digest: 'new', changes: [] })
    expect(reloads).toHaveLength(1)
  })

  it('wants the token, and no page of another site', async () => {
    const { post, reloads } = setUp({ token: () => 's3cret' })
    expect((await post('/-/reload')).status).toBe(401)
    const headers = { authorization: 'Bearer s3cret', host: 'admin:9090' }
    expect((await post('/-/reload', { headers: { ...headers, origin: 'http://evil.example' } })).status).toBe(
      403,
    )
    expect((await post('/-/reload', { headers: { ...headers, origin: 'null' } })).status).toBe(403)
    expect(reloads).toHaveLength(0)
    expect((await post('/-/reload', { headers: { ...headers, origin: 'http://admin:9090' } })).status).toBe(
      200,
    )
  })

  it('says what is wrong with a bad file', async () => {
    const { post } = setUp({ reload: async () => ({ ok: false, problems: ['sluice.yaml:3:1 unknown key'] }) })
    const answer = await post('/-/reload')
    expect(answer.status).toBe(422)
    expect(await answer.json()).toMatchObject({
      error: { code: 'invalid_config', problems: ['sluice.yaml:3:1 unknown key'] },
    })
  })
})

describe('everything else', () => {
  it('is a 404 that lists what there is', async () => {
    const answer = await setUp().get('/nope')
    expect(answer.status).toBe(404)
    expect(await answer.text()).toContain('/health/slo')
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  it('is a 500 with a log line when a part breaks', async () => {
    const broken = setUp({
      predictor: () => {
        throw new Error('broken part')
      },
    })
    expect((await broken.get('/replicas')).status).toBe(500)
    expect(broken.lines('fault')[0]).toMatchObject({ error: 'broken part' })
  })
})
