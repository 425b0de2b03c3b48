/** Sockets to one replica, against a scripted engine: faults named, limits kept, nothing left open. */
import { type AddressInfo, createServer, Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Connection } from '../../src/upstream/connection.ts'
import type { OpenRequest, UpstreamFault, UpstreamStream } from '../../src/upstream/ports.ts'
import { deferred, until, within } from '../support/deadline.ts'
import { FullBacklog } from '../support/full-backlog.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { type ScriptedEngine, scriptedEngine } from '../support/scripted-engine.ts'

/** A handler that records, and can be waited for. */
class Record_ {
  status: number | undefined
  readonly chunks: Buffer[] = []
  readonly ended = deferred<UpstreamFault | 'end'>()
  readonly headed = deferred<number>()
  calls = 0
  onHeaders(status: number): void {
    this.status = status
    this.headed.resolve(status)
  }
  onBytes(bytes: Uint8Array): void {
    this.chunks.push(Buffer.from(bytes))
  }
  onEnd(): void {
    this.calls += 1
    this.ended.resolve('end')
  }
  onFault(fault: UpstreamFault): void {
    this.calls += 1
    this.ended.resolve(fault)
  }
  get text(): string {
    return Buffer.concat(this.chunks).toString('utf8')
  }
  outcome(label: string): Promise<UpstreamFault | 'end'> {
    return within(this.ended.promise, label)
  }
}

function post(body: string | readonly Uint8Array[] = '{}', over: Partial<OpenRequest> = {}): OpenRequest {
  return {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? [Buffer.from(body)] : body,
    firstByteTimeoutMs: 10_000,
    betweenBytesTimeoutMs: 10_000,
    ...over,
  }
}

let engine: ScriptedEngine
let connection: Connection
let clock: ManualClock

beforeEach(async () => {
  engine = await scriptedEngine()
  clock = new ManualClock()
  connection = new Connection({ url: engine.url, connectTimeoutMs: 1000 }, clock)
})
afterEach(async () => {
  await connection.close()
  await until(() => connection.openSockets === 0, 'every upstream socket is closed')
  expect(connection.inFlight).toBe(0)
  expect(clock.pending).toBe(0)
  await engine.close()
})

function open(request = post()): { readonly record: Record_; readonly stream: UpstreamStream } {
  const record = new Record_()
  return { record, stream: connection.open(request, record) }
}

describe('an exchange', () => {
  it('passes headers, bytes and end on, chunk framing removed', async () => {
    const { record } = open(post('{"a":1}'))
    const exchange = await engine.nextRequest()
    expect(exchange.request.body.toString()).toBe('{"a":1}')
    expect(exchange.request.headers['content-length']).toBe('7')
    expect(exchange.request.headers['accept-encoding']).toBe('identity')
    exchange.head().role().token('hi').done()
    expect(await record.outcome('the end')).toBe('end')
    expect(record.status).toBe(200)
    expect(record.text).toContain('"content":"hi"')
    expect(record.text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(record.calls).toBe(1)
  })

  it('sends a body of many pieces, small or large, as one', async () => {
    for (const size of [10, 400_000]) {
      const pieces = [Buffer.alloc(size, 'a'), Buffer.alloc(size, 'b'), Buffer.alloc(3, 'c')]
      const { record } = open(post(pieces))
      const exchange = await engine.nextRequest()
      expect(exchange.request.body.equals(Buffer.concat(pieces))).toBe(true)
      exchange.respondJson(200, {})
      expect(await record.outcome('the end')).toBe('end')
    }
  })

  it('sends the key of its replica and puts the path of its url first', async () => {
    const keyed = new Connection(
      { url: `${engine.url}/base/`, key: 'sk-engine', connectTimeoutMs: 1000 },
      clock,
    )
    const record = new Record_()
    keyed.open(post('{}', { headers: { authorization: 'Bearer client' } }), record)
    const exchange = await engine.nextRequest()
    expect(exchange.path).toBe('/base/v1/chat/completions')
    expect(exchange.request.headers.authorization).toBe('Bearer sk-engine')
    exchange.respondJson(200, {})
    await record.outcome('the end')
    await keyed.close()
  })

  it('never lets a small piece wait for an acknowledgement of the one before', async () => {
    const noDelay = vi.spyOn(Socket.prototype, 'setNoDelay')
    const { record } = open()
    ;(await engine.nextRequest()).respondJson(200, {})
    await record.outcome('the end')
    const ours = noDelay.mock.contexts.filter((socket) => (socket as Socket).remotePort === engine.port)
    expect(ours).toHaveLength(1)
    noDelay.mockRestore()
  })

  it('uses a kept-alive socket again', async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      const { record } = open()
      ;(await engine.nextRequest()).respondJson(200, {})
      await record.outcome('the end')
    }
    expect(engine.connections).toBe(1)
    expect(connection.openSockets).toBe(1)
  })
})

describe('a fault', () => {
  it('says refused, and that nothing was sent, when nobody listens', async () => {
    await engine.close()
    const { record } = open()
    expect(await record.outcome('the fault')).toMatchObject({
      phase: 'connect',
      cause: 'refused',
      sent: false,
    })
    expect(record.calls).toBe(1)
  })

  it('says reset in the headers on a fresh socket, without a second attempt', async () => {
    const { record } = open()
    ;(await engine.nextRequest()).reset()
    expect(await record.outcome('the fault')).toMatchObject({ phase: 'headers', cause: 'reset', sent: true })
    expect(engine.requests).toHaveLength(1)
  })

  it('says reset in the body when the engine dies or closes in mid-stream', async () => {
    for (const end of ['reset', 'fin'] as const) {
      const { record } = open()
      const exchange = await engine.nextRequest()
      exchange.head().token()
      await until(() => record.chunks.length > 0, 'the first chunk is here')
      exchange[end]()
      expect(await record.outcome('the fault')).toMatchObject({ phase: 'body', cause: 'reset', sent: true })
    }
  })

  it('says protocol when the answer is no HTTP', async () => {
    const { record } = open()
    ;(await engine.nextRequest()).raw('SSH-2.0-nonsense\r\n')
    expect(await record.outcome('the fault')).toMatchObject({ phase: 'headers', cause: 'protocol' })
  })

  it('names the limit when no body byte comes, though headers came at once', async () => {
    const { record } = open(post('{}', { firstByteTimeoutMs: 500 }))
    const exchange = await engine.nextRequest()
    exchange.head()
    await within(record.headed.promise, 'the headers')
    clock.advance(400)
    expect(record.calls).toBe(0)
    clock.advance(200)
    const fault = await record.outcome('the fault')
    expect(fault).toMatchObject({ phase: 'body', cause: 'timeout', sent: true })
    expect((fault as UpstreamFault).message).toContain('timeouts.first_byte')
    await exchange.waitClosed()
  })

  it('names the limit when the stream falls silent', async () => {
    const { record } = open(post('{}', { betweenBytesTimeoutMs: 500 }))
    const exchange = await engine.nextRequest()
    exchange.head().token()
    await until(() => record.chunks.length > 0, 'the first chunk is here')
    clock.advance(400)
    exchange.comment()
    await until(() => record.chunks.length > 1, 'the comment is here')
    clock.advance(500)
    expect(record.calls).toBe(0)
    clock.advance(200)
    const fault = await record.outcome('the fault')
    expect((fault as UpstreamFault).message).toContain('timeouts.between_bytes')
    await exchange.waitClosed()
  })
})

describe('a time-out of the library underneath', () => {
  it('cuts neither an answer that begins late nor one that pauses: the limits are the caller’s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    try {
      const { record } = open(post('{}', { firstByteTimeoutMs: 900_000, betweenBytesTimeoutMs: 900_000 }))
      await until(() => engine.openExchanges === 1, 'the request')
      vi.advanceTimersByTime(310_000)
      const exchange = await engine.nextRequest()
      exchange.head().token('first')
      await until(() => record.chunks.length > 0 || record.calls > 0, 'the first chunk')
      vi.advanceTimersByTime(310_000)
      exchange.done()
      await until(() => record.calls > 0, 'the end')
      expect(record.text).toMatch(/first[\s\S]*\[DONE\]/)
    } finally {
      vi.useRealTimers()
    }
    expect(engine.requests).toHaveLength(1)
  })
})

describe('an engine that answers before it has read the body', () => {
  it.each(['destroy', 'resetAndDestroy'] as const)('and then goes by %s is heard', async (go) => {
    const hasty = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.pause()
        socket.write('HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 7\r\n\r\ntoo big', () =>
          setImmediate(() => socket[go]()),
        )
      })
    })
    const listening = deferred()
    hasty.listen(0, '127.0.0.1', listening.resolve)
    await within(listening.promise, 'the hasty engine to listen')
    const { port } = hasty.address() as AddressInfo
    const other = new Connection({ url: `http://127.0.0.1:${port}`, connectTimeoutMs: 1000 }, clock)
    const record = new Record_()
    other.open(post([Buffer.alloc(16 * 1024 * 1024)]), record)
    expect(await record.outcome('the answer')).toBe('end')
    expect([record.status, record.text]).toEqual([413, 'too big'])
    await other.close()
    hasty.close()
  })
})

describe('a connection that is neither taken nor refused', () => {
  it('is given up after the connect limit, with nothing sent', async () => {
    const backlog = await FullBacklog.open()
    const full = new Connection({ url: backlog.url, connectTimeoutMs: 100 }, clock)
    const record = new Record_()
    full.open(post(), record)
    clock.advance(99)
    expect(record.calls).toBe(0)
    clock.advance(1)
    expect(await record.outcome('the fault')).toMatchObject({
      phase: 'connect',
      cause: 'timeout',
      sent: false,
    })
    await full.close()
    await backlog.close()
  })
})

describe('a connection that stands when its limit is over', () => {
  it('is used, though a loop held up until then had not heard of it', async () => {
    const { record } = open()
    clock.advance(1000)
    const exchange = await engine.nextRequest()
    exchange.respondJson(200, {})
    expect(await record.outcome('the end')).toBe('end')
  })
})

describe('an idle socket closed under a request', () => {
  it('costs one attempt on a fresh socket, unseen', async () => {
    const first = open()
    ;(await engine.nextRequest()).respondJson(200, {})
    await first.record.outcome('the end')
    const { record } = open()
    ;(await engine.nextRequest('the first attempt')).reset()
    const again = await engine.nextRequest('the second attempt')
    again.respondJson(200, { ok: true })
    expect(await record.outcome('the end')).toBe('end')
    expect(record.text).toBe('{"ok":true}')
    expect(connection.retries).toBe(1)
    expect(engine.connections).toBe(2)
  })

  it('is not retried twice, nor after a byte of the answer', async () => {
    const first = open()
    ;(await engine.nextRequest()).respondJson(200, {})
    await first.record.outcome('the end')
    const second = open()
    ;(await engine.nextRequest()).reset()
    ;(await engine.nextRequest()).reset()
    expect(await second.record.outcome('the fault')).toMatchObject({ cause: 'reset', sent: true })
    const third = open()
    ;(await engine.nextRequest()).respondJson(200, {})
    await third.record.outcome('the end')
    const fourth = open()
    const exchange = await engine.nextRequest()
    exchange.head()
    await within(fourth.record.headed.promise, 'the headers')
    exchange.reset()
    expect(await fourth.record.outcome('the fault')).toMatchObject({ phase: 'body', cause: 'reset' })
    expect(engine.requests).toHaveLength(5)
  })
})

describe('a late reset on a used socket', () => {
  it('is not retried, since the engine had begun to work', async () => {
    const first = open()
    ;(await engine.nextRequest()).respondJson(200, {})
    await first.record.outcome('the end')
    const { record } = open()
    const exchange = await engine.nextRequest()
    clock.advance(1500)
    exchange.reset()
    expect(await record.outcome('the fault')).toMatchObject({ phase: 'headers', cause: 'reset', sent: true })
    expect(engine.requests).toHaveLength(2)
  })
})

describe('abort', () => {
  it('closes the upstream socket in each phase and tells of it once', async () => {
    const waiting = open()
    const first = await engine.nextRequest()
    waiting.stream.abort()
    waiting.stream.abort()
    expect(await waiting.record.outcome('the fault')).toMatchObject({ cause: 'aborted', phase: 'headers' })
    await first.waitClosed()

    const streaming = open()
    const second = await engine.nextRequest()
    second.head().token()
    await until(() => streaming.record.chunks.length > 0, 'the first chunk is here')
    streaming.stream.abort()
    expect(await streaming.record.outcome('the fault')).toMatchObject({ cause: 'aborted', phase: 'body' })
    await second.waitClosed()
    expect(engine.aborts).toBe(2)
    expect([waiting.record.calls, streaming.record.calls]).toEqual([1, 1])
  })

  it('works before the socket is connected', async () => {
    const { record, stream } = open()
    stream.abort()
    expect(await record.outcome('the fault')).toMatchObject({
      cause: 'aborted',
      phase: 'connect',
      sent: false,
    })
    await until(() => connection.openSockets === 0, 'the socket is closed')
  })
})

describe('back-pressure', () => {
  it('stops reading while paused and goes on without loss', async () => {
    const { record, stream } = open(post('{}', { betweenBytesTimeoutMs: 1000 }))
    const exchange = await engine.nextRequest()
    exchange.head().token('first')
    await until(() => record.chunks.length > 0, 'the first chunk is here')
    stream.pause()
    const piece = Buffer.alloc(64 * 1024, 'x')
    for (let index = 0; index < 64; index += 1) exchange.write(piece)
    exchange.end()
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    // The silence limit must not run while we are the slow ones.
    clock.advance(60_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(record.calls).toBe(0)
    expect(record.text.length).toBeLessThan(1 << 20)
    stream.resume()
    expect(await record.outcome('the end')).toBe('end')
    expect(record.text.length).toBeGreaterThanOrEqual(64 * 64 * 1024)
  })
})

describe('an engine gone without closing its sockets', () => {
  it('has its silent exchanges broken off, the others not', async () => {
    const { record } = open()
    const exchange = await engine.nextRequest()
    exchange.head().token()
    await until(() => record.chunks.length > 0, 'the first chunk is here')
    clock.advance(1000)
    expect(connection.breakOffSilent(2000, 'gone')).toBe(0)
    clock.advance(1500)
    expect(connection.breakOffSilent(2000, 'gone')).toBe(1)
    expect(await record.outcome('the fault')).toMatchObject({
      cause: 'silent',
      phase: 'body',
      message: 'gone',
    })
    await exchange.waitClosed()
  })
})

describe('an idle socket', () => {
  async function answered(headers: Record<string, string> = {}): Promise<void> {
    const { record } = open()
    ;(await engine.nextRequest()).respond(200, '{}', headers)
    await record.outcome('the end')
  }

  it('is closed before its engine closes it, and sooner when that says so', async () => {
    await answered()
    clock.advance(3999)
    expect(connection.openSockets).toBe(1)
    clock.advance(1)
    await until(() => connection.openSockets === 0, 'the idle socket is closed')
    await answered({ 'keep-alive': 'timeout=3, max=100' })
    clock.advance(2000)
    await until(() => connection.openSockets === 0, 'the idle socket is closed sooner')
  })

  it('is not kept at all when its engine says so', async () => {
    await answered({ connection: 'close' })
    await answered({ 'keep-alive': 'timeout=1' })
    await until(() => connection.openSockets === 0, 'both are closed')
    expect(engine.connections).toBe(2)
  })

  it('on which bytes come unasked is closed, and they begin no answer', async () => {
    const first = open()
    const exchange = await engine.nextRequest()
    exchange.respondJson(200, {})
    await first.record.outcome('the end')
    exchange.raw('HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled')
    await until(() => connection.openSockets === 0, 'the socket is closed')
    const { record } = open()
    ;(await engine.nextRequest()).respondJson(200, { fine: true })
    await record.outcome('the end')
    expect(record.text).toBe('{"fine":true}')
  })
})

describe('a request that would be another one', () => {
  it.each<[string, Partial<OpenRequest>]>([
    ['a header value with a line end', { headers: { 'x-a': 'b\r\nx-c: d' } }],
    ['a header name with a space', { headers: { 'x a': 'b' } }],
    ['a header value beyond Latin-1', { headers: { 'x-a': '\u20ac' } }],
    ['a path with a space', { path: '/v1/models HTTP/1.1' }],
    ['a path with a line end', { path: '/v1\r\nx-a: b' }],
  ])('by %s is not sent', async (_name, over) => {
    const { record } = open(post('{}', over))
    expect(await record.outcome('the fault')).toMatchObject({
      phase: 'connect',
      cause: 'protocol',
      sent: false,
    })
    expect(engine.requests).toHaveLength(0)
    expect(connection.openSockets).toBe(0)
  })
})

describe('a replica behind TLS', () => {
  it('whose certificate nobody vouches for gets nothing of the request', async () => {
    const plain = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', (hello) => {
        // The first byte of a TLS handshake, and no request in the clear.
        expect(hello[0]).toBe(22)
        socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
      })
    })
    const listening = deferred()
    plain.listen(0, '127.0.0.1', listening.resolve)
    await within(listening.promise, 'the plain engine to listen')
    const { port } = plain.address() as AddressInfo
    const secure = new Connection({ url: `https://127.0.0.1:${port}`, connectTimeoutMs: 1000 }, clock)
    const record = new Record_()
    secure.open(post(), record)
    expect(await record.outcome('the fault')).toMatchObject({ phase: 'connect', sent: false })
    await secure.close()
    plain.close()
  })
})
