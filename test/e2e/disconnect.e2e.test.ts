/** A client that leaves frees its replica at once, in whatever phase its request is. */
import { afterEach, describe, expect, it } from 'vitest'
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
    expect(rig.gate.counts.offered).toBe(0)
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
