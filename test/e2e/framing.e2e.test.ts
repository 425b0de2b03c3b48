/** One way to say where a message ends, in both directions, and nothing that two parsers could read in two ways. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'
import { play } from '../support/engine-script.ts'
import { anyMutations, FUZZ, mutated } from '../support/mutations.ts'
import type { RawClient } from '../support/raw-client.ts'
import type { ScriptedExchange } from '../support/scripted-exchange.ts'

let rig: Rig
beforeEach(async () => {
  rig = await startRig({ settings: { passthrough: ['/rerank'] } })
})
afterEach(() => rig.close())

/** How the head says where the body ends; throws when it says so twice or not at all. */
function framingOf(client: RawClient): string {
  const head = client.received.toString('latin1', 0, client.received.indexOf('\r\n\r\n'))
  const names = head
    .split('\r\n')
    .slice(1)
    .map((row) => row.slice(0, row.indexOf(':')).toLowerCase())
  const said = names.filter((name) => name === 'content-length' || name === 'transfer-encoding')
  if (said.length > 1) throw new Error(`framed twice: ${head}`)
  return said[0] ?? 'close'
}

describe('an answer is framed once', () => {
  const token = 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\ndata: [DONE]\n\n'
  const big = 'x'.repeat(2 * 1024 * 1024)
  const json = { 'content-type': 'application/json' }

  it.each<[string, object, (exchange: ScriptedExchange) => void, string]>([
    ['a chunked stream', {}, (e) => e.head().token().done(), 'transfer-encoding'],
    [
      'a stream with a length',
      {},
      (e) =>
        e
          .head(200, { 'content-length': String(token.length) }, 'length')
          .write(token)
          .end(),
      'transfer-encoding',
    ],
    ['a stream up to the close', {}, (e) => e.head(200, {}, 'close').write(token).end(), 'transfer-encoding'],
    ['a small answer', { stream: false }, (e) => e.respondJson(200, {}), 'content-length'],
    [
      'a small answer in chunks',
      { stream: false },
      (e) => e.head(200, json).write('{}').end(),
      'content-length',
    ],
    [
      'a small answer up to the close',
      { stream: false },
      (e) => e.head(200, json, 'close').write('{}').end(),
      'content-length',
    ],
    ['a large answer', { stream: false }, (e) => e.respond(200, big, json), 'content-length'],
    [
      'a large answer in chunks',
      { stream: false },
      (e) => e.head(200, json).write(big).end(),
      'transfer-encoding',
    ],
    ['a refusal by the engine', {}, (e) => e.refuse(400), 'content-length'],
    ['a refusal by us', { model: 'nope' }, () => {}, 'content-length'],
  ])('%s', async (_name, fields, answer, framing) => {
    const client = rig.chat(fields)
    if (!('model' in fields)) answer(await rig.engine.nextRequest())
    await client.waitComplete()
    expect(framingOf(client)).toBe(framing)
  })

  it('a stream for HTTP/1.0 ends with its connection', async () => {
    const body = JSON.stringify({ model: 'tiny', stream: true, messages: [] })
    const head = `POST /v1/chat/completions HTTP/1.0\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`
    const client = rig.client().raw(head + body)
    ;(await rig.engine.nextRequest()).head().token().done()
    await client.waitEnded()
    expect(framingOf(client)).toBe('close')
    expect(client.text).toContain('[DONE]')
  })
})

describe('an interim answer of the engine', () => {
  it.each([true, false])('goes nowhere, and the real one follows; streamed: %s', async (stream) => {
    const client = rig.chat({ stream })
    const exchange = await rig.engine.nextRequest()
    exchange.raw('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n')
    if (stream) exchange.head().token(' fine').done()
    else exchange.respondJson(200, { text: ' fine' })
    await client.waitComplete()
    expect([client.status, client.text.includes(' fine')]).toEqual([200, true])
    expect(client.headers.link).toBeUndefined()
  })
})

describe('an answer of the engine that can be read in two ways', () => {
  const ok = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'

  it.each([
    [
      'has a length and chunks',
      `${ok}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    ['has two lengths', `${ok}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`],
    ['has a length below zero', `${ok}content-length: -2\r\n\r\n{}`],
    ['has a chunk of no size', `${ok}transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`],
    ['has a bare CR in a header', `${ok}x-a: b\rcontent-length: 2\r\n\r\n{}`],
    ['has a folded header', `${ok}x-a: b\r\n content-length: 9\r\ncontent-length: 2\r\n\r\n{}`],
    ['ends a header with a bare LF', `${ok}x-a: b\ncontent-length: 9\r\ncontent-length: 2\r\n\r\n{}`],
    ['ends a chunk size with a bare LF', `${ok}transfer-encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n`],
    ['has chunks under two names', `${ok}transfer-encoding: chunked, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
    ['has a head without end', `${ok}${'x-a: b\r\n'.repeat(20_000)}`],
  ])('%s becomes a clean 502', async (_name, bytes) => {
    const client = rig.chat({ stream: false })
    const exchange = await rig.engine.nextRequest()
    exchange.raw(bytes)
    await client.waitStatus(502)
    await client.waitComplete()
    expect(client.json).toMatchObject({ error: { code: 'upstream_failed' } })
    await exchange.waitClosed()
  })

  it("has more bytes than its length: they are nobody's answer", async () => {
    const first = rig.chat({ stream: false })
    const smuggled = 'HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled'
    ;(await rig.engine.nextRequest()).raw(`${ok}content-length: 2\r\n\r\n{}${smuggled}`)
    await first.waitComplete()
    const second = rig.chat({ stream: false })
    ;(await rig.engine.nextRequest()).respondJson(200, { fine: true })
    await second.waitComplete()
    expect(second.text).toBe('{"fine":true}')
  })
})

describe('a request that can be read in two ways', () => {
  const smuggled = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}'
  const head = 'POST /rerank HTTP/1.1\r\nhost: x\r\n'

  it.each([
    [
      'a length and chunks',
      `${head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'chunks and a length',
      `${head}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    ['two lengths', `${head}content-length: 0\r\ncontent-length: ${smuggled.length}\r\n\r\n${smuggled}`],
    ['two lengths in one', `${head}content-length: 0, ${smuggled.length}\r\n\r\n${smuggled}`],
    ['a length with a sign', `${head}content-length: +0\r\n\r\n${smuggled}`],
    ['a space before the colon', `${head}content-length : 0\r\n\r\n${smuggled}`],
    [
      'an encoding that is not the last',
      `${head}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    ['an unknown encoding', `${head}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ['a folded header', `${head}x-a: b\r\n content-length: 0\r\n\r\n${smuggled}`],
    ['a bare CR', `${head}x-a: b\rcontent-length: 0\r\n\r\n${smuggled}`],
    ['a NUL', `${head}x-a: b\0\r\ncontent-length: 0\r\n\r\n${smuggled}`],
    ['a chunk size of no number', `${head}transfer-encoding: chunked\r\n\r\n0x0\r\n\r\n${smuggled}`],
    ['a chunk longer than told', `${head}transfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n${smuggled}`],
    ['a bare LF', `${head}x-a: b\ncontent-length: 0\r\n\r\n${smuggled}`],
    ['a chunk size that ends with a bare LF', `${head}transfer-encoding: chunked\r\n\r\n0\n\r\n${smuggled}`],
    ['chunks twice', `${head}transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ['an encoding behind a vertical tab', `${head}transfer-encoding: \vchunked\r\n\r\n0\r\n\r\n${smuggled}`],
    [
      'chunks in HTTP/1.0 beside a length',
      `POST /rerank HTTP/1.0\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    ['no host', `POST /rerank HTTP/1.1\r\ncontent-length: 0\r\n\r\n${smuggled}`],
  ])('by %s ends its connection, and nothing of it is sent on', async (_name, bytes) => {
    const client = rig.client().raw(bytes)
    await client.waitEnded()
    expect(client.status).toBe(400)
    expect(client.received.toString().match(/HTTP\/1\.1 \d{3}/g)).toHaveLength(1)
    expect(rig.engine.requests).toHaveLength(0)
  })

  it('or that is only bytes gone wrong is answered or cut, and what an engine gets of it is a request', async () => {
    rig.engine.on('/v1/chat/completions', play({ frames: 1 }))
    rig.engine.on('/rerank', (exchange) => exchange.respondJson(200, {}))
    const body = JSON.stringify({
      model: 'tiny',
      stream: true,
      messages: [{ role: 'user', content: 'Hello' }],
    })
    const whole = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const chunked = `${head}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`
    const pieces = [
      '\r\n',
      '\n',
      '\r',
      ':',
      ' ',
      '\0',
      'HTTP/1.0',
      'content-length: 9\r\n',
      'transfer-encoding: chunked\r\n',
      'expect: 100-continue\r\n',
      'connection: close\r\n',
      '0\r\n\r\n',
      'ffffffff\r\n',
      'GET',
      '//',
      '%00',
    ]
    const anyBytes = fc
      .tuple(fc.constantFrom(whole, chunked, whole + chunked), anyMutations(pieces, 3))
      .map(([text, mutations]) => mutated(Buffer.from(text), mutations))
    let answered = 0
    const law = fc.asyncProperty(anyBytes, async (bytes) => {
      const client = rig.client().raw(bytes)
      // What is incomplete is waited for, until the client gives up.
      await until(() => client.complete || client.ended, 'an answer', 40).catch(() => client.halfClose())
      if (!client.complete) await client.waitEnded()
      if (client.status === 200) answered += 1
      client.leave()
    })
    await fc.assert(law, FUZZ.runs(150))
    expect(answered).toBeGreaterThan(5)
    for (const { method, path, rawHeaders, body: sent } of rig.engine.requests) {
      expect([method, path.split('?')[0]]).toEqual([
        'POST',
        expect.stringMatching(/^\/(rerank|v1\/chat\/completions)$/),
      ])
      expect(rawHeaders.map(([name]) => name.toLowerCase())).not.toContain('transfer-encoding')
      if (path === '/v1/chat/completions') expect(() => JSON.parse(sent.toString())).not.toThrow()
    }
  })

  it.each(['CONNECT x:80', 'TRACE /v1/models', 'GET http://x/v1/chat/completions', 'PRI *', 'OPTIONS *'])(
    'by its target, %s, reaches no engine',
    async (target) => {
      const client = rig.client().raw(`${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
      await client.waitEnded()
      expect([0, 400, 404]).toContain(client.status)
      expect(rig.engine.requests).toHaveLength(0)
    },
  )

  it('by an upgrade is an ordinary request', async () => {
    const client = rig.chat(
      {},
      { connection: 'upgrade, http2-settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' },
    )
    const exchange = await rig.engine.nextRequest()
    expect(exchange.request.headers.upgrade).toBeUndefined()
    expect(exchange.request.headers['http2-settings']).toBeUndefined()
    exchange.head().token().done()
    await client.waitComplete()
    expect(client.status).toBe(200)
  })
})
