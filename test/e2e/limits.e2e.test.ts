/** Clients that send too much, too slowly or nothing at all: each is told so, and none costs the others anything. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { loaded, MINIMAL } from '../config/files.ts'
import { until, within } from '../support/deadline.ts'
import { type Rig, type RigOptions, startRig } from '../support/edge-rig.ts'
import { play } from '../support/engine-script.ts'
import type { RawClient } from '../support/raw-client.ts'

let rig: Rig
async function start(options: RigOptions = {}): Promise<Rig> {
  rig = await startRig(options)
  return rig
}
afterEach(() => rig.close())

const KIB = 1024
const LIMIT_BYTES = 256 * KIB

describe('a body of images', () => {
  /** A chat with an image in it, `ratio` times as large as the limit. */
  function image(ratio: number): Buffer {
    const url = `data:image/png;base64,${'iVBO'.repeat((LIMIT_BYTES * ratio - 200) / 4)}`
    const content = [{ type: 'image_url', image_url: { url } }]
    return Buffer.from(
      JSON.stringify({ model: 'tiny', max_tokens: 1, messages: [{ role: 'user', content }] }),
    )
  }
  function send(path: string, body: Buffer, framing: 'length' | 'chunked'): RawClient {
    const client = rig.client()
    const how = framing === 'length' ? `content-length: ${body.length}` : 'transfer-encoding: chunked'
    client.raw(
      `POST ${path} HTTP/1.1\r\nhost: sluice.test\r\ncontent-type: application/json\r\n${how}\r\n\r\n`,
    )
    if (framing === 'length') return client.raw(body)
    for (let at = 0; at < body.length; at += 16 * KIB) {
      const piece = body.subarray(at, at + 16 * KIB)
      client
        .raw(`${piece.length.toString(16)}\r\n`)
        .raw(piece)
        .raw('\r\n')
    }
    return client.raw('0\r\n\r\n')
  }

  it('up to the limit is served, and sized by its image and not by its bytes', async () => {
    await start({ settings: { limits: { bodyBytes: LIMIT_BYTES } } })
    for (const framing of ['length', 'chunked'] as const) {
      const client = send('/v1/chat/completions', image(0.9), framing)
      ;(await rig.engine.nextRequest()).respondJson(200, { choices: [] })
      await client.waitStatus(200)
    }
    await rig.settled(2)
    for (const { offer } of rig.settlements) expect(offer.promptTokens).toBeLessThan(1000)
  })

  it('over the limit is a 413 in the words of its route, and nothing of it is held', async () => {
    await start({ settings: { limits: { bodyBytes: LIMIT_BYTES } } })
    const cases = ['/v1/chat/completions', '/v1/messages', '/generate'].flatMap((path) =>
      [1.1, 9, 33].flatMap((ratio) =>
        (['length', 'chunked'] as const).map((framing) => ({ path, ratio, framing })),
      ),
    )
    // All at once, since a refused upload is still listened to for a moment.
    const sent = cases.map((one) => ({ ...one, client: send(one.path, image(one.ratio), one.framing) }))
    for (const { path, ratio, framing, client } of sent) {
      const label = `${path} ${ratio} ${framing}`
      await client.waitStatus(413, label)
      await client.waitComplete(label)
      const words = {
        '/v1/messages': { type: 'error' },
        '/generate': { error_type: 'invalid_request_error' },
      }
      expect(client.json, label).toMatchObject(
        words[path as keyof typeof words] ?? {
          error: { code: 'too_large', message: expect.stringContaining('limits.body') },
        },
      )
    }
    expect(rig.engine.requests).toEqual([])
    expect(rig.edge.buffers.heldBytes).toBe(0)
  })

  it('has room for many images in the defaults', async () => {
    await start()
    expect(loaded(MINIMAL).limits.bodyBytes).toBeGreaterThanOrEqual(32 * KIB * KIB)
  })
})

describe('headers', () => {
  it('of 20 KiB, or 200 of them, are taken', async () => {
    await start()
    rig.engine.on('/v1/chat/completions', (exchange) => exchange.respondJson(200, { choices: [] }))
    await rig.chat({}, { 'x-long': 'a'.repeat(20 * KIB) }).waitStatus(200)
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`x-h${index}`, 'v']))
    await rig.chat({}, many).waitStatus(200)
    // None of them reaches an engine.
    for (const { headers } of rig.engine.requests) expect(Object.keys(headers).length).toBeLessThan(12)
  })
})

async function untilConnections(count: number): Promise<void> {
  await until(() => rig.connections === count, `${count} connections`, 20_000)
}

describe('an upload that is slow and never stands still', () => {
  it('may take longer than headers may, and so may the stream that answers it', async () => {
    await start({ server: { headersMs: 60, checkMs: 10 } })
    const body = Buffer.from(JSON.stringify({ model: 'tiny', stream: true, messages: [] }))
    const client = rig.client().send({ headers: { 'content-length': String(body.length) } })
    rig.engine.on('/v1/chat/completions', play({ frames: 8, betweenTokensMs: 15 }))
    await client.trickle(body, { pieceBytes: 5, everyMs: 15 })
    await client.waitComplete()
    expect(client.status).toBe(200)
    await rig.settled()
    expect(rig.settlement.outcome).toBe('completed')
  })
})

describe('one tenant that floods', () => {
  const tenant = (name: string) => ({ name, keySha256: [], scheduling: false })

  it('is held to its own limit while others are served at once', async () => {
    await start({
      settings: {
        auth: { kind: 'header', header: 'x-tenant', trusted: ['127.0.0.0/8'] },
        tenants: [tenant('loud'), tenant('quiet')],
      },
      gate: { tenants: { loud: { concurrentRequests: 3 } } },
    })
    const flood = Array.from({ length: 60 }, () => rig.chat({}, { 'x-tenant': 'loud' }))
    await until(() => flood.filter(({ status }) => status === 429).length === 57, 'the flood to be refused')
    const quiet = rig.chat({ user: 'quiet' }, { 'x-tenant': 'quiet' })
    await until(() => rig.engine.openExchanges === 4, 'four requests at the engine')
    for (const client of flood) client.leave()
    let exchange = await rig.engine.nextRequest()
    while (exchange.json.user !== 'quiet') exchange = await rig.engine.nextRequest()
    exchange.head().token().done()
    await quiet.waitComplete()
    const refused = flood.find(({ status }) => status === 429)
    expect(refused?.json).toMatchObject({ error: { code: 'tenant_limit' } })
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(0)
    expect(rig.edge.buffers.heldBytes).toBe(0)
  })
})

describe('idle connections by the thousand', () => {
  /** Ten thousand take some seconds more. */
  const COUNT = Number(process.env.IDLE_CONNECTIONS ?? 2000)

  it('cost little memory and nobody’s answer, and are gone when their client is', {
    timeout: 60_000,
  }, async () => {
    await start()
    rig.engine.on('/v1/chat/completions', (exchange) => exchange.head().token().done())
    const beforeBytes = process.memoryUsage().rss
    // In a process of its own, which has file descriptors and memory of its own.
    const script = `
      const { connect } = require('node:net')
      let open = 0
      let begun = 0
      const next = () => {
        if (begun++ >= ${COUNT}) return
        const socket = connect(${rig.port}, '127.0.0.1', () => {
          open += 1
          if (open === ${COUNT}) process.send('open')
          next()
        })
        socket.on('error', () => process.send('failed'))
      }
      for (let chain = 0; chain < 100; chain += 1) next()
    `
    const crowd = fork('-e', [script], { execArgv: [], stdio: 'inherit' })
    try {
      expect(await within(once(crowd, 'message'), 'the crowd to come', 30_000)).toEqual(['open', undefined])
      await untilConnections(COUNT)
      const eachBytes = (process.memoryUsage().rss - beforeBytes) / COUNT
      expect(eachBytes).toBeLessThan(32 * KIB)
      const client = await rig.chat().waitComplete()
      expect(client.status).toBe(200)
      client.leave()
    } finally {
      crowd.kill('SIGKILL')
    }
    await untilConnections(0)
  })
})
