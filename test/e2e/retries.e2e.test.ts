/** A second attempt is made only where the first can't go on generating, and nobody is told to come back in vain. */
import OpenAI from 'openai'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { type Rig, type RigOptions, startRig } from '../support/edge-rig.ts'
import { play } from '../support/engine-script.ts'
import type { ScriptedExchange } from '../support/scripted-exchange.ts'

let rig: Rig
const start = async (options: RigOptions = {}) => {
  rig = await startRig(options)
  return rig
}
afterEach(() => rig.close())

const second = () => {
  const engine = rig.engines[1]
  if (engine === undefined) throw new Error('no second engine')
  return engine
}

describe('after a byte has gone to the client', () => {
  it.each([
    ['a stream that is reset', true, (e: ScriptedExchange) => e.reset()],
    ['a stream that just ends', true, (e: ScriptedExchange) => e.fin()],
    [
      'a stream that tells of an error',
      true,
      (e: ScriptedExchange) => e.error(503, 'busy', 'Service Unavailable').done(),
    ],
    ['a large answer that is reset', false, (e: ScriptedExchange) => e.reset()],
  ])('%s is not tried again, though another engine is free', async (_name, stream, fail) => {
    await start({ engines: 2 })
    const client = rig.chat({ stream })
    const exchange = await rig.engine.nextRequest()
    if (stream) exchange.head().tokens(3)
    else exchange.head(200, { 'content-type': 'application/json' }).write('x'.repeat(3 * 1024 * 1024))
    await until(() => client.receivedBytes > 500, 'the first bytes')
    fail(exchange)
    await until(() => client.complete || client.ended, 'the end')
    await rig.settled()
    expect(rig.settlement).toMatchObject({ attempts: 1, verdict: { kind: 'bad' } })
    expect(second().requests).toHaveLength(0)
    expect(client.text).not.toContain('"content":" fine"')
  })
})

describe('a second attempt', () => {
  it.each([
    ['an error event', (e: ScriptedExchange) => e.head().error(500, 'boom')],
    [
      'a full engine inside a 200',
      (e: ScriptedExchange) => e.head().error(503, 'busy', 'Service Unavailable'),
    ],
    ['an aborted generation', (e: ScriptedExchange) => e.head().role().finish('abort')],
  ])('begins only when the first is closed: %s on a stream that stays open', async (_name, fail) => {
    await start({ engines: 2 })
    const client = rig.chat()
    const first = await rig.engine.nextRequest()
    fail(first)
    await first.waitClosed()
    ;(await second().nextRequest()).head().token(' fine').done()
    await client.waitText(' fine')
    await rig.settled()
    expect(rig.settlement).toMatchObject({ outcome: 'completed', attempts: 2 })
  })

  it('follows an answer that stops at once and is cut before its end marker', async () => {
    await start({ engines: 2 })
    const client = rig.chat()
    ;(await rig.engine.nextRequest()).head().role().finish('stop').fin()
    ;(await second().nextRequest()).head().token(' fine').done()
    await client.waitText(' fine')
    await rig.settled()
    expect(client.text).not.toContain('"finish_reason":"stop"')
    expect(rig.settlement).toMatchObject({ outcome: 'completed', attempts: 2 })
  })

  it('is not made for an answer that stops at once and is whole without an end marker', async () => {
    await start({ engines: 2 })
    const client = rig.chat()
    ;(await rig.engine.nextRequest()).head().role().finish('stop').end()
    await client.waitComplete()
    await rig.settled()
    expect(client.text).toContain('"finish_reason":"stop"')
    expect(rig.settlement).toMatchObject({ outcome: 'completed', attempts: 1 })
    expect(second().requests).toHaveLength(0)
  })

  it('is not made for an engine that took the request and is merely slow', async () => {
    await start({ engines: 2, settings: { timeouts: { firstByteMs: 100 }, limits: { requestMs: 300 } } })
    for (const stream of [true, false]) {
      const count = rig.settlements.length
      const client = rig.chat({ stream })
      const exchange = await rig.engine.nextRequest()
      await client.waitStatus(504)
      await client.waitComplete()
      await exchange.waitClosed()
      const limit = stream ? 'timeouts.first_byte' : 'limits.request'
      expect(client.json).toMatchObject({
        error: { code: 'upstream_timeout', message: expect.stringContaining(limit) },
      })
      expect(client.headers['x-should-retry']).toBe('false')
      await rig.settled(count + 1)
    }
    expect(second().requests).toHaveLength(0)
  })

  it('follows every failure of one engine, however small the share', async () => {
    await start({ engines: 2, gate: { rerouteBudgetRatio: 0.01 } })
    rig.engine.on('/v1/chat/completions', (exchange) => exchange.refuse(500))
    second().on('/v1/chat/completions', play({ frames: 1 }))
    for (let sent = 0; sent < 20; sent += 1) expect((await rig.chat().waitComplete()).status).toBe(200)
    expect(rig.engine.requests.length).toBeGreaterThan(5)
  })

  it('stays within its share when every engine is full', async () => {
    await start({ engines: 2, gate: { rerouteBudgetRatio: 0.1 } })
    for (const engine of rig.engines) engine.on('/v1/chat/completions', (exchange) => exchange.refuse(503))
    const asked = 60
    for (let sent = 0; sent < asked; sent += 1) await rig.chat().waitStatus(502)
    const attempts = rig.engines.reduce((sum, engine) => sum + engine.requests.length, 0)
    expect(attempts).toBeGreaterThan(asked)
    expect(attempts).toBeLessThan(asked * 1.4)
  })
})

describe('a request that fails before any content on one engine after the other', () => {
  it.each<[string, string, (exchange: ScriptedExchange) => void]>([
    ['an error', 'status', (e) => e.refuse(500)],
    ['an error event', 'status', (e) => e.head().error(500, 'boom')],
    ['a reset', 'reset', (e) => e.reset()],
    ['a stream without content', 'status', (e) => e.head().role().end()],
  ])('is held against the first, since it may be its own doing: %s', async (_name, cause, fail) => {
    await start({ engines: 2 })
    for (const engine of rig.engines) engine.on('/v1/chat/completions', fail)
    await rig.chat().waitStatus(502)
    await rig.settled()
    expect(rig.told).toEqual([cause, `${cause} suspect`])
  })

  it('is held against the first alone when they fail in different ways', async () => {
    await start({ engines: 2 })
    rig.engine.on('/v1/chat/completions', (exchange) => exchange.refuse(500))
    second().on('/v1/chat/completions', (exchange) => exchange.reset())
    await rig.chat().waitStatus(502)
    await rig.settled()
    expect(rig.told).toEqual(['status', 'reset suspect'])
  })

  it('is held against the second when the first was merely going down', async () => {
    await start({ engines: 2 })
    const message = 'cannot schedule new futures after shutdown'
    rig.engine.on('/v1/chat/completions', (exchange) => exchange.respondJson(500, { error: { message } }))
    second().on('/v1/chat/completions', (exchange) => exchange.refuse(500))
    await rig.chat().waitStatus(502)
    await rig.settled()
    expect(rig.told).toEqual(['status', 'status'])
  })
})

describe('a request that has made a replica fail', () => {
  it.each<[string, number, readonly string[], (exchange: ScriptedExchange) => void]>([
    ['a whole answer', 200, ['status'], (e) => e.head().tokens(2).done()],
    [
      'a stream that breaks after content',
      200,
      ['status', 'reset suspect'],
      (e) => e.head().tokens(2).reset(),
    ],
    ['silence', 504, ['status', 'no_progress suspect'], (e) => e.head()],
  ])(
    'tells nothing of the next, or only its failures would be left out: %s',
    async (_name, status, told, play) => {
      await start({ engines: 2, settings: { timeouts: { firstByteMs: 300 } } })
      rig.engine.on('/v1/chat/completions', (exchange) => exchange.refuse(500))
      second().on('/v1/chat/completions', play)
      const client = rig.chat()
      await client.waitStatus(status)
      await until(() => client.complete || client.ended, 'the end')
      await rig.settled()
      expect(rig.told).toEqual(told)
    },
  )

  it.each<[string, readonly string[], (exchange: ScriptedExchange) => void]>([
    ['was full', [], (e) => e.refuse(503)],
    [
      'goes down',
      ['status'],
      (e) => e.respondJson(500, { error: { message: 'cannot schedule new futures after shutdown' } }),
    ],
  ])('is not one whose replica %s: that was no doing of its own', async (_name, told, fail) => {
    await start({ engines: 2 })
    rig.engine.on('/v1/chat/completions', fail)
    second().on('/v1/chat/completions', play({ frames: 1 }))
    await rig.chat().waitComplete()
    await rig.settled()
    expect(rig.told).toEqual([...told, 'success'])
  })
})

describe('an engine that closes idle connections', () => {
  it('just as they are used again costs no request', async () => {
    await start({ engine: { keepAliveMs: 3 } })
    rig.engine.on('/v1/chat/completions', play({ frames: 1 }))
    for (let turn = 0; turn < 150; turn += 1) {
      const client = rig.chat()
      await client.waitComplete()
      expect(client.status).toBe(200)
      await new Promise((resolve) => setTimeout(resolve, 2 + (turn % 3)))
    }
    await rig.settled(150)
    expect(
      rig.settlements.filter(({ outcome, attempts }) => outcome !== 'completed' || attempts !== 1),
    ).toEqual([])
    // The race was run: many sockets were closed under us.
    expect(rig.engine.connections).toBeGreaterThan(10)
  })
})

describe('an engine that takes requests and says nothing', () => {
  it('holds up only its own', async () => {
    await start({ engines: 2 })
    const stuck = rig.chat({ user: 'stuck' })
    const held = await rig.engine.nextRequest()
    second().on('/v1/chat/completions', play({ frames: 1 }))
    for (let turn = 0; turn < 20; turn += 1) {
      const client = rig.chat()
      await client.waitComplete()
      expect(client.headers['x-sluice-replica']).toBe('replica-1')
    }
    stuck.leave()
    await held.waitClosed()
  })
})

describe('the OpenAI SDK with its own retries', () => {
  const messages = [{ role: 'user' as const, content: 'Hello' }]
  const sdk = () => new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: 'none' })

  it('comes back when it is told to, and says how often it has', async () => {
    await start({ gate: { tenants: { anonymous: { concurrentRequests: 1 } } } })
    const busy = rig.chat()
    const running = await rig.engine.nextRequest()
    const asking = sdk().chat.completions.create({ model: 'tiny', messages })
    await rig.settled()
    expect(rig.settlement.shedReason).toBe('tenant_limit')
    running.head().token().done()
    await busy.waitComplete()
    const again = await rig.engine.nextRequest('the second call', 10_000)
    again.respondJson(200, { choices: [{ index: 0, message: { role: 'assistant', content: 'hi' } }] })
    expect((await asking).choices[0]?.message.content).toBe('hi')
    await rig.settled(3)
    expect(rig.settlements.map(({ offer }) => offer.retryCount)).toEqual([0, 0, 1])
  })

  it('does not come back where it would only generate twice', async () => {
    await start({ settings: { limits: { requestMs: 100 } } })
    const asking = sdk().chat.completions.create({ model: 'tiny', messages })
    await rig.engine.nextRequest()
    await expect(asking).rejects.toMatchObject({ status: 504 })
    expect(rig.engine.requests).toHaveLength(1)
  })
})
