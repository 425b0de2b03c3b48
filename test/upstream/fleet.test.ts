/** The fleet against scripted engines: the states that a real engine shows, and configurations that change. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ReplicaReport } from '../../src/core/replica.ts'
import { systemClock } from '../../src/upstream/clock.ts'
import { createFleet, type FleetConfig, type ManagedFleet } from '../../src/upstream/fleet.ts'
import type { ModelSource } from '../../src/upstream/members.ts'
import type { Replica, UpstreamFault } from '../../src/upstream/ports.ts'
import type { ReplicaTuning } from '../../src/upstream/replica.ts'
import { deferred, until, within } from '../support/deadline.ts'
import { type ScriptedEngine, scriptedEngine, vllmPage } from '../support/scripted-engine.ts'

/** Short spans, so that the real timers that sockets need don't slow the tests. */
const TUNING: ReplicaTuning = {
  scrapePeriodMs: 10,
  probePeriodMs: 20,
  probeDeadlineMs: 300,
  stoppedSilenceMs: 200,
  breaker: { faultRatio: 0.5, minExchanges: 3, windowMs: 10_000, resetMs: 50 },
  state: { silentMs: 100, silentBlindMs: 200, rampMs: 60_000, rampSuccesses: 2 },
}

let engines: ScriptedEngine[]
let fleet: ManagedFleet | undefined
let reports: ReplicaReport[]
let removed: string[]
let notices: string[]

beforeEach(() => {
  engines = []
  reports = []
  removed = []
  notices = []
})
afterEach(async () => {
  await fleet?.close()
  expect(fleet?.openSockets() ?? 0).toBe(0)
  for (const engine of engines) {
    await until(() => engine.sockets === 0, 'the fleet has closed its sockets')
    await engine.close()
  }
  fleet = undefined
})

/** An engine with a metrics page; null for one without. */
async function engineWith(page: string | null = vllmPage()): Promise<ScriptedEngine> {
  const engine = await scriptedEngine(page === null ? {} : { metrics: page })
  engines.push(engine)
  return engine
}
function model(name: string, urls: readonly string[], over: Partial<ModelSource> = {}): ModelSource {
  const replicas = urls.map((url) => ({ kind: 'url', url, engine: 'vllm' }) as const)
  return { name, servedName: 'tiny', engineArgs: {}, replicas, ...over }
}
function config(...models: readonly ModelSource[]): FleetConfig {
  return { models, timeouts: { connectMs: 500, drainMs: 60_000 } }
}
function start(first: FleetConfig, resolve?: (host: string) => Promise<readonly string[]>): ManagedFleet {
  fleet = createFleet({
    config: first,
    clock: systemClock,
    tuning: TUNING,
    onReport: (report) => reports.push(report),
    onRemoved: (id) => removed.push(id),
    onNotice: (_level, message) => notices.push(message),
    ...(resolve === undefined ? {} : { resolve }),
  })
  return fleet
}
function reportOf(id: string): ReplicaReport | undefined {
  return fleet?.reports().find((report) => report.replicaId === id)
}
async function untilState(id: string, state: ReplicaReport['state']): Promise<void> {
  await until(() => reportOf(id)?.state === state, `${id} is ${state} (it is ${reportOf(id)?.state})`)
}
async function untilScraped(id: string): Promise<void> {
  await until(() => reportOf(id)?.gauges !== undefined, `${id} has been scraped`)
}
function send(replica: Replica | undefined): {
  readonly fault: Promise<UpstreamFault | 'end'>
  readonly abort: () => void
} {
  if (replica === undefined) throw new Error('no such replica')
  const ended = deferred<UpstreamFault | 'end'>()
  const stream = replica.open(
    {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: {},
      body: [Buffer.from('{}')],
      firstByteTimeoutMs: 60_000,
      betweenBytesTimeoutMs: 60_000,
    },
    {
      onHeaders: () => undefined,
      onBytes: () => undefined,
      onEnd: () => ended.resolve('end'),
      onFault: ended.resolve,
    },
  )
  return { fault: within(ended.promise, 'the exchange to end'), abort: () => stream.abort() }
}

describe('the fleet', () => {
  it('has one replica per URL, whatever models share it, with stable names that are no address', async () => {
    const [a, b] = [await engineWith(), await engineWith()]
    start(config(model('big', [a.url, b.url]), model('small', [`${a.url}/`])))
    expect(fleet?.reports().map(({ replicaId, pools }) => [replicaId, pools])).toEqual([
      ['big-1', ['big', 'small']],
      ['big-2', ['big']],
    ])
    expect(fleet?.reports('small').map(({ replicaId }) => replicaId)).toEqual(['big-1'])
    expect(fleet?.replica('big-1')?.name).toBe('big-1')
    expect(fleet?.reports().every(({ state }) => state === 'live')).toBe(true)
  })

  it('reads gauges and limits, and lets what the operator wrote win', async () => {
    const engine = await engineWith(vllmPage({ running: 3, waiting: 2, kv: 0.5 }))
    start(config(model('m', [engine.url], { engineArgs: { maxNumSeqs: 16 } })))
    await until(() => reportOf('m-1')?.limits.maxModelLenTokens !== undefined, 'the model list has been read')
    expect(reportOf('m-1')).toMatchObject({
      gauges: { runningRequests: 3, waitingRequests: 2, kvUsageRatio: 0.5 },
      limits: { maxNumSeqs: 16, kvCapacityTokens: 20_480, maxModelLenTokens: 8192 },
    })
    expect(engine.requests.find(({ path }) => path === '/metrics')?.headers.accept).toBe(
      'text/plain;version=0.0.4',
    )
    expect(reports.at(-1)).toEqual(reportOf('m-1'))
  })

  it('takes a foreign, broken or absent page for no data, warns once, and goes on', async () => {
    for (const page of [null, '<html>hello</html>', 'other_metric 1\n', '']) {
      const engine = await engineWith(page)
      start(config(model('m', [engine.url])))
      const seen = (): number => engine.requests.filter(({ path }) => path === '/metrics').length
      await until(() => seen() >= 4, 'several looks')
      expect(reportOf('m-1')).toMatchObject({ state: 'live' })
      expect(reportOf('m-1')?.gauges).toBeUndefined()
      expect(notices.filter((notice) => notice.includes('foreign'))).toHaveLength(1)
      await fleet?.close()
      notices.length = 0
    }
  })

  it('keeps its replicas live while no metrics page answers at all', async () => {
    const pair = [await engineWith(), await engineWith()]
    for (const engine of pair) engine.on('/metrics', () => undefined)
    start(
      config(
        model(
          'm',
          pair.map(({ url }) => url),
        ),
      ),
    )
    await until(() => pair.every((engine) => engine.requests.length > 0), 'the looks hang')
    expect(fleet?.reports().map(({ state }) => state)).toEqual(['live', 'live'])
  })
})

describe('a replica', () => {
  it('goes down behind its breaker, and comes back ramping after a probe of our own', async () => {
    const engine = await engineWith()
    start(config(model('m', [engine.url])))
    await untilScraped('m-1')
    const replica = fleet?.replica('m-1')
    for (let index = 0; index < 3; index += 1)
      replica?.reportFault({ cause: 'status', message: 'status 500' })
    await untilState('m-1', 'down')
    const failing = await engine.nextRequest('the first probe')
    expect(failing.json).toMatchObject({ model: 'tiny', max_tokens: 1 })
    failing.respondJson(500, { error: { message: 'EngineCore encountered an issue', code: 500 } })
    const passing = await engine.nextRequest('the second probe')
    passing.respondJson(200, { choices: [{ text: 'x' }] })
    await untilState('m-1', 'ramping')
    replica?.reportSuccess()
    replica?.reportSuccess()
    await untilState('m-1', 'live')
  })

  it('is not blamed for clients that leave', async () => {
    const engine = await engineWith()
    start(config(model('m', [engine.url])))
    for (let index = 0; index < 9; index += 1) {
      fleet
        ?.replica('m-1')
        ?.reportFault({ phase: 'body', cause: 'aborted', sent: true, message: 'closed by us' })
    }
    await untilScraped('m-1')
    expect(reportOf('m-1')?.state).toBe('live')
  })

  it('drains when the engine says that it shuts down, though health and metrics are fine', async () => {
    const engine = await engineWith()
    start(config(model('m', [engine.url])))
    await untilScraped('m-1')
    fleet
      ?.replica('m-1')
      ?.reportFault({ cause: 'status', message: 'cannot schedule new futures after shutdown' })
    expect(reportOf('m-1')?.state).toBe('draining')
    const probe = await engine.nextRequest('a probe while it drains')
    probe.respondJson(500, { error: { message: 'cannot schedule new futures after shutdown', code: 500 } })
    const after = await engine.nextRequest('a probe of its successor')
    expect(reportOf('m-1')?.state).toBe('draining')
    after.respondJson(200, {})
    await untilState('m-1', 'live')
  })

  it('that stops listening is down, and its silent streams are ended', async () => {
    const engine = await engineWith()
    start(config(model('m', [engine.url])))
    await untilScraped('m-1')
    const { fault } = send(fleet?.replica('m-1'))
    const exchange = await engine.nextRequest()
    exchange.head().token()
    engine.refuse()
    engine.closeIdle()
    await untilState('m-1', 'down')
    expect(await fault).toMatchObject({
      cause: 'reset',
      phase: 'body',
      message: expect.stringContaining('port is refused'),
    })
    await exchange.waitClosed()
    await engine.listen()
    await untilState('m-1', 'ramping')
    expect(reportOf('m-1')?.generation).toBe(1)
  })

  it('asleep takes nothing, and is live again when awake', async () => {
    const engine = await engineWith(vllmPage({ asleep: true }))
    engine.on('/v1/completions', () => undefined)
    start(config(model('m', [engine.url])))
    await untilState('m-1', 'suspect')
    engine.page(vllmPage())
    await untilState('m-1', 'live')
  })

  it('that hangs with work under way is suspect until a probe passes', async () => {
    const engine = await engineWith(vllmPage({ running: 1, steps: 7 }))
    start(config(model('m', [engine.url])))
    await untilScraped('m-1')
    const { fault, abort } = send(fleet?.replica('m-1'))
    const exchange = await engine.nextRequest()
    await untilState('m-1', 'suspect')
    const hanging = await engine.nextRequest('a probe of the hanging engine')
    abort()
    await fault
    await exchange.waitClosed()
    await hanging.waitClosed('the probe to be given up')
    expect(reportOf('m-1')?.state).toBe('suspect')
    const probe = await engine.nextRequest('another probe')
    probe.respondJson(200, {})
    await untilState('m-1', 'live')
  })

  it('that restarts behind the same address shows a new generation and ramps', async () => {
    const engine = await engineWith(vllmPage({ startSec: 100, steps: 50 }))
    start(config(model('m', [engine.url])))
    await untilScraped('m-1')
    engine.page(vllmPage({ startSec: 200, steps: 1 }))
    await until(() => reportOf('m-1')?.generation === 1, 'the restart is seen')
    expect(reportOf('m-1')?.state).toBe('ramping')
  })
})

describe('a changed configuration', () => {
  it('adds, keeps and drains; what is removed goes with all its traces once its streams are over', async () => {
    const [a, b, c] = [await engineWith(), await engineWith(), await engineWith()]
    start(config(model('m', [a.url, b.url])))
    const kept = fleet?.replica('m-2')
    const { fault } = send(fleet?.replica('m-1'))
    const exchange = await a.nextRequest()
    fleet?.update(config(model('m', [b.url, c.url])))
    expect(reportOf('m-1')?.state).toBe('draining')
    expect(fleet?.replica('m-2')).toBe(kept)
    expect(reportOf('m-3')?.state).toBe('ramping')
    expect(removed).toEqual([])
    exchange.head().token().done()
    expect(await fault).toBe('end')
    await until(() => removed.length > 0, 'the drained replica is removed')
    expect(removed).toEqual(['m-1'])
    expect(fleet?.replica('m-1')).toBeUndefined()
    await until(() => a.sockets === 0, 'its sockets are closed')
    const looks = a.requests.length
    await until(() => b.requests.length > 20, 'time passes')
    expect(a.requests).toHaveLength(looks)
  })

  it('takes a replica back that was still draining', async () => {
    const [a, b] = [await engineWith(), await engineWith()]
    start(config(model('m', [a.url, b.url])))
    const { fault } = send(fleet?.replica('m-1'))
    const exchange = await a.nextRequest()
    fleet?.update(config(model('m', [b.url])))
    fleet?.update(config(model('m', [a.url, b.url])))
    expect(fleet?.reports().map(({ state }) => state)).toEqual(['live', 'live'])
    exchange.respondJson(200, {})
    expect(await fault).toBe('end')
    expect(removed).toEqual([])
  })

  it('follows the addresses behind a DNS name', async () => {
    const engine = await engineWith()
    let addresses = ['127.0.0.1']
    const place = { kind: 'dns', host: 'vllm.svc', port: engine.port, engine: 'vllm' } as const
    start(config({ ...model('m', []), replicas: [place] }), async () => addresses)
    expect(fleet?.reports()).toEqual([])
    await untilScraped('m-1')
    expect(reportOf('m-1')?.state).toBe('live')
    addresses = []
    expect(fleet?.reports()).toHaveLength(1)
  })
})
