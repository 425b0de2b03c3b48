/** Shutting down: nothing new, what runs may finish, and at the limit everything ends with a word. */
import { afterEach, describe, expect, it } from 'vitest'
import { createConcurrencyLimit } from '../../src/policies/rivals/concurrency-limit.ts'
import { until, within } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'

let rig: Rig
afterEach(() => rig.close())

describe('a drain', () => {
  it('lets streams finish, refuses what is new and turns readiness off', async () => {
    rig = await startRig()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().token(' one')
    await client.waitText(' one')
    const drained = rig.edge.drain.begin(60_000)
    const refused = rig.chat()
    await refused.waitStatus(503)
    await refused.waitEnded()
    expect(refused.json).toMatchObject({ error: { code: 'draining' } })
    expect(refused.headers).toMatchObject({
      connection: 'close',
      'retry-after': '2',
      'x-should-retry': 'true',
    })
    await rig.client().send({ method: 'GET', path: '/readyz' }).waitStatus(503)
    exchange.token(' two').done()
    await client.waitComplete()
    expect(client.text).toContain('[DONE]')
    await within(drained, 'the drain to end')
    await rig.settled()
    expect(rig.settlement.outcome).toBe('completed')
  })

  it('waits for an upload under way, and at its limit says no to one', async () => {
    rig = await startRig()
    const body = JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'hi' }] })
    const head = (length: number) =>
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
    const slow = rig.client().raw(head(body.length) + body.slice(0, 10))
    const endless = rig.client().raw(head(body.length) + body.slice(0, 10))
    await until(() => rig.edge.buffers.heldBytes >= 20, 'both uploads to have begun')
    const drained = rig.edge.drain.begin(60_000)
    slow.raw(body.slice(10))
    const exchange = await rig.engine.nextRequest()
    exchange.respondJson(200, { choices: [{ index: 0, message: { role: 'assistant', content: 'hi' } }] })
    await slow.waitStatus(200)
    rig.edge.drain.now()
    await within(drained, 'the drain to end')
    await endless.waitStatus(503)
    expect(endless.text).toContain('"code":"draining"')
  })

  it('ends at its limit what still streams, waits or prefills', async () => {
    rig = await startRig({ scheduler: createConcurrencyLimit({ maxInFlight: 2, queueMs: 60_000 }) })
    const streaming = rig.chat()
    const first = await rig.engine.nextRequest()
    first.head().token(' one')
    await streaming.waitText(' one')
    const prefilling = rig.chat()
    const second = await rig.engine.nextRequest()
    const waiting = rig.chat()
    await until(() => rig.gate.state.waiting.requests === 1, 'the third to wait')
    const drained = rig.edge.drain.begin(60_000)
    rig.edge.drain.now()
    await within(drained, 'the drain to end')
    await streaming.waitComplete()
    expect(streaming.text).toContain('"code":"draining"')
    await prefilling.waitStatus(503)
    await waiting.waitStatus(503)
    await Promise.all([first.waitClosed(), second.waitClosed()])
    await rig.settled(3)
    expect(rig.settlements.map(({ outcome }) => outcome).sort()).toEqual(['draining', 'draining', 'draining'])
    expect(rig.settlements.every(({ verdict }) => verdict.kind === 'bad')).toBe(true)
  })
})
