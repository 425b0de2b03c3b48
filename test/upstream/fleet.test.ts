/** The fleet against scripted engines: the states that a real engine shows, and configurations that change. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { vllmPage } from '../support/scripted-engine.ts'
import { config, FleetRig, model, send } from './fleet-rig.ts'

let rig: FleetRig
beforeEach(() => {
  rig = new FleetRig()
})
afterEach(() => rig.close())

describe('the fleet', () => {
  it('has one replica per URL, whatever models share it, with stable names that are no address', async () => {
    const [a, b] = [await rig.engineWith(), await rig.engineWith()]
    rig.start(config(model('big', [a.url, b.url]), model('small', [`${a.url}/`])))
    expect(rig.fleet.reports().map(({ replicaId, pools }) => [replicaId, pools])).toEqual([
      ['big-1', ['big', 'small']],
      ['big-2', ['big']],
    ])
    expect(rig.fleet.reports('small').map(({ replicaId }) => replicaId)).toEqual(['big-1'])
    expect(rig.fleet.replica('big-1')?.name).toBe('big-1')
    expect(rig.fleet.reports().every(({ state }) => state === 'live')).toBe(true)
  })

  it('reads gauges and limits, and lets what the operator wrote win', async () => {
    const engine = await rig.engineWith(vllmPage({ running: 3, waiting: 2, kv: 0.5 }))
    rig.start(config(model('m', [engine.url], { engineArgs: { maxNumSeqs: 16 } })))
    await until(
      () => rig.reportOf('m-1')?.limits.maxModelLenTokens !== undefined,
      'the model list has been read',
    )
    expect(rig.reportOf('m-1')).toMatchObject({
      gauges: { runningRequests: 3, waitingRequests: 2, kvUsageRatio: 0.5 },
      limits: { maxNumSeqs: 16, kvCapacityTokens: 20_480, maxModelLenTokens: 8192 },
    })
    expect(engine.requests.find(({ path }) => path === '/metrics')?.headers.accept).toBe(
      'text/plain;version=0.0.4',
    )
    expect(rig.reports.at(-1)).toEqual(rig.reportOf('m-1'))
  })

  it('takes a foreign, broken or absent page for no data, warns once, and goes on', async () => {
    for (const page of [null, '<html>hello</html>', 'other_metric 1\n', '']) {
      const engine = await rig.engineWith(page)
      rig.start(config(model('m', [engine.url])))
      const seen = (): number => engine.requests.filter(({ path }) => path === '/metrics').length
      await until(() => seen() >= 4, 'several looks')
      expect(rig.reportOf('m-1')).toMatchObject({ state: 'live' })
      expect(rig.reportOf('m-1')?.gauges).toBeUndefined()
      expect(rig.notices.filter((notice) => notice.includes('foreign'))).toHaveLength(1)
      await rig.close()
      rig = new FleetRig()
    }
  })

  it('keeps its replicas live while no metrics page answers at all', async () => {
    const pair = [await rig.engineWith(), await rig.engineWith()]
    for (const engine of pair) engine.on('/metrics', () => undefined)
    rig.start(
      config(
        model(
          'm',
          pair.map(({ url }) => url),
        ),
      ),
    )
    await until(() => pair.every((engine) => engine.requests.length > 0), 'the looks hang')
    expect(rig.fleet.reports().map(({ state }) => state)).toEqual(['live', 'live'])
  })
})

describe('a replica', () => {
  it('goes down behind its breaker, and comes back ramping after a probe of our own', async () => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    const replica = rig.fleet.replica('m-1')
    for (let index = 0; index < 3; index += 1)
      replica?.reportFault({ cause: 'status', message: 'status 500' })
    await rig.untilState('m-1', 'down')
    const failing = await engine.nextRequest('the first probe')
    expect(failing.json).toMatchObject({ model: 'tiny', max_tokens: 1 })
    failing.respondJson(500, { error: { message: 'EngineCore encountered an issue', code: 500 } })
    const passing = await engine.nextRequest('the second probe')
    passing.respondJson(200, { choices: [{ text: 'x' }] })
    await rig.untilState('m-1', 'ramping')
    replica?.reportContent()
    replica?.reportContent()
    await rig.untilState('m-1', 'live')
  })

  it('is not blamed for a request that has failed elsewhere too, but for each connection that failed', async () => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    const replica = rig.fleet.replica('m-1')
    const suspect = true
    for (let index = 0; index < 10; index += 1) {
      replica?.reportFault({ cause: 'status', message: 'status 500', suspect })
      replica?.reportFault({ phase: 'headers', cause: 'reset', sent: true, message: 'reset', suspect })
    }
    expect(rig.reportOf('m-1')?.state).toBe('live')
    for (let index = 0; index < 3; index += 1)
      replica?.reportFault({
        phase: 'connect',
        cause: 'timeout',
        sent: false,
        message: 'no answer',
        suspect,
      })
    await rig.untilState('m-1', 'down')
  })

  it('hears that an engine is going down, whoever said so before', async () => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    const message = 'cannot schedule new futures after shutdown'
    rig.fleet.replica('m-1')?.reportFault({ cause: 'status', message, suspect: true })
    expect(rig.reportOf('m-1')?.state).toBe('draining')
  })

  it('comes back however its probes went: hanging, refused, cut, or cancelled by a new configuration', async () => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    // Failures that come all at once open the breaker once.
    for (let index = 0; index < 6; index += 1)
      rig.fleet.replica('m-1')?.reportFault({ cause: 'status', message: 'status 500' })
    await rig.untilState('m-1', 'down')
    expect(rig.fleet.status()[0]?.reason).toMatch(/^breaker /)
    const hanging = await engine.nextRequest('a probe that hangs')
    await hanging.waitClosed('the hanging probe to be given up')
    ;(await engine.nextRequest('a probe that is cut')).reset()
    ;(await engine.nextRequest('a probe that is answered with nonsense')).raw('nonsense\r\n\r\n').fin()
    const cancelled = await engine.nextRequest('a probe under way')
    rig.fleet.update(config(model('m', [engine.url]), model('n', [engine.url])))
    expect(rig.reportOf('m-1')?.state).toBe('down')
    cancelled.respondJson(200, { choices: [{ text: 'x' }] })
    await rig.untilState('m-1', 'ramping')
  })

  it('is not blamed for clients that leave', async () => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])))
    for (let index = 0; index < 9; index += 1) {
      rig.fleet
        .replica('m-1')
        ?.reportFault({ phase: 'body', cause: 'aborted', sent: true, message: 'closed by us' })
    }
    await rig.untilScraped('m-1')
    expect(rig.reportOf('m-1')?.state).toBe('live')
  })

  it('drains when the engine says that it shuts down, though health and metrics are fine', async () => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    rig.fleet
      .replica('m-1')
      ?.reportFault({ cause: 'status', message: 'cannot schedule new futures after shutdown' })
    expect(rig.reportOf('m-1')?.state).toBe('draining')
    const probe = await engine.nextRequest('a probe while it drains')
    probe.respondJson(500, { error: { message: 'cannot schedule new futures after shutdown', code: 500 } })
    const after = await engine.nextRequest('a probe of its successor')
    expect(rig.reportOf('m-1')?.state).toBe('draining')
    after.respondJson(200, {})
    await rig.untilState('m-1', 'live')
  })

  it('that stops listening is down, and its silent streams are ended', async () => {
    const engine = await rig.engineWith()
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    const { fault } = send(rig.fleet.replica('m-1'))
    const exchange = await engine.nextRequest()
    exchange.head().token()
    engine.refuse()
    engine.closeIdle()
    await rig.untilState('m-1', 'down')
    expect(await fault).toMatchObject({
      cause: 'silent',
      phase: 'body',
      message: expect.stringContaining('port is refused'),
    })
    await exchange.waitClosed()
    await engine.listen()
    await rig.untilState('m-1', 'ramping')
    expect(rig.reportOf('m-1')?.generation).toBe(1)
  })

  it('asleep takes nothing, and is live again when awake', async () => {
    const engine = await rig.engineWith(vllmPage({ asleep: true }))
    engine.on('/v1/completions', () => undefined)
    rig.start(config(model('m', [engine.url])))
    await rig.untilState('m-1', 'suspect')
    engine.page(vllmPage())
    await rig.untilState('m-1', 'live')
  })

  it('that hangs with work under way is suspect until a probe passes', async () => {
    const engine = await rig.engineWith(vllmPage({ running: 1, steps: 7 }))
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    const { fault, abort } = send(rig.fleet.replica('m-1'))
    const exchange = await engine.nextRequest()
    await rig.untilState('m-1', 'suspect')
    const hanging = await engine.nextRequest('a probe of the hanging engine')
    abort()
    await fault
    await exchange.waitClosed()
    await hanging.waitClosed('the probe to be given up')
    expect(rig.reportOf('m-1')?.state).toBe('suspect')
    const probe = await engine.nextRequest('another probe')
    probe.respondJson(200, {})
    await rig.untilState('m-1', 'live')
  })

  it('that shows no sign of life loses what it was sent, and one that shows any keeps it', async () => {
    const [mute, working] = [await rig.engineWith(vllmPage({ running: 1, steps: 7 })), await rig.engineWith()]
    let steps = 0
    working.page(() => vllmPage({ running: 1, steps: ++steps }))
    const limits = { connectMs: 500, drainMs: 60_000, firstByteMs: 300, betweenBytesMs: 200 }
    rig.start({ ...config(model('m', [mute.url, working.url])), timeouts: limits })
    await rig.untilScraped('m-1')
    await rig.untilScraped('m-2')
    const [lost, kept] = [send(rig.fleet.replica('m-1')), send(rig.fleet.replica('m-2'))]
    const [exchange, other] = [await mute.nextRequest(), await working.nextRequest()]
    expect(await lost.fault).toMatchObject({
      cause: 'silent',
      message: expect.stringContaining('sign of life'),
    })
    await exchange.waitClosed()
    await until(() => steps > 60, 'many more looks')
    expect(other.closed).toBe(false)
    other.respondJson(200, {})
    expect(await kept.fault).toBe('end')
  })

  it('that restarts behind the same address shows a new generation and ramps', async () => {
    const engine = await rig.engineWith(vllmPage({ startSec: 100, steps: 50 }))
    rig.start(config(model('m', [engine.url])))
    await rig.untilScraped('m-1')
    engine.page(vllmPage({ startSec: 200, steps: 1 }))
    await until(() => rig.reportOf('m-1')?.generation === 1, 'the restart is seen')
    expect(rig.reportOf('m-1')?.state).toBe('ramping')
  })
})

describe('a changed configuration', () => {
  it('adds, keeps and drains; what is removed goes with all its traces once its streams are over', async () => {
    const [a, b, c] = [await rig.engineWith(), await rig.engineWith(), await rig.engineWith()]
    rig.start(config(model('m', [a.url, b.url])))
    const kept = rig.fleet.replica('m-2')
    const { fault } = send(rig.fleet.replica('m-1'))
    const exchange = await a.nextRequest()
    rig.fleet.update(config(model('m', [b.url, c.url])))
    expect(rig.reportOf('m-1')?.state).toBe('draining')
    expect(rig.fleet.replica('m-2')).toBe(kept)
    expect(rig.reportOf('m-3')?.state).toBe('ramping')
    expect(rig.removed).toEqual([])
    exchange.head().token().done()
    expect(await fault).toBe('end')
    await until(() => rig.removed.length > 0, 'the drained replica is removed')
    expect(rig.removed).toEqual(['m-1'])
    expect(rig.fleet.replica('m-1')).toBeUndefined()
    await until(() => a.sockets === 0, 'its sockets are closed')
    const looks = a.requests.length
    await until(() => b.requests.length > 20, 'time passes')
    expect(a.requests).toHaveLength(looks)
  })

  it('takes a replica back that was still draining', async () => {
    const [a, b] = [await rig.engineWith(), await rig.engineWith()]
    rig.start(config(model('m', [a.url, b.url])))
    const { fault } = send(rig.fleet.replica('m-1'))
    const exchange = await a.nextRequest()
    rig.fleet.update(config(model('m', [b.url])))
    rig.fleet.update(config(model('m', [a.url, b.url])))
    expect(rig.fleet.reports().map(({ state }) => state)).toEqual(['live', 'live'])
    exchange.respondJson(200, {})
    expect(await fault).toBe('end')
    expect(rig.removed).toEqual([])
  })

  it('follows the addresses behind a DNS name', async () => {
    const engine = await rig.engineWith()
    let addresses = ['127.0.0.1']
    const place = { kind: 'dns', host: 'vllm.svc', port: engine.port, engine: 'vllm' } as const
    rig.start(config({ ...model('m', []), replicas: [place] }), { resolve: async () => addresses })
    expect(rig.fleet.reports()).toEqual([])
    await rig.untilScraped('m-1')
    expect(rig.reportOf('m-1')?.state).toBe('live')
    addresses = []
    expect(rig.fleet.reports()).toHaveLength(1)
  })
})
