/** What cannot be read as a request, or does not come in time: a clear answer where HTTP allows, and an end in any case. */
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { type Rig, type RigOptions, sloClass, startRig } from '../support/edge-rig.ts'

let rig: Rig
const start = async (options: RigOptions = {}) => {
  rig = await startRig(options)
  return rig
}
afterEach(() => rig.close())

const HEAD = 'POST /v1/chat/completions HTTP/1.1\r\nhost: sluice.test\r\n'
const quick = { headersMs: 100, checkMs: 20 }

describe('headers', () => {
  it('over the limit are a 431 in the dialect of OpenAI, which survives the close', async () => {
    await start()
    const client = rig.client().raw(`${HEAD}x-big: ${'x'.repeat(200_000)}`)
    await client.waitStatus(431)
    await client.waitEnded()
    expect(client.wasReset).toBe(false)
    expect(client.json).toMatchObject({ error: { code: 'headers_too_large', type: 'invalid_request_error' } })
    expect(client.headers).toMatchObject({
      connection: 'close',
      'content-length': String(client.body.length),
      'x-sluice-reason': 'headers_too_large',
      'x-should-retry': 'false',
    })
    expect(rig.rejections).toEqual(['headers_too_large'])
  })

  it('just below the limit are taken', async () => {
    await start()
    const client = rig.chat({}, { 'x-big': 'x'.repeat(31_000) })
    ;(await rig.engine.nextRequest()).head().token().done()
    await client.waitComplete()
    expect(client.status).toBe(200)
    await rig.settled()
  })

  it('that do not come to their end are a 408', async () => {
    await start({ server: quick })
    const client = rig.client().raw(`${HEAD}x-slow: `)
    await client.waitStatus(408)
    await client.waitEnded()
    expect(client.json).toMatchObject({ error: { code: 'request_timeout' } })
    expect(rig.rejections).toEqual(['request_timeout'])
  })

  it('that trickle, each byte soon after the one before, are a 408 all the same', async () => {
    await start({ server: quick })
    const begun = `${HEAD}x-slow: `
    const client = rig.client().raw(begun)
    // Far more than there is time for: it ends when the connection does.
    const trickle = client.trickle('x'.repeat(10_000), { everyMs: 5 })
    await client.waitStatus(408)
    await client.waitEnded()
    await trickle
    // Twenty are due in the time; a limit that each byte begins anew would see many more.
    expect(client.socket.bytesWritten - begun.length).toBeLessThan(80)
    expect(client.json).toMatchObject({ error: { code: 'request_timeout' } })
    expect(rig.rejections).toEqual(['request_timeout'])
  })

  it('that never begin end the connection without a word, which nobody could place', async () => {
    await start({ server: quick })
    const client = await rig.client().connected()
    await client.waitEnded()
    expect([client.receivedBytes, client.wasReset]).toEqual([0, false])
    expect(rig.rejections).toEqual([])
  })

  it.each([
    'GARBAGE\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    `${HEAD}bad header: 1\r\n\r\n`,
  ])('that are none are a 400: %j', async (bytes) => {
    await start()
    const client = rig.client().raw(bytes)
    await client.waitStatus(400)
    await client.waitEnded()
    expect(client.json).toMatchObject({ error: { code: 'malformed' } })
  })

  it('that are none behind a request under way end the connection and that request, and nothing is mixed in', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().token(' one')
    await client.waitText(' one')
    client.raw('GARBAGE\r\n\r\n')
    await exchange.waitClosed()
    await client.waitEnded()
    expect(client.received.toString()).not.toContain(' 400 ')
    await rig.settled()
    expect(rig.settlement.outcome).toBe('client_left')
  })
})

describe('an upload', () => {
  it('with broken framing is a 400 and leaves nothing behind', async () => {
    await start()
    const client = rig.client().raw(`${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nZZZ\r\n`)
    await client.waitStatus(400)
    await client.waitEnded()
    expect(client.json).toMatchObject({ error: { code: 'malformed' } })
    await until(() => rig.edge.buffers.heldBytes === 0, 'its bytes to be given back')
  })

  it('that trickles for longer than limits.request is a 408 that ends the connection', async () => {
    await start({ settings: { limits: { requestMs: 200 } } })
    const client = rig.client().send({ headers: { 'content-length': '1000' }, body: '{' })
    const trickle = setInterval(() => client.raw(' '), 20)
    try {
      await client.waitStatus(408)
      await client.waitEnded()
    } finally {
      clearInterval(trickle)
    }
    expect(client.headers.connection).toBe('close')
    expect(client.json).toMatchObject({ error: { code: 'request_timeout' } })
    expect(rig.edge.buffers.heldBytes).toBe(0)
  })

  it('that stalls is a 408 that ends the connection', async () => {
    await start({ settings: { timeouts: { betweenBytesMs: 50 } } })
    const client = rig.client().send({ headers: { 'content-length': '1000' }, body: '{"mod' })
    await client.waitStatus(408)
    await client.waitEnded()
    expect(client.wasReset).toBe(false)
  })

  it('of which the rest never comes after a refusal holds its connection for a moment only', async () => {
    await start({ settings: { auth: { kind: 'keys' }, classes: { chat: sloClass('chat') } } })
    const client = rig.client().send({ headers: { 'content-length': '1000' }, body: '{' })
    await client.waitStatus(401)
    await client.waitComplete()
    await client.waitEnded()
    expect(client.headers.connection).toBe('keep-alive')
  })
})
