/** The life of a stream through the whole traffic side: held, passed on, rerouted, cut. */
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { type Rig, type RigOptions, startRig } from '../support/edge-rig.ts'
import type { ScriptedExchange } from '../support/scripted-exchange.ts'

let rig: Rig
const start = async (options: RigOptions = {}) => {
  rig = await startRig(options)
  return rig
}
afterEach(() => rig.close())

describe('a stream', () => {
  it('leaves with its first content, and each later frame at once', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().role()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(client.status).toBe(0)
    exchange.token(' one')
    await client.waitText(' one')
    expect(client.status).toBe(200)
    expect(client.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(client.headers['cache-control']).toBe('no-cache')
    expect(client.headers['x-accel-buffering']).toBe('no')
    expect(client.headers['content-length']).toBeUndefined()
    exchange.token(' two')
    await client.waitText(' two')
    exchange.finish().usage(9, 2).done()
    await client.waitComplete()
    await rig.settled()
    expect(rig.settlement).toMatchObject({
      outcome: 'completed',
      promptTokens: 9,
      outputTokens: 2,
      countedBy: 'usage',
      verdict: { kind: 'good' },
    })
  })

  it('passes bytes unchanged, with the usage frame taken out only when nobody asked', async () => {
    await start()
    const asked = rig.chat({ stream_options: { include_usage: true } })
    const first = await rig.engine.nextRequest()
    expect(first.json.stream_options).toEqual({ include_usage: true })
    first.head().role().tokens(2).finish().usage(5, 2).done()
    await asked.waitComplete()
    expect(asked.text).toContain('"completion_tokens":2')

    const unasked = rig.chat()
    const second = await rig.engine.nextRequest()
    expect(second.json.stream_options).toEqual({ include_usage: true })
    expect(second.json.model).toBe('org/tiny')
    second.cut = [3, 50, 7]
    second.head().role().tokens(2).finish().usage(5, 2).done()
    await unasked.waitComplete()
    const withoutUsage = asked.text.split('\n\n').filter((frame) => !frame.includes('completion_tokens'))
    expect(unasked.text).toBe(withoutUsage.join('\n\n'))
    await rig.settled(2)
  })

  it('tells the decision in its headers and nothing of the engine', async () => {
    await start()
    const client = rig.chat({}, { 'x-request-id': 'abc-1', authorization: 'Bearer client-secret' })
    const exchange = await rig.engine.nextRequest()
    expect(exchange.request.headers.authorization).toBe('Bearer engine-key')
    expect(exchange.request.headers['x-request-id']).toMatch(/^abc-1-/)
    expect(exchange.request.headers['accept-encoding']).toBe('identity')
    exchange.head(200, { 'x-request-id': 'theirs', server: 'uvicorn' }).token().done()
    await client.waitComplete()
    expect(client.headers).toMatchObject({
      'x-request-id': 'abc-1',
      'x-sluice-class': 'chat',
      'x-sluice-decision': 'admitted',
      'x-sluice-queue-ms': '0',
      'x-sluice-replica': 'replica-0',
    })
    expect(client.headers.server).toBeUndefined()
    await rig.settled()
  })

  it('ends as truncated when its end marker is missing, and no marker is invented', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(3).end()
    await client.waitComplete()
    expect(client.text).not.toContain('[DONE]')
    await rig.settled()
    expect(rig.settlement.outcome).toBe('truncated')
  })

  it('ends with an error event when its engine dies between two frames', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(3)
    await client.waitText(' t2')
    exchange.reset()
    await client.waitComplete()
    const last = client.text.trimEnd().split('\n\n').at(-1) ?? ''
    expect(JSON.parse(last.slice('data: '.length))).toMatchObject({ error: { code: 'upstream_failed' } })
    await rig.settled()
    expect(rig.settlement).toMatchObject({ outcome: 'truncated', attempts: 1, verdict: { kind: 'bad' } })
  })

  it('is cut, not completed, when its engine dies inside a frame', async () => {
    await start()
    const client = rig.chat({ stream_options: { include_usage: true } })
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(1).write('data: {"id":')
    await client.waitText('data: {"id":')
    exchange.reset()
    await client.waitEnded()
    expect(client.complete).toBe(false)
    await rig.settled()
    expect(rig.settlement.outcome).toBe('truncated')
  })

  it('passes an error event on after content and counts the stream as truncated', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2).error(500, 'worker died').done()
    await client.waitComplete()
    expect(client.text).toContain('worker died')
    expect(client.text).toContain('[DONE]')
    await rig.settled()
    expect(rig.settlement.outcome).toBe('truncated')
  })
})

describe('a stream that ends without its end marker', () => {
  async function ended(
    framing: 'chunked' | 'close',
    say: (exchange: ScriptedExchange) => ScriptedExchange,
    end: (exchange: ScriptedExchange) => void = (exchange) => exchange.end(),
  ): Promise<string> {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    say(exchange.head(200, {}, framing).tokens(2))
    await client.waitText(' t1')
    end(exchange)
    await until(() => client.complete || client.ended, 'the answer is over')
    expect(client.text).not.toContain('[DONE]')
    await rig.settled()
    return rig.settlement.outcome
  }

  it.each<[string, (exchange: ScriptedExchange) => ScriptedExchange]>([
    ['in a frame of its own', (exchange) => exchange.finish()],
    ['before its usage', (exchange) => exchange.finish('length').usage(5, 2)],
    [
      'with its last content',
      (exchange) =>
        exchange.frame({ choices: [{ index: 0, delta: { content: ' t2' }, finish_reason: 'stop' }] }),
    ],
  ])('is complete when its finish reason has come %s and its message is whole', async (_name, say) => {
    expect(await ended('chunked', say)).toBe('completed')
    expect(rig.settlement.verdict.kind).toBe('good')
    expect(rig.told).toEqual(['success'])
  })

  it.each<[string, 'chunked' | 'close', (exchange: ScriptedExchange) => ScriptedExchange]>([
    ['another of its choices went on behind the finish reason', 'chunked', (e) => e.finish().tokens(1)],
    ['the engine aborted it', 'chunked', (e) => e.finish('abort')],
    ['only the end of its socket ended it', 'close', (e) => e.finish()],
  ])('is truncated when %s', async (_name, framing, say) => {
    expect(await ended(framing, say)).toBe('truncated')
    expect(rig.told).toEqual(['status'])
  })

  it('is truncated when its socket ends before its message does', async () => {
    const outcome = await ended(
      'chunked',
      (exchange) => exchange.finish(),
      (exchange) => exchange.fin(),
    )
    expect(outcome).toBe('truncated')
  })
})

describe('a stream whose end marker has come', () => {
  it.each<[string, (exchange: ScriptedExchange) => void]>([
    ['is reset', (exchange) => exchange.reset()],
    ['is closed without its last chunk', (exchange) => exchange.fin()],
    ['is never ended', () => {}],
  ])('and that then %s is complete, and its engine is not blamed', async (_name, after) => {
    await start({ settings: { timeouts: { betweenBytesMs: 150 } } })
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2).finish().usage(5, 2).frame('[DONE]')
    await client.waitText('[DONE]')
    after(exchange)
    await client.waitComplete()
    await exchange.waitClosed()
    expect(client.text).toMatch(/data: \[DONE\]\n\n$/)
    await rig.settled()
    expect(rig.settlement).toMatchObject({ outcome: 'completed', outputTokens: 2, verdict: { kind: 'good' } })
    expect(rig.told).toEqual(['success'])
  })

  it('and whose client then goes is complete', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2).frame('[DONE]')
    await client.waitText('[DONE]')
    client.leave()
    await exchange.waitClosed()
    await rig.settled()
    expect(rig.settlement.outcome).toBe('completed')
  })

  it('after an error event is as broken as that said', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2).error(500, 'worker died').frame('[DONE]')
    await client.waitText('[DONE]')
    exchange.reset()
    await client.waitComplete()
    await rig.settled()
    expect(rig.settlement.outcome).toBe('truncated')
    expect(rig.told).toEqual(['status'])
  })
})

describe('a breaker', () => {
  async function toldBy(end: (exchange: ScriptedExchange) => void): Promise<string[]> {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2)
    await client.waitText(' t1')
    end(exchange)
    await rig.settled()
    return rig.told
  }

  it.each<[string, string, (exchange: ScriptedExchange) => void]>([
    ['an error event', 'status', (exchange) => exchange.error(500, 'worker died').done()],
    ['a missing end marker', 'status', (exchange) => exchange.end()],
    ['a cut', 'reset', (exchange) => exchange.reset()],
    ['an error event and a cut', 'status', (exchange) => exchange.error(500, 'worker died').reset()],
  ])('hears that a stream broke after content, once, and no good of it: %s', async (_, cause, end) => {
    expect(await toldBy(end)).toEqual([cause])
  })

  it('hears nothing before the end, since a stream may break after content', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2)
    await client.waitText(' t1')
    expect(rig.told).toEqual([])
    exchange.done()
    await rig.settled()
    expect(rig.told).toEqual(['success'])
  })

  it('hears of an error event in the very piece that brought the first content', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    const token = { choices: [{ index: 0, delta: { content: 'x' } }] }
    const error = { error: { message: 'worker died', type: 'InternalServerError', code: 500 } }
    exchange
      .head()
      .write(`data: ${JSON.stringify(token)}\n\ndata: ${JSON.stringify(error)}\n\n`)
      .done()
    await client.waitComplete()
    await rig.settled()
    expect(rig.told).toEqual(['status'])
  })

  it("hears nothing bad of a stream that ran to its end, nor of a client's own error", async () => {
    expect(await toldBy((exchange) => exchange.done())).toEqual(['success'])
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2)
    await client.waitText(' t1')
    exchange.error(400, 'invalid request').done()
    await rig.settled(2)
    expect(rig.told).toEqual(['success', 'success'])
  })

  it('hears nothing bad when the client leaves', async () => {
    await start()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2)
    await client.waitText(' t1')
    client.leave()
    await rig.settled()
    expect(rig.settlement.outcome).toBe('client_left')
    expect(rig.told).toEqual(['success'])
  })
})

describe('a reroute', () => {
  it.each([
    [
      '503',
      (e: Awaited<ReturnType<Rig['engine']['nextRequest']>>) =>
        e.respondJson(503, { error: { message: 'currently busy', type: 'Service Unavailable', code: 503 } }),
      'engine_full',
    ],
    [
      '500',
      (e: Awaited<ReturnType<Rig['engine']['nextRequest']>>) =>
        e.respondJson(500, { error: { message: 'boom', type: 'InternalServerError', code: 500 } }),
      'engine_error',
    ],
    [
      'a full error inside a 200',
      (e: Awaited<ReturnType<Rig['engine']['nextRequest']>>) =>
        e.head().error(503, 'currently busy', 'Service Unavailable').done(),
      'engine_full',
    ],
    [
      'a reset before content',
      (e: Awaited<ReturnType<Rig['engine']['nextRequest']>>) => {
        e.head().role()
        e.reset()
      },
      'reset',
    ],
    [
      'an end before content',
      (e: Awaited<ReturnType<Rig['engine']['nextRequest']>>) => e.head().role().end(),
      'reset',
    ],
  ])('follows %s, and the client sees a good answer only', async (_name, fail, cause) => {
    await start({ engines: 2 })
    const client = rig.chat()
    fail(await rig.engine.nextRequest())
    const second = await rig.engines[1]?.nextRequest()
    expect(second?.json.messages).toEqual([{ role: 'user', content: 'Hello' }])
    second?.head().role().token(' fine').done()
    await client.waitComplete()
    expect(client.status).toBe(200)
    expect(client.text).not.toContain('error')
    expect(client.headers['x-sluice-decision']).toBe('rerouted')
    expect(client.headers['x-sluice-replica']).toBe('replica-1')
    expect(rig.bounces).toEqual([`r0 ${cause}`])
    await rig.settled()
    expect(rig.settlement).toMatchObject({ outcome: 'completed', attempts: 2 })
  })

  it('happens once: a second failure is a 502 that may be retried', async () => {
    await start({ engines: 2 })
    const client = rig.chat()
    for (const engine of rig.engines) (await engine.nextRequest()).reset()
    await client.waitStatus(502)
    await client.waitComplete()
    expect(client.json).toMatchObject({ error: { code: 'upstream_failed', type: 'upstream_error' } })
    expect(client.headers['x-should-retry']).toBe('true')
    await rig.settled()
    expect(rig.settlement).toMatchObject({ outcome: 'upstream_failed', attempts: 2 })
  })

  it('that fails too names no address of an engine', async () => {
    await start({ engines: 2 })
    await Promise.all(rig.engines.map((engine) => engine.close()))
    const client = rig.chat()
    await client.waitStatus(502)
    await client.waitComplete()
    expect(client.json).toMatchObject({
      error: { message: expect.stringMatching(/^replica-\d: connect ECONNREFUSED$/) },
    })
    await rig.settled()
  })

  it("never follows the client's own mistake, which is passed on unchanged", async () => {
    await start({ engines: 2 })
    const client = rig.chat({ temperature: -1 })
    const answer = {
      error: { message: 'temperature must be non-negative', type: 'BadRequestError', param: null, code: 400 },
    }
    ;(await rig.engine.nextRequest()).respondJson(400, answer)
    await client.waitStatus(400)
    await client.waitComplete()
    expect(client.json).toEqual(answer)
    await rig.settled()
    expect(rig.settlement).toMatchObject({ outcome: 'client_error', verdict: { kind: 'excluded' } })
  })
})

describe('an answer that does not stream', () => {
  it('comes whole, with its own length and its usage counted', async () => {
    await start()
    const client = rig.chat({ stream: false })
    const exchange = await rig.engine.nextRequest()
    expect(exchange.json.stream_options).toBeUndefined()
    const answer = {
      id: 'x',
      choices: [{ message: { content: 'hi' } }],
      usage: { prompt_tokens: 4, completion_tokens: 7 },
    }
    exchange.respondJson(200, answer)
    await client.waitComplete()
    expect(client.body.toString()).toBe(JSON.stringify(answer))
    expect(client.headers['content-length']).toBe(String(client.body.length))
    await rig.settled()
    expect(rig.settlement).toMatchObject({ outcome: 'completed', promptTokens: 4, outputTokens: 7 })
    expect(rig.settlement.ttftMs).toBeUndefined()
  })

  it('is passed on as it comes when it is bigger than what is held', async () => {
    await start()
    const client = rig.client().send({ path: '/v1/embeddings', body: { model: 'tiny', input: 'text' } })
    const exchange = await rig.engine.nextRequest()
    const big = JSON.stringify({ data: 'x'.repeat(3_000_000) })
    exchange.respond(200, big, { 'content-type': 'application/json' })
    await client.waitComplete()
    expect(client.body.toString()).toBe(big)
    await rig.settled()
    expect(rig.settlement.outcome).toBe('completed')
  })
})

describe('a heartbeat', () => {
  it('keeps a silent stream alive with one comment line, and a later refusal is an error event', async () => {
    await start({ settings: { timeouts: { heartbeatAfterMs: 50 } } })
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    await client.waitText(': sluice\n')
    expect(client.status).toBe(200)
    expect(client.text).not.toContain('\n\n')
    exchange.respondJson(400, { error: { message: 'too long', type: 'BadRequestError', code: 400 } })
    await client.waitComplete()
    expect(client.text).toMatch(/(: sluice\n)+data: \{"error":\{"message":"too long"/)
    await rig.settled()
    expect(rig.settlement.outcome).toBe('client_error')
  })

  it('does not end the right to a reroute', async () => {
    await start({ engines: 2, settings: { timeouts: { heartbeatAfterMs: 50 } } })
    const client = rig.chat()
    const first = await rig.engine.nextRequest()
    await client.waitText(': sluice\n')
    first.reset()
    ;(await rig.engines[1]?.nextRequest())?.head().token(' fine').done()
    await client.waitComplete()
    expect(client.text).toContain(' fine')
    await rig.settled()
  })

  it('is never put inside a frame', async () => {
    await start({ settings: { timeouts: { heartbeatAfterMs: 50 } } })
    const client = rig.chat({ stream_options: { include_usage: true } })
    const exchange = await rig.engine.nextRequest()
    exchange.head().token(' one').write('data: {"half":')
    await client.waitText('{"half":')
    await new Promise((resolve) => setTimeout(resolve, 300))
    exchange.write('1}\n\n')
    await client.waitText('data: {"half":1}\n\n')
    await client.waitText(': sluice\n')
    exchange.done()
    await client.waitComplete()
    await rig.settled()
  })
})

describe('a limit', () => {
  it('ends a replica that says nothing, without a second attempt', async () => {
    await start({ engines: 2, settings: { timeouts: { firstByteMs: 150 } } })
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head()
    await client.waitStatus(504)
    await client.waitComplete()
    expect(client.headers['x-should-retry']).toBe('false')
    await exchange.waitClosed()
    await rig.settled()
    expect(rig.settlement).toMatchObject({ outcome: 'upstream_timeout', attempts: 1 })
  })

  it('ends a stream that falls silent', async () => {
    await start({ settings: { timeouts: { betweenBytesMs: 150 } } })
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().tokens(2)
    await client.waitComplete()
    expect(client.text).toContain('upstream_timeout')
    await exchange.waitClosed()
    await rig.settled()
    expect(rig.settlement.outcome).toBe('truncated')
  })

  it('takes comments of the engine for a sign of life', async () => {
    await start({ settings: { timeouts: { firstByteMs: 300 } } })
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head()
    for (let beat = 0; beat < 6; beat++) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      exchange.comment()
    }
    exchange.token(' late').done()
    await client.waitComplete()
    expect(client.text).toContain(' late')
    await rig.settled()
  })

  it('ends a request that takes longer than limits.request', async () => {
    await start({ settings: { limits: { requestMs: 200 } } })
    const client = rig.chat({ stream: false })
    const exchange = await rig.engine.nextRequest()
    await client.waitStatus(504)
    await exchange.waitClosed()
    await rig.settled()
  })
})

describe('a slow reader', () => {
  /** Above what the kernel's buffers on the way to a client take (3.9 MiB by Linux's defaults); all else must wait at the engine. */
  const ON_THE_WAY_BYTES = 16 * 1024 * 1024
  const frame = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(60 * 1024) } }] })}\n\n`

  /** What has come from the engine when nothing more comes. */
  async function stalledAtBytes(): Promise<number> {
    let seenBytes = -1
    await until(() => rig.upstreamBytes > 0, 'the first bytes')
    while (seenBytes !== rig.upstreamBytes) {
      seenBytes = rig.upstreamBytes
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    return seenBytes
  }

  it('pauses its replica, keeps our memory small and is flagged', async () => {
    await start()
    const client = rig.chat({}, { connection: 'close' }).stall()
    const exchange = await rig.engine.nextRequest()
    const frames = 700
    exchange.head()
    for (let sent = 0; sent < frames; sent++) exchange.write(frame)
    expect(await stalledAtBytes()).toBeLessThan(ON_THE_WAY_BYTES)
    client.read()
    exchange.done()
    await client.waitEnded('the whole stream', 15_000)
    expect(client.complete).toBe(true)
    expect(client.body.length).toBe(frames * frame.length + 'data: [DONE]\n\n'.length)
    await rig.settled()
    expect(rig.settlement.verdict.cause).toBe('slow_reader')
  })

  it('costs no more memory when it has asked for five times as much', async () => {
    await start()
    const client = rig.chat().stall()
    const exchange = await rig.engine.nextRequest()
    exchange.head()
    // The same bytes again and again, so that 200 MiB take none of the engine's own memory.
    const chunk = Buffer.from(`${frame.length.toString(16)}\r\n${frame}\r\n`)
    for (let sentBytes = 0; sentBytes < 200 * 1024 * 1024; sentBytes += chunk.length) exchange.raw(chunk)
    expect(await stalledAtBytes()).toBeLessThan(ON_THE_WAY_BYTES)
    client.leave()
    await exchange.waitClosed()
    await rig.settled()
    expect(rig.settlement.outcome).toBe('client_left')
  })

  it('that stands still for too long loses its place', async () => {
    await start({ settings: { timeouts: { betweenBytesMs: 200 } } })
    const client = rig.chat()
    client.socket.pause()
    const exchange = await rig.engine.nextRequest()
    exchange.head()
    const text = 'x'.repeat(256 * 1024)
    for (let sent = 0; sent < 60; sent++) exchange.token(text)
    await exchange.waitClosed()
    await rig.settled()
    expect(rig.settlement.outcome).toBe('client_left')
    await until(() => rig.edge.underWay === 0, 'the story to end')
  })
})
