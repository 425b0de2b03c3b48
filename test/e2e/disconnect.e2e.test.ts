/** A client that leaves frees its replica at once, in whatever phase its request is. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createConcurrencyLimit } from '../../src/policies/rivals/concurrency-limit.ts'
import { until } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'

let rig: Rig
afterEach(() => rig.close())

/** Loopback and two turns of two event loops; the promise is 100 ms. */
const SOON_MS = 100

describe('a client that leaves', () => {
  it('while its request waits never reaches a replica, and those behind it move up', async () => {
    rig = await startRig({ scheduler: createConcurrencyLimit({ maxInFlight: 1, queueMs: 60_000 }) })
    const first = rig.chat()
    const running = await rig.engine.nextRequest()
    const second = rig.chat({ user: 'second' })
    await until(() => rig.gate.state.waiting.requests === 1, 'the second to wait')
    const third = rig.chat({ user: 'third' })
    await until(() => rig.gate.state.waiting.requests === 2, 'the third to wait')
    second.leave()
    await until(() => rig.gate.state.waiting.requests === 1, 'the second to be gone', SOON_MS * 10)
    running.head().token().done()
    await first.waitComplete()
    const next = await rig.engine.nextRequest()
    expect(next.json.user).toBe('third')
    next.head().token().done()
    await third.waitComplete()
    expect(third.headers['x-sluice-decision']).toBe('queued')
    await rig.settled(3)
    expect(rig.settlements.map(({ outcome }) => outcome).sort()).toEqual([
      'cancelled',
      'completed',
      'completed',
    ])
    expect(rig.engine.requests.filter(({ path }) => path === '/v1/chat/completions')).toHaveLength(2)
  })

  it.each([
    ['before the engine has answered', () => {}, true],
    [
      'while the engine prefills',
      (e: Awaited<ReturnType<Rig['engine']['nextRequest']>>) => e.head().role(),
      true,
    ],
    [
      'in the middle of its stream',
      (e: Awaited<ReturnType<Rig['engine']['nextRequest']>>) => e.head().tokens(2),
      true,
    ],
    ['of an answer that does not stream', () => {}, false],
  ])('%s has its upstream socket closed', async (phase, act, stream) => {
    rig = await startRig()
    const client = rig.chat({ stream })
    const exchange = await rig.engine.nextRequest()
    act(exchange)
    if (phase.includes('middle')) await client.waitText(' t1')
    const leftAtMs = performance.now()
    client.leave()
    await exchange.waitClosed()
    const tookMs = performance.now() - leftAtMs
    await rig.settled()
    expect(rig.settlement.outcome).toBe('client_left')
    expect(rig.gate.inFlight).toBe(0)
    // Measured for the report; a busy machine must not fail the test on speed.
    if (tookMs > SOON_MS) console.warn(`closing the upstream socket took ${tookMs.toFixed(0)} ms`)
  })

  it('during its upload leaves nothing behind', async () => {
    rig = await startRig()
    const client = rig.client()
    client.send({ headers: { 'content-length': '1000' }, body: '{"model":' })
    await until(() => rig.edge.buffers.heldBytes > 0, 'the first bytes to be held')
    client.leave()
    await until(() => rig.edge.buffers.heldBytes === 0, 'the bytes to be given back')
    await until(() => rig.connections === 0, 'the connection to be gone')
    expect(rig.gate.counts.offered).toBe(0)
    // It went: that is no request gone wrong, and nobody should be alarmed by it.
    expect(rig.rejections).toEqual([])
  })

  it('together with hundreds of others leaves an empty queue, and the next request is served', async () => {
    rig = await startRig({ scheduler: createConcurrencyLimit({ maxInFlight: 1, queueMs: 60_000 }) })
    const first = rig.chat()
    const running = await rig.engine.nextRequest()
    const waiters = Array.from({ length: 680 }, () => rig.chat({ user: 'waits' }))
    await until(() => rig.gate.state.waiting.requests === 680, 'all of them to wait')
    for (const [index, waiter] of waiters.entries()) index % 2 === 0 ? waiter.leave() : waiter.vanish()
    await until(() => rig.gate.state.waiting.requests === 0, 'the queue to be empty')
    expect(rig.edge.buffers.heldBytes).toBeLessThan(1000)
    const next = rig.chat({ user: 'next' })
    await until(() => rig.gate.state.waiting.requests === 1, 'the next to wait')
    running.head().token().done()
    await first.waitComplete()
    const exchange = await rig.engine.nextRequest()
    expect(exchange.json.user).toBe('next')
    exchange.head().token().done()
    await next.waitComplete()
    expect(rig.engine.requests).toHaveLength(2)
  })

  it('from the head of the queue holds nobody up, and is never sent', async () => {
    const models = ['tiny', 'other'].map((name) => ({ name, aliases: [], servedName: name, adapters: [] }))
    rig = await startRig({
      engines: 2,
      pools: [['tiny'], ['other']],
      settings: { models },
      scheduler: createConcurrencyLimit({ maxInFlight: 1, queueMs: 60_000 }),
    })
    rig.chat()
    const busy = await rig.engine.nextRequest()
    const head = rig.chat({ user: 'head' })
    await until(() => rig.gate.state.waiting.requests === 1, 'the head to wait')
    // Behind a head that can't run, whoever can run does.
    const other = rig.chat({ model: 'other' })
    const elsewhere = await rig.engines[1]?.nextRequest('the follower to be sent')
    elsewhere?.head().token().done()
    await other.waitComplete()
    const follower = rig.chat({ user: 'follower' })
    await until(() => rig.gate.state.waiting.requests === 2, 'the follower to wait')
    head.leave()
    await until(() => rig.gate.state.waiting.requests === 1, 'the head to be gone')
    busy.head().token().done()
    const next = await rig.engine.nextRequest()
    expect(next.json.user).toBe('follower')
    next.head().token().done()
    await follower.waitComplete()
    expect(rig.engine.requests.map(({ body }) => body.toString()).join()).not.toContain('"head"')
  })

  it('frees a limit of one for the next request', async () => {
    rig = await startRig({ gate: { tenants: { anonymous: { concurrentRequests: 1 } } } })
    const first = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().token()
    await first.waitText(' token')
    const refused = rig.chat()
    await refused.waitStatus(429)
    await refused.waitComplete()
    expect(refused.json).toMatchObject({ error: { code: 'tenant_limit' } })
    first.leave()
    await rig.settled(2)
    const next = rig.chat()
    ;(await rig.engine.nextRequest()).head().token().done()
    await next.waitComplete()
    await rig.settled(3)
  })
})

describe('a client that goes', () => {
  const MANNERS = ['leave', 'vanish', 'halfClose'] as const

  it.each(MANNERS)(
    'by %s, at any moment, breaks nothing and is not written about on stderr',
    async (manner) => {
      rig = await startRig({ scheduler: createConcurrencyLimit({ maxInFlight: 1, queueMs: 60_000 }) })
      const stderr = vi.spyOn(process.stderr, 'write')
      try {
        const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: sluice.test\r\ncontent-'
        for (const raw of [
          '',
          'PO',
          head,
          `${head}length: 100\r\n\r\n`,
          `${head}length: 100\r\n\r\n{"model":`,
        ]) {
          const client = (await rig.client().connected()).raw(raw)
          client[manner]()
          await client.waitEnded()
        }
        const running = rig.chat()
        const exchange = await rig.engine.nextRequest()
        const waiting = rig.chat()
        await until(() => rig.gate.state.waiting.requests === 1, 'the second to wait')
        waiting[manner]()
        await until(() => rig.gate.state.waiting.requests === 0, 'the second to be gone')
        running[manner]()
        await exchange.waitClosed()
        for (const phase of [0, 1, 2, 3]) await goIn(phase, manner)
        const next = rig.chat()
        ;(await rig.engine.nextRequest()).head().token().done()
        await next.waitComplete()
        expect(stderr).not.toHaveBeenCalled()
      } finally {
        stderr.mockRestore()
      }
    },
  )

  /** Goes before content, in mid-stream, with the last byte, or after the end. */
  async function goIn(phase: number, manner: (typeof MANNERS)[number]): Promise<void> {
    const count = rig.settlements.length
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().role()
    if (phase > 0) {
      exchange.token(' seen')
      await client.waitText(' seen')
    }
    if (phase > 1) exchange.done()
    if (phase > 2) await client.waitComplete()
    client[manner]()
    if (phase < 2) await exchange.waitClosed()
    await rig.settled(count + 1)
    const ends = phase < 2 ? ['client_left'] : phase === 2 ? ['client_left', 'completed'] : ['completed']
    expect(ends).toContain(rig.settlements[count]?.outcome)
  }
})

describe('a client that stays and reads nothing', () => {
  const MIB = 'x'.repeat(1024 * 1024)
  const HELD_WHOLE = 'x'.repeat(900 * 1024)

  it('of a passthrough path loses its replica after a while', async () => {
    rig = await startRig({ settings: { passthrough: ['/rerank'], timeouts: { betweenBytesMs: 100 } } })
    const client = rig
      .client()
      .send({ path: '/rerank', body: { query: 'q' } })
      .stall()
    const exchange = await rig.engine.nextRequest()
    exchange.head(200, { 'content-type': 'application/json' })
    for (let sent = 0; sent < 40; sent += 1) exchange.write(MIB)
    await exchange.waitClosed()
    await until(() => rig.edge.underWay === 0, 'the exchange to be over')
    client.leave()
  })

  it('of answers that are complete is cut after a while, and they are forgotten', async () => {
    rig = await startRig({ settings: { timeouts: { betweenBytesMs: 100 } } })
    rig.engine.on('/v1/chat/completions', (exchange) => exchange.respondJson(200, { text: HELD_WHOLE }))
    const client = rig.client().stall()
    const answers = 16
    for (let sent = 0; sent < answers; sent += 1) client.send({ body: { model: 'tiny', messages: [] } })
    await until(() => rig.engine.requests.length > 1, 'some answers')
    await until(() => rig.connections === 0, 'the connection to be cut')
    await client.read().waitEnded()
    expect(client.receivedBytes).toBeLessThan((answers - 1) * HELD_WHOLE.length)
  })
})

describe('a client that reads slowly', () => {
  it('and asks for more meanwhile gets all of it: an answer that waits for its turn is not forgotten', async () => {
    rig = await startRig({ settings: { timeouts: { betweenBytesMs: 60 } } })
    const client = rig.client().send({ body: { model: 'tiny', stream: true, messages: [] } })
    client.send({ body: { model: 'tiny', messages: [], user: 'second' } })
    const first = await rig.engine.nextRequest()
    ;(await rig.engine.nextRequest()).respondJson(200, { text: 'x'.repeat(200_000), end: 'second' })
    first.head()
    for (let sent = 0; sent < 8; sent += 1) {
      first.token(' slow')
      await new Promise((resolve) => setTimeout(resolve, 40))
    }
    first.done()
    await until(() => client.received.includes('"end":"second"'), 'the second answer')
    await rig.settled(2)
  })
})

describe('a passthrough path', () => {
  it('ends at limits.request like any other', async () => {
    rig = await startRig({ settings: { passthrough: ['/rerank'], limits: { requestMs: 100 } } })
    const client = rig.client().send({ path: '/rerank', body: { query: 'q' } })
    const exchange = await rig.engine.nextRequest()
    exchange.head(200, { 'content-type': 'application/json' }).write('{')
    // Signs of life don't lengthen it.
    const beat = setInterval(() => exchange.write(' '), 20)
    await exchange.waitClosed()
    clearInterval(beat)
    await client.waitEnded()
    expect(client.complete).toBe(false)
  })
})
