/** What is refused at the door, in which words, and what an engine is shown of what comes in. */
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { reachOf } from '../../src/core/prefix-blocks.ts'
import { until } from '../support/deadline.ts'
import { type Rig, type RigOptions, sloClass, startRig } from '../support/edge-rig.ts'

let rig: Rig
const start = async (options: RigOptions = {}) => {
  rig = await startRig(options)
  return rig
}
afterEach(() => rig.close())

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')

describe('a body', () => {
  it('over the limit by its length is refused before it is read, and the answer survives the close', async () => {
    await start({ settings: { limits: { bodyBytes: 100_000 } } })
    const client = rig.client().send({ headers: { 'content-length': '50000000' }, body: 'x' })
    await client.waitStatus(413)
    await client.waitComplete()
    expect(client.json).toMatchObject({ error: { code: 'too_large', type: 'invalid_request_error' } })
    expect(client.headers.connection).toBe('close')
    await client.waitEnded()
    expect(client.wasReset).toBe(false)
  })

  it('over the limit in chunks is refused as soon as it is', async () => {
    await start({ settings: { limits: { bodyBytes: 1000 } } })
    const client = rig.client().send({ headers: { 'transfer-encoding': 'chunked' } })
    client.raw(`400\r\n${'x'.repeat(1024)}\r\n`)
    await client.waitStatus(413)
    await client.waitEnded()
    expect(rig.edge.buffers.heldBytes).toBe(0)
  })

  it('that is compressed is a 415, identity is none', async () => {
    await start()
    const gzip = rig.chat({}, { 'content-encoding': ' GZIP ' })
    await gzip.waitStatus(415)
    const identity = rig.chat({}, { 'content-encoding': 'identity' })
    ;(await rig.engine.nextRequest()).head().token().done()
    await identity.waitComplete()
    await rig.settled()
  })

  it('that stalls is a 408', async () => {
    await start({ settings: { timeouts: { betweenBytesMs: 100 } } })
    const client = rig.client().send({ headers: { 'content-length': '1000' }, body: '{"mod' })
    await client.waitStatus(408)
    expect(client.json).toMatchObject({ error: { code: 'request_timeout' } })
  })

  it('waits its turn for memory: beyond limits.buffered it is a 503 that may be retried', async () => {
    await start({ settings: { limits: { bufferedBytes: 3000 } } })
    const big = rig.chat({ user: 'x'.repeat(2500) })
    const exchange = await rig.engine.nextRequest()
    const refused = rig.chat({ user: 'x'.repeat(2500) })
    await refused.waitStatus(503)
    await refused.waitComplete()
    expect(refused.json).toMatchObject({ error: { code: 'buffers_full' } })
    exchange.head().token(' first')
    await big.waitText(' first')
    expect(rig.edge.buffers.heldBytes).toBe(0)
    exchange.done()
    await rig.settled()
  })

  it.each([
    ['nothing', '', 'empty'],
    ['no JSON', '{"model": "tiny", secret prompt', 'not valid JSON'],
    ['no object', '[1]', 'must be a JSON object'],
    ['no messages', '{"model":"tiny"}', '`messages` must be an array'],
    ['a model that is no string', '{"model":7,"messages":[]}', '`model` must be a string'],
    ['a stream that is neither true nor false', '{"stream":"yes","messages":[]}', '`stream` must be'],
  ])('with %s is a 400 that says so and repeats no prompt', async (_name, body, message) => {
    await start()
    const client = rig.client().send({ body })
    await client.waitStatus(400)
    await client.waitComplete()
    expect(client.text).toContain(message)
    expect(client.text).not.toContain('secret')
    expect(client.headers['x-should-retry']).toBe('false')
    expect(rig.rejections).toEqual(['malformed'])
  })

  it('with Expect is asked for and passed on without that header', async () => {
    await start()
    const body = JSON.stringify({ model: 'tiny', stream: true, messages: [] })
    const client = rig
      .client()
      .send({ headers: { expect: '100-continue', 'content-length': String(body.length) } })
    await until(() => client.received.includes('100 Continue'), 'the 100')
    client.raw(body)
    const exchange = await rig.engine.nextRequest()
    expect(exchange.request.headers.expect).toBeUndefined()
    exchange.head().token().done()
    await until(() => client.received.includes('[DONE]'), 'the stream')
    await rig.settled()
  })
})

describe('a path', () => {
  it.each([
    ['/v1/nope', 'POST'],
    ['/metrics', 'GET'],
    ['/-/reload', 'POST'],
    ['/invocations', 'POST'],
    ['//v1/chat/completions', 'POST'],
    ['/V1/chat/completions', 'POST'],
    ['/v1/chat/completions.', 'POST'],
    ['/v1/chat/completions', 'GET'],
    ['/v1/chat%2fcompletions', 'POST'],
    ['/rerank', 'POST'],
  ])('%s %s is not served', async (path, method) => {
    await start()
    const client = rig.client().send({ path, method, headers: { 'content-length': '0' } })
    await client.waitStatus(404)
    await client.waitComplete()
    expect(client.json).toMatchObject({ error: { code: 'unknown_route' } })
    expect(rig.engine.requests).toHaveLength(0)
  })

  it('of another origin goes nowhere', async () => {
    await start()
    const client = rig.client()
    client.raw('GET http://evil.test/v1/models HTTP/1.1\r\nhost: evil.test\r\nconnection: close\r\n\r\n')
    await client.waitEnded()
    expect(rig.engine.requests).toHaveLength(0)
  })

  it('speaks its own dialect when it refuses', async () => {
    await start()
    const anthropic = rig.client().send({ path: '/v1/messages', body: '{' })
    const tgi = rig.client().send({ path: '/generate', body: '{' })
    await anthropic.waitComplete()
    await tgi.waitComplete()
    expect(anthropic.json).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
    expect(tgi.json).toMatchObject({ error_type: 'invalid_request_error', error: expect.any(String) })
  })

  it('of passthrough is relayed without judgement', async () => {
    await start({ settings: { passthrough: ['/rerank'] } })
    const client = rig.client().send({ path: '/rerank?k=1', body: { query: 'q' } })
    const exchange = await rig.engine.nextRequest()
    expect(exchange.path).toBe('/rerank?k=1')
    expect(exchange.json).toEqual({ query: 'q' })
    exchange.respondJson(200, { results: [] })
    await client.waitComplete()
    expect(client.json).toEqual({ results: [] })
    expect(rig.gate.counts.offered).toBe(0)
    expect(rig.told).toEqual(['success'])
  })

  it('of passthrough without a live replica is a 503 with advice', async () => {
    await start({ engines: 0, settings: { passthrough: ['/rerank'] } })
    const client = rig.client().send({ path: '/rerank', body: {} })
    await client.waitStatus(503)
    await client.waitComplete()
    expect(client.json).toMatchObject({ error: { code: 'no_replica' } })
    expect(client.headers).toMatchObject({ 'x-should-retry': 'true', 'retry-after-ms': '5625' })
  })

  it('of health answers GET and HEAD', async () => {
    await start()
    for (const method of ['GET', 'HEAD']) {
      const client = rig.client().send({ method, path: '/health', headers: { connection: 'close' } })
      await client.waitStatus(200)
    }
    await rig.client().send({ method: 'GET', path: '/readyz' }).waitStatus(200)
    const models = rig.client().send({ method: 'GET', path: '/v1/models' })
    await models.waitComplete()
    expect(models.json.data).toMatchObject([{ id: 'tiny' }, { id: 'default' }, { id: 'lora-a' }])
  })

  it('of a stored response leads to the replica that made it, for its own tenant', async () => {
    await start({ engines: 2 })
    const create = rig
      .client()
      .send({ path: '/v1/responses', body: { model: 'tiny', input: 'Hello', stream: false } })
    ;(await rig.engine.nextRequest()).respondJson(200, { id: 'resp_abc123', object: 'response' })
    await create.waitComplete()
    const read = rig.client().send({ method: 'GET', path: '/v1/responses/resp_abc123' })
    const exchange = await rig.engine.nextRequest()
    expect(exchange.path).toBe('/v1/responses/resp_abc123')
    exchange.respondJson(200, { id: 'resp_abc123' })
    await read.waitStatus(200)
    await rig.client().send({ method: 'GET', path: '/v1/responses/resp_other' }).waitStatus(404)
    await rig.settled()
  })
})

describe('a key', () => {
  const withKeys: RigOptions = {
    settings: {
      auth: { kind: 'keys' },
      classes: {
        chat: sloClass('chat'),
        batch: sloClass('batch'),
      },
      tenants: [
        { name: 'acme', keySha256: [hashOf('acme-key')], classes: ['batch'], share: 2, scheduling: false },
        { name: 'ops', keySha256: [hashOf('ops-key')], models: ['other'], scheduling: true },
      ],
    },
  }

  it('is needed, and an unknown one is refused before the body is read', async () => {
    await start(withKeys)
    const none = rig.chat()
    await none.waitStatus(401)
    const wrong = rig.chat({}, { authorization: 'Bearer wrong' })
    await wrong.waitStatus(401)
    await wrong.waitComplete()
    expect(wrong.json).toMatchObject({ error: { code: 'unauthorized', type: 'authentication_error' } })
    expect(wrong.text).not.toContain('wrong"')
    await rig.client().send({ method: 'GET', path: '/v1/models' }).waitStatus(401)
  })

  it('gives its tenant with its share and clamps the class to what it may use', async () => {
    await start(withKeys)
    const client = rig.chat({}, { authorization: 'bearer acme-key', 'x-slo-class': 'chat' })
    ;(await rig.engine.nextRequest()).head().token().done()
    await client.waitComplete()
    expect(client.headers['x-sluice-class']).toBe('batch')
    await rig.settled()
    expect(rig.settlement.offer).toMatchObject({ tenant: 'acme', tenantShare: 2, slo: { name: 'batch' } })
  })

  it('may come as x-api-key on /v1/messages and nowhere else', async () => {
    await start(withKeys)
    await rig.chat({}, { 'x-api-key': 'acme-key' }).waitStatus(401)
    const client = rig.client().send({
      path: '/v1/messages',
      headers: { 'x-api-key': 'acme-key' },
      body: { model: 'tiny', max_tokens: 5, messages: [] },
    })
    const exchange = await rig.engine.nextRequest()
    expect(exchange.request.headers['x-api-key']).toBeUndefined()
    exchange.respondJson(200, { type: 'message' })
    await client.waitStatus(200)
    await rig.settled()
  })

  it('of a tenant without that model is a 403, an unknown model a 404', async () => {
    await start(withKeys)
    await rig.chat({}, { authorization: 'Bearer ops-key' }).waitStatus(403)
    await rig.chat({ model: 'gpt-9' }, { authorization: 'Bearer acme-key' }).waitStatus(404)
  })

  it('decides whether scheduling fields of the engine are taken', async () => {
    await start()
    const client = rig.chat({ priority: -5, request_id: 'mine' }, { 'x-data-parallel-rank': '3' })
    const exchange = await rig.engine.nextRequest()
    expect(Object.keys(exchange.json).sort()).toEqual(['messages', 'model', 'stream', 'stream_options'])
    expect(exchange.request.headers['x-data-parallel-rank']).toBeUndefined()
    exchange.head().token().done()
    await client.waitComplete()
    await rig.settled()
  })
})

describe('a prompt', () => {
  it('of token ids longer than the context is refused, one that is only estimated is not', async () => {
    await start({ maxModelLenTokens: 10 })
    const ids = Array.from({ length: 11 }, (_, id) => id)
    const exact = rig.client().send({ path: '/v1/completions', body: { model: 'tiny', prompt: ids } })
    await exact.waitStatus(400)
    expect(exact.json).toMatchObject({ error: { code: 'over_context' } })
    // Each prompt of a batch has the context for itself.
    const batch = rig.client().send({
      path: '/v1/completions',
      body: { model: 'tiny', prompt: [ids.slice(1), ids.slice(2)] },
    })
    ;(await rig.engine.nextRequest()).respondJson(200, { choices: [] })
    await batch.waitStatus(200)
    const guessed = rig.chat({ messages: [{ role: 'user', content: 'x'.repeat(5000) }] })
    ;(await rig.engine.nextRequest()).head().token().done()
    await guessed.waitComplete()
    await rig.settled(2)
  })

  it.each([
    ['English', 'words '.repeat(70_000)],
    ['Chinese', '語'.repeat(150_000)],
  ])('of 100 000 tokens of %s is recognised to its end', async (_, content) => {
    await start()
    rig.chat({ messages: [{ role: 'user', content }] })
    ;(await rig.engine.nextRequest()).head().token().done()
    await rig.settled()
    const { promptTokens, prefixHashes, prefixBlockTokens } = rig.settlement.offer
    expect(promptTokens).toBeGreaterThan(100_000)
    const knownTokens = reachOf(prefixHashes.length) * prefixBlockTokens
    expect(knownTokens / promptTokens).toBeGreaterThan(0.98)
    expect(knownTokens / promptTokens).toBeLessThanOrEqual(1)
  })

  it('whose answer has a length that the client fixed is offered with it', async () => {
    await start()
    const client = rig.chat({ max_tokens: 48, ignore_eos: true })
    ;(await rig.engine.nextRequest()).head().token().done()
    await client.waitComplete()
    await rig.settled()
    expect(rig.settlement.offer).toMatchObject({ minOutputTokens: 48, maxOutputTokens: 48 })
  })

  it('keeps a request id that is in use apart', async () => {
    await start()
    const first = rig.chat({}, { 'x-request-id': 'same' })
    const one = await rig.engine.nextRequest()
    const second = rig.chat({}, { 'x-request-id': 'same' })
    const two = await rig.engine.nextRequest()
    expect(one.request.headers['x-request-id']).not.toBe(two.request.headers['x-request-id'])
    for (const exchange of [one, two]) exchange.head().token().done()
    await first.waitComplete()
    await second.waitComplete()
    expect(second.headers['x-request-id']).toBe('same')
    await rig.settled(2)
  })

  it('keeps a crowd of one request id apart, though half of it leaves', async () => {
    await start()
    const crowd = Array.from({ length: 60 }, () => rig.chat({}, { 'x-request-id': 'same' }))
    const served = [...crowd.keys()].filter((at) => at % 2 === 0)
    await until(() => rig.engine.openExchanges === crowd.length, 'all of them to be at the engine')
    for (const [at, client] of crowd.entries()) if (at % 2 === 1) client.leave()
    await until(() => rig.engine.openExchanges === served.length, 'the places of those that left to be free')
    for (let at = 0; at < crowd.length; at += 1) {
      const exchange = await rig.engine.nextRequest()
      if (!exchange.closed) exchange.head().token().done()
    }
    for (const at of served) expect((await crowd[at]?.waitComplete())?.status).toBe(200)
    await rig.settled(crowd.length)
    const outcomes = rig.settlements.map(({ outcome }) => outcome)
    expect(outcomes.filter((outcome) => outcome === 'completed')).toHaveLength(served.length)
    expect(new Set(rig.settlements.map(({ requestId }) => requestId)).size).toBe(crowd.length)
  })
})
