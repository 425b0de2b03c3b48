/** Compression in either direction: what is sent is what its headers say, and nothing is held back for it. */
import { brotliCompressSync, deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Rig, startRig } from '../support/edge-rig.ts'

let rig: Rig
beforeEach(async () => {
  rig = await startRig({ settings: { passthrough: ['/rerank'] } })
})
afterEach(() => rig.close())

const WANTS_GZIP = { 'accept-encoding': 'gzip, deflate, br' }
const ANSWER = JSON.stringify({
  choices: [{ message: { content: 'hi' } }],
  usage: { prompt_tokens: 4, completion_tokens: 7 },
})

describe('a stream for a client that takes gzip', () => {
  it('is not compressed by us: its first event leaves at once, by itself', async () => {
    const client = rig.chat({}, WANTS_GZIP)
    const exchange = await rig.engine.nextRequest()
    expect(exchange.request.headers['accept-encoding']).toBe('identity')
    exchange.head().role().token(' one')
    await client.waitText(' one')
    expect(client.headers['content-encoding']).toBeUndefined()
    expect(client.headers).toMatchObject({ 'cache-control': 'no-cache', 'x-accel-buffering': 'no' })
    exchange.token(' two').done()
    await client.waitComplete()
    await rig.settled()
  })
})

describe('a stream that comes compressed although identity was asked for', () => {
  it('is relayed as it is under its true header, as it comes, and ends well', async () => {
    const client = rig.chat({}, WANTS_GZIP)
    const exchange = await rig.engine.nextRequest()
    exchange.gzip = true
    exchange.head().role().token(' one')
    await client.waitStatus(200)
    expect(client.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(client.body).toString()).toContain('"role":"assistant"')
    const [ledger] = rig.gate.state.replicas.values()
    expect([ledger?.decodingSequences, ledger?.visibleSequences]).toEqual([1, 0])
    exchange.token(' two').finish().done()
    await client.waitComplete()
    expect(gunzipSync(client.body).toString()).toMatch(/ one[\s\S]* two[\s\S]*\[DONE\]/)
    await rig.settled()
    expect(rig.settlement).toMatchObject({
      outcome: 'completed',
      countedBy: 'none',
      verdict: { kind: 'good' },
    })
    expect(rig.told).toEqual(['success'])
  })

  it('is cut, not ended, when its engine dies, and nothing of ours is mixed into it', async () => {
    const client = rig.chat({}, WANTS_GZIP)
    const exchange = await rig.engine.nextRequest()
    exchange.gzip = true
    exchange.head().role().token(' one')
    await client.waitStatus(200)
    exchange.reset()
    await client.waitEnded()
    expect(client.complete).toBe(false)
    expect(client.text).not.toContain('upstream_failed')
    await rig.settled()
    expect(rig.settlement.outcome).toBe('truncated')
  })
})

describe('a whole answer that comes compressed', () => {
  it.each(['gzip', 'br', 'deflate'] as const)(
    'as %s keeps its bytes, its length and its encoding',
    async (encoding) => {
      const client = rig.chat({ stream: false }, WANTS_GZIP)
      const exchange = await rig.engine.nextRequest()
      exchange.respondEncoded(200, ANSWER, encoding)
      await client.waitComplete()
      const encode = { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync }[encoding]
      expect(client.headers['content-encoding']).toBe(encoding)
      expect(client.body.equals(encode(ANSWER))).toBe(true)
      expect(client.headers['content-length']).toBe(String(client.body.length))
      await rig.settled()
      expect(rig.settlement.outcome).toBe('completed')
    },
  )

  it('keeps them on a path of passthrough, and in a refusal', async () => {
    const rerank = rig.client().send({ path: '/rerank', body: { query: 'q' } })
    ;(await rig.engine.nextRequest()).respondEncoded(200, ANSWER, 'gzip')
    await rerank.waitComplete()
    expect(gunzipSync(rerank.body).toString()).toBe(ANSWER)
    expect(rerank.headers['content-encoding']).toBe('gzip')
    const refused = rig.chat({ stream: false })
    ;(await rig.engine.nextRequest()).respondEncoded(400, ANSWER, 'gzip')
    await refused.waitStatus(400)
    await refused.waitComplete()
    expect(refused.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(refused.body).toString()).toBe(ANSWER)
    await rig.settled()
  })
})

describe('a request body that comes compressed', () => {
  const bomb = gzipSync(Buffer.alloc(4 * 1024 * 1024, ' '))

  it.each([
    'gzip',
    'GZIP',
    '  Gzip\t',
    'x-gzip',
    'br',
    'deflate',
    'identity, gzip',
    'gzip, identity',
    'rot13',
  ])('as %j is a 415 on every route, whatever it would unfold to', async (encoding) => {
    for (const path of ['/v1/chat/completions', '/rerank', '/generate']) {
      const headers = { 'content-encoding': encoding }
      const client = rig.client().send({ path, headers, body: bomb })
      await client.waitStatus(415)
    }
    expect(rig.engine.requests).toHaveLength(0)
    expect(rig.edge.buffers.heldBytes).toBe(0)
  })

  it('without saying so is no JSON: a 400', async () => {
    await rig.client().send({ body: bomb }).waitStatus(400)
  })
})
