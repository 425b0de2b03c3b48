/** What the pages of an engine may be like, renamed, partly absent, foreign, slow or failing, and what never comes of it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ReplicaState } from '../../src/core/replica.ts'
import { ENGINE_KINDS, engineAdapter } from '../../src/engines/registry.ts'
import { fixture } from '../engines/captures.ts'
import { until } from '../support/deadline.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { type ScriptedEngine, vllmPage } from '../support/scripted-engine.ts'
import { config, FleetRig, model, modelOf, send } from './fleet-rig.ts'

let rig: FleetRig
beforeEach(() => {
  rig = new FleetRig()
})
afterEach(() => rig.close())

const looks = (engine: ScriptedEngine): number =>
  engine.requests.filter(({ path }) => path === '/metrics').length
const FAST = { tuning: { scrapePeriodMs: 1 } }

describe('the KV gauge', () => {
  it.each(['old', 'new', 'both'] as const)('is found under its %s name', async (kvName) => {
    const engine = await rig.engineWith(vllmPage({ kv: 0.25, kvName }))
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    expect(rig.reportOf('m-1')?.gauges?.kvUsageRatio).toBe(0.25)
  })

  it('is unknown when it is not on the page, and nobody is told more than once', async () => {
    const engine = await rig.engineWith(vllmPage({ running: 2, kv: null }))
    rig.start(config(model('m', [engine.url])), FAST)
    await rig.untilScraped('m-1')
    const told = rig.notices.length
    await until(() => looks(engine) > 20, 'many looks')
    expect(rig.reportOf('m-1')?.gauges).toMatchObject({ runningRequests: 2 })
    expect(rig.reportOf('m-1')?.gauges).not.toHaveProperty('kvUsageRatio')
    expect(rig.notices).toHaveLength(told)
  })

  it('is that of the fullest rank, while requests are summed over ranks', async () => {
    const engines = [{ running: 7, kv: 0.2 }, { running: 0, waiting: 3, kv: 0.6 }, { running: 0 }]
    const engine = await rig.engineWith(vllmPage({ engines }))
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    expect(rig.reportOf('m-1')?.gauges).toMatchObject({
      runningRequests: 7,
      waitingRequests: 3,
      kvUsageRatio: 0.6,
    })
  })
})

describe('a page that tells nothing', () => {
  it.each([
    ['of other names', vllmPage({ running: 3, prefix: 'ray_vllm_' })],
    ['that is empty', ''],
    ['of HTML', '<html><body>vllm:num_requests_running</body></html>'],
    ['of JSON', '{"vllm:num_requests_running": 3}'],
    ['of another engine', fixture('tgi-3.3.7/metrics-busy.txt').toString('latin1')],
    ['without statistics', fixture('vllm-0.32.0/tokencap-metrics-disable-log-stats.txt').toString('latin1')],
  ])('%s is no data and never idleness, and is told once', async (_name, page) => {
    const engine = await rig.engineWith(page)
    rig.start(config(model('m', [engine.url])), FAST)
    await until(() => looks(engine) > 8, 'several looks')
    expect(rig.reportOf('m-1')).toMatchObject({ state: 'live' })
    expect(rig.reportOf('m-1')?.gauges).toBeUndefined()
    expect(rig.notices.filter((notice) => notice.includes('no known gauge'))).toHaveLength(1)
  })

  it('that was cut off changes nothing of what was read before', async () => {
    const engine = await rig.engineWith(vllmPage({ running: 5 }))
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    const half = vllmPage({ running: 41 }).slice(0, 120)
    engine.on('/metrics', (exchange) =>
      exchange.raw(`HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n${half}`).fin(),
    )
    await until(() => rig.fleet.status()[0]?.scrape.outcome === 'unreadable', 'a look at the cut page')
    expect(rig.reportOf('m-1')?.gauges?.runningRequests).toBe(5)
  })
})

describe('a page that fails for long', () => {
  it.each([
    ['answers 500', (engine: ScriptedEngine) => engine.page('', { status: 500 })],
    ['resets', (engine: ScriptedEngine) => engine.on('/metrics', (exchange) => exchange.reset())],
  ])('and %s is told once, shows its age and leaves traffic alone', async (_name, fail) => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])), FAST)
    await rig.untilScraped('m-1')
    fail(engine)
    const [before, age] = [looks(engine), () => rig.fleet.status()[0]?.scrape.ageMs ?? 0]
    await until(() => looks(engine) > before + 12, 'many looks')
    const firstMs = age()
    await until(() => looks(engine) > before + 16, 'more looks')
    expect(age()).toBeGreaterThan(firstMs)
    expect(rig.notices.filter((notice) => notice.includes('unreadable'))).toHaveLength(1)
    const { fault } = send(rig.fleet.replica('m-1'))
    ;(await engine.nextRequest()).respondJson(200, {})
    expect(await fault).toBe('end')
    engine.page(vllmPage())
    await until(() => rig.notices.at(-1)?.includes('metrics ok') === true, 'the recovery is told')
    expect(rig.notices.filter((notice) => notice.includes('metrics ok'))).toHaveLength(2)
  })

  it('is looked at less and less often', async () => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])), { tuning: { scrapePeriodMs: 4 } })
    await rig.untilScraped('m-1')
    const times: number[] = []
    engine.on('/metrics', (exchange) => {
      times.push(performance.now())
      exchange.respond(500, '')
    })
    await until(() => times.length > 6, 'several looks')
    // Sixteen periods apart in the end; a timer is never early by more than a rounding.
    expect((times[6] ?? 0) - (times[5] ?? 0)).toBeGreaterThan(60)
  })
})

describe('an engine that is too busy for its own pages', () => {
  /** Every page that Sluice may look at answers so from now on. */
  function allPages(
    engine: ScriptedEngine,
    kind: (typeof ENGINE_KINDS)[number],
    answer: 'full' | 'hang',
  ): void {
    const { loadPaths, limitsPaths, healthPath } = engineAdapter(kind)
    for (const path of new Set([...loadPaths, ...limitsPaths, healthPath]))
      engine.on(path, (exchange) => {
        if (answer === 'full') exchange.respond(503, '{"error":"unhealthy","error_type":"healthcheck"}')
      })
  }

  it.each(ENGINE_KINDS.flatMap((kind) => [[kind, 'full'] as const, [kind, 'hang'] as const]))(
    'stays live (%s, pages %s) while it answers requests',
    async (kind, answer) => {
      const engine = await rig.engineWith(null)
      allPages(engine, kind, answer)
      const clock = new ManualClock()
      rig.start(config(modelOf(kind, 'm', [engine.url])), { clock })
      for (let turn = 0; turn < 4; turn += 1) {
        const looked = engine.requests.length
        // The time for the next look, and then for its deadline.
        clock.advance(200)
        await until(() => engine.requests.length > looked, 'another look')
        clock.advance(2600)
        await until(() => rig.fleet.status()[0]?.scrape.outcome === 'unreadable', 'a look in vain')
        expect(rig.reportOf('m-1')?.state).toBe('live')
        const { fault } = send(rig.fleet.replica('m-1'))
        ;(await engine.nextRequest()).respondJson(200, {})
        expect(await fault).toBe('end')
      }
      expect(new Set(rig.reports.map(({ state }) => state))).toEqual(new Set<ReplicaState>(['live']))
    },
  )

  // llama.cpp is not among them: it lets requests wait without end, and its 503 says that it is loading.
  it.each([
    ['tgi', '/generate', 429],
    ['sglang', '/v1/completions', 503],
    ['vllm', '/v1/completions', 503],
    ['openai', '/v1/chat/completions', 429],
  ] as const)('passes the probe of a breaker by saying that it is full (%s)', async (kind, path, status) => {
    const engine = await rig.engineWith(null)
    allPages(engine, kind, 'full')
    engine.on(path, (exchange) => exchange.respondJson(status, { error: 'Model is overloaded' }))
    rig.start(config(modelOf(kind, 'm', [engine.url])))
    for (let index = 0; index < 3; index += 1)
      rig.fleet.replica('m-1')?.reportFault({ cause: 'status', message: 'boom' })
    await rig.untilState('m-1', 'down')
    await rig.untilState('m-1', 'ramping')
  })
})
