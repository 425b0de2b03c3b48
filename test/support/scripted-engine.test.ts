/** The scripted engine and the raw client do what their switches say, or no test that leans on them proves anything. */
import { connect } from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { until } from './deadline.ts'
import { play } from './engine-script.ts'
import { FullBacklog } from './full-backlog.ts'
import { RawClient } from './raw-client.ts'
import { type ScriptedEngine, scriptedEngine, vllmPage } from './scripted-engine.ts'

let engine: ScriptedEngine
beforeEach(async () => {
  engine = await scriptedEngine()
})
afterEach(() => {
  vi.useRealTimers()
  return engine.close()
})

const ask = (body: object = {}) => new RawClient(engine.port).send({ body })
const frames = (text: string) => text.split(/\r\n\r\n|\n\n/).filter((frame) => frame !== '')

/** Of the script's timers, which the test turns. */
const WAIT_MS = 1000

/** Another request and its answer, by which time all is there that was sent before. */
const roundTrip = () => new RawClient(engine.port).send({ method: 'GET', path: '/v1/models' }).waitStatus(200)

/** All but the last millisecond of the wait, and what came in it. */
async function almostAll(): Promise<void> {
  await until(() => engine.requests.length === 1, 'the request')
  vi.advanceTimersByTime(WAIT_MS - 1)
  await roundTrip()
}

describe('a played script', () => {
  it('sends role, tokens, usage and end, in any style, cut in any way, as the same text', async () => {
    const body = { stream_options: { include_usage: true } }
    const texts: string[] = []
    for (const cut of ['whole', 'bytes', [3, 50]] as const) {
      engine.on('/v1/chat/completions', play({ cut, commentEvery: 2, style: { ids: true } }))
      texts.push((await ask(body).waitComplete()).text)
    }
    expect(new Set(texts).size).toBe(1)
    const said = frames(texts[0] ?? '')
    expect(said).toHaveLength(1 + 3 + 2 + 1 + 1 + 1)
    expect(said.at(0)).toMatch(/^id: 1\ndata: \{.*"role":"assistant"/)
    expect(said.at(-2)).toContain('"completion_tokens":3')
    expect(said.at(-1)).toBe('id: 7\ndata: [DONE]')
    const style = { lineEnd: '\r\n', space: '', twoLines: true } as const
    engine.on('/v1/chat/completions', play({ style, usage: 'continuous', tokensPerFrame: 4 }))
    const odd = (await ask().waitComplete()).text
    expect(odd).toMatch(/^data:\{\r\ndata:"id"/)
    expect(odd).toContain('"completion_tokens":12')
  })

  it.each([
    ['reasoning', '"reasoning":" t0"'],
    ['reasoning_content', '"reasoning_content":" t0"'],
    ['tool_call', '"name":"look_up"'],
  ] as const)('has tokens of kind %s', async (kind, text) => {
    engine.on('/v1/chat/completions', play({ kind, role: false, usage: 'none' }))
    const client = await ask().waitComplete()
    expect(client.text).toContain(text)
    expect(client.text).not.toContain('role')
  })

  it.each([
    ['no_done', true],
    ['error', true],
    ['fin', false],
    ['reset', false],
  ] as const)('ends with %s', async (end, complete) => {
    engine.on('/v1/chat/completions', play({ end, betweenTokensMs: 1 }))
    const client = ask()
    await until(() => client.complete || client.ended, 'the end')
    expect(client.complete).toBe(complete)
    expect(client.text.includes('[DONE]')).toBe(end === 'error')
    expect(client.text.includes('worker died')).toBe(end === 'error')
  })

  it('that hangs sends its frames and nothing more', async () => {
    engine.on('/v1/chat/completions', play({ end: 'hang' }))
    const client = await ask().waitText(' t2')
    await roundTrip()
    expect(frames(client.text)).toHaveLength(4)
    expect([client.complete, client.ended]).toEqual([false, false])
    client.leave()
  })

  it.each([
    ['before its headers', play({ headersAfterMs: WAIT_MS }), 0],
    ['before its first token', play({ firstTokenAfterMs: WAIT_MS }), 200],
  ])('waits %s', async (_place, answer, status) => {
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    engine.on('/v1/chat/completions', answer)
    const client = ask()
    await almostAll()
    expect([client.status, client.text]).toEqual([status, ''])
    vi.advanceTimersByTime(1)
    expect(frames((await client.waitComplete()).text)).toHaveLength(6)
  })

  it('ends its lines with CR alone where told', async () => {
    engine.on('/v1/chat/completions', play({ style: { lineEnd: '\r' } }))
    const { text } = await ask().waitComplete()
    expect(text).not.toContain('\n')
    expect(text.split('\r\r')).toHaveLength(6 + 1)
  })

  it('leaves in one write, or compressed as it goes', async () => {
    engine.on('/v1/chat/completions', play({ together: true }))
    expect(frames((await ask().waitComplete()).text)).toHaveLength(6)
    engine.on('/v1/chat/completions', play({ gzip: true }))
    const client = await ask().waitComplete()
    expect(client.headers['content-encoding']).toBe('gzip')
    expect(frames(gunzipSync(client.body).toString())).toHaveLength(6)
  })
})

describe('the engine', () => {
  it.each([
    ['/metrics', () => engine.page('late', { delayMs: WAIT_MS }), 200],
    ['/health', () => engine.health(503, { delayMs: WAIT_MS }), 503],
  ])('has a page %s that is slow, and of any status', async (path, set, status) => {
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    set()
    const client = new RawClient(engine.port).send({ method: 'GET', path })
    await almostAll()
    expect(client.receivedBytes).toBe(0)
    vi.advanceTimersByTime(1)
    await client.waitStatus(status)
  })

  it('sends one frame as large as told', async () => {
    const client = ask()
    ;(await engine.nextRequest()).head().huge(300_000).done()
    const [frame = ''] = frames((await client.waitComplete()).text)
    expect(frame.length).toBeGreaterThan(300_000)
    expect(frame.length).toBeLessThan(301_000)
  })

  it('records aborts, peak, duplicates and bytes', async () => {
    const clients = [ask({ a: 1 }), ask({ a: 1 }), ask({ a: 2 })]
    for (const _ of clients) await engine.nextRequest()
    for (const client of clients) client.vanish()
    await until(() => engine.aborts === 3, 'three aborts')
    expect(engine.peakConcurrency).toBe(3)
    expect([...engine.duplicates]).toEqual([['{"a":1}', 2]])
    expect(engine.bytesReceived).toBeGreaterThan(3 * 7)
  })

  it('closes idle sockets after its limit', async () => {
    await engine.close()
    engine = await scriptedEngine({ keepAliveMs: 1 })
    const client = await new RawClient(engine.port).send({ method: 'GET', path: '/health' }).waitStatus(200)
    await client.waitEnded()
  })

  it('serves metrics pages that lag, fail, or have several engines', async () => {
    const read = async () => (await fetch(`${engine.url}/metrics`)).text()
    engine.page(({ open }) => vllmPage({ running: open }))
    const client = ask()
    await engine.nextRequest()
    expect(await read()).toContain('model_name="tiny"} 1.0')
    engine.page(({ open }) => `running ${open}`, { lagMs: 60_000 })
    expect(await read()).toBe('running 0')
    engine.page('<html>', { status: 500, contentType: 'text/html' })
    expect((await fetch(`${engine.url}/metrics`)).status).toBe(500)
    engine.page(vllmPage({ engines: [{ running: 7 }, {}], kvName: 'old' }))
    expect(await read()).toMatch(
      /running\{engine="0".*\} 7\.0\n[\s\S]*gpu_cache[\s\S]*running\{engine="1".*\} 0\.0/,
    )
    client.leave()
  })

  it('answers with any framing, encoding and refusal', async () => {
    const answer = async (act: (exchange: Awaited<ReturnType<ScriptedEngine['nextRequest']>>) => void) => {
      const client = ask()
      act(await engine.nextRequest())
      return client.waitComplete()
    }
    const closed = await answer((exchange) => exchange.head(200, {}, 'close').token().done())
    expect(closed.headers['transfer-encoding']).toBeUndefined()
    const sized = await answer((exchange) =>
      exchange.head(200, { 'content-length': '5' }, 'length').write('12345').end(),
    )
    expect(sized.text).toBe('12345')
    const zipped = await answer((exchange) => exchange.respondEncoded(200, '{}', 'gzip'))
    expect(gunzipSync(zipped.body).toString()).toBe('{}')
    const brotli = await answer((exchange) => exchange.respondEncoded(200, '{}', 'br'))
    expect(brotliDecompressSync(brotli.body).toString()).toBe('{}')
    const refused = await answer((exchange) => exchange.refuse(503, 7))
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '7'])
  })
})

describe('the raw client', () => {
  it('trickles, stalls and half-closes', async () => {
    const client = new RawClient(engine.port)
    await client.trickle('GET /health HTTP/1.1\r\nhost: x\r\n\r\n', { pieceBytes: 9, everyMs: 1 })
    await client.waitStatus(200)
    const stalled = ask().stall()
    const exchange = await engine.nextRequest()
    exchange.head().token().done()
    await new Promise((resolve) => setImmediate(resolve))
    expect(stalled.receivedBytes).toBe(0)
    await stalled.read().waitComplete()
    await stalled.halfClose().waitEnded()
  })
})

describe('a full accept queue', () => {
  it('neither takes nor refuses a connection', async () => {
    const backlog = await FullBacklog.open()
    const socket = connect({ port: backlog.port, host: '127.0.0.1' })
    let told = ''
    socket.on('connect', () => (told = 'connect')).on('error', () => (told = 'error'))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(told).toBe('')
    socket.destroy()
    await backlog.close()
  })
})
