/** Where a request may go: to the engines of the file, on the routes of the list, whatever the client writes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ROUTES } from '../../src/edge/routes.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'
import type { RawClient, RawRequest } from '../support/raw-client.ts'
import { type ScriptedEngine, scriptedEngine } from '../support/scripted-engine.ts'

let rig: Rig
/** The origin that requests try to reach. */
let other: ScriptedEngine
beforeEach(async () => {
  other = await scriptedEngine()
  rig = await startRig({ settings: { passthrough: ['/rerank'] } })
})
afterEach(async () => {
  await rig.close()
  expect(other.connections).toBe(0)
  await other.close()
})

const CHAT = JSON.stringify({ model: 'tiny', messages: [] })

function sendLine(line: string, headers: readonly string[], body = CHAT): RawClient {
  const rows = [...headers, 'content-type: application/json', `content-length: ${body.length}`]
  return rig.client().raw(`${line} HTTP/1.1\r\n${rows.join('\r\n')}\r\n\r\n${body}`)
}

const AT_ONCE = 50

/** Sends each on a connection of its own, some at a time. */
async function statusesOf(
  requests: readonly RawRequest[],
): Promise<readonly { readonly status: number; readonly label: string }[]> {
  const seen: { readonly status: number; readonly label: string }[] = []
  for (let at = 0; at < requests.length; at += AT_ONCE) {
    const sent = requests.slice(at, at + AT_ONCE).map((request) => {
      const headers = request.body === undefined ? { 'content-length': '0' } : {}
      return {
        client: rig.client().send({ headers, ...request }),
        label: `${request.method} ${request.path}`,
      }
    })
    for (const { client, label } of sent) {
      await client.waitComplete(label)
      seen.push({ status: client.status, label })
      client.leave()
    }
  }
  return seen
}

/** The only request that the engine of the file has got. */
async function atEngine(): Promise<ScriptedEngine['requests'][number]> {
  const exchange = await rig.engine.nextRequest()
  exchange.respondJson(200, { choices: [], results: [] })
  return exchange.request
}

describe('another origin', () => {
  it('in the target of a listed route changes nothing but is not passed on', async () => {
    const at = `127.0.0.1:${other.port}`
    for (const path of ['/v1/chat/completions', '/rerank?k=1']) {
      const client = sendLine(`POST http://${at}${path}`, [`host: ${at}`])
      const { path: target, rawHeaders } = await atEngine()
      await client.waitStatus(200)
      expect(target).toBe(path)
      expect(rawHeaders.flat().join(' ')).not.toContain(at)
    }
  })

  it.each([
    ['x-forwarded-host', 'AT'],
    ['forwarded', 'host=AT'],
    ['x-original-url', 'http://AT/v1/models'],
    ['x-rewrite-url', '/metrics'],
    ['x-portkey-custom-host', 'http://AT/v1'],
    ['x-gateway-destination-endpoint', 'AT'],
    ['x-base-url', 'http://AT'],
    ['referer', 'http://AT/'],
    ['host', 'AT'],
  ])('in the header %s leads nowhere', async (name, value) => {
    const at = `127.0.0.1:${other.port}`
    const host = name === 'host' ? [] : ['host: sluice.test']
    sendLine('POST /v1/chat/completions?api_base=http://AT'.replace('AT', at), [
      ...host,
      `${name}: ${value.replace('AT', at)}`,
    ])
    const { path, rawHeaders } = await atEngine()
    expect(path).toBe('/v1/chat/completions')
    expect(rawHeaders.flat().join(' ')).not.toContain(at)
  })

  it.each([
    'POST /v1/proxy/http://AT/v1/chat/completions',
    'POST //AT/v1/chat/completions',
    'POST /AT/v1/chat/completions',
    'POST /v1/chat/completions@AT',
    'POST /v1/chat/completions/http://AT',
    'GET http://AT/metrics',
    'GET /rerank/../metrics',
  ])('in the path %s is not served', async (line) => {
    const client = sendLine(line.replaceAll('AT', `127.0.0.1:${other.port}`), ['host: sluice.test'])
    await client.waitStatus(404)
    expect(rig.engine.requests).toEqual([])
  })

  it("never learns the client's key, and neither does the engine", async () => {
    const headers = [
      'host: sluice.test',
      'authorization: Bearer client-key',
      'x-api-key: client-key',
      'cookie: s=client-key',
    ]
    sendLine('POST /v1/chat/completions', headers)
    const { rawHeaders, headers: seen } = await atEngine()
    expect(rawHeaders.flat().join(' ')).not.toContain('client-key')
    expect(seen.authorization).toBe('Bearer engine-key')
  })
})

/** Ways in which a server behind might read the same path. */
const CLOTHES: readonly ((path: string) => string)[] = [
  (path) => `/${path}`,
  (path) => path.toUpperCase(),
  (path) => `${path}.`,
  (path) => `${path}/`,
  (path) => `${path};x=1`,
  (path) => `${path}%20`,
  (path) => `${path}%00`,
  (path) => path.replace(/.$/, (last) => `%${last.charCodeAt(0).toString(16)}`),
  (path) => path.replace(/\//g, '%2f'),
  (path) => `/x/%2e%2e%2f${path.slice(1)}`,
  (path) => path.replace(/\/(?=[^/]*$)/, '\\'),
]

describe('a path in other clothes', () => {
  const LISTED = ['/v1/chat/completions', '/tokenize', '/rerank']
  const UNLISTED = [
    '/invocations',
    '/metrics',
    '/v1/load_lora_adapter',
    '/server_info',
    '/-/reload',
    '/slo',
    '/replicas',
    '/decisions',
    '/livez',
  ]

  it('that is not on the list is not served in any of them', async () => {
    const worn = UNLISTED.flatMap((path) => [path, ...CLOTHES.map((wear) => wear(path))])
    const paths = [...worn, '/x/../metrics', '/v1/responses/a/%2e%2e%2fmetrics']
    const methods = ['GET', 'POST', 'DELETE', 'OPTIONS']
    const requests = paths.flatMap((path) => methods.map((method) => ({ method, path })))
    for (const { status, label } of await statusesOf(requests)) expect([404, 400], label).toContain(status)
    expect(rig.engine.requests).toEqual([])
  })

  it('that is on the list reaches its engine as it is on the list, or not at all', async () => {
    rig.engine.on('/v1/chat/completions', (exchange) => exchange.respondJson(200, { choices: [] }))
    rig.engine.on('/tokenize', (exchange) => exchange.respondJson(200, { tokens: [] }))
    rig.engine.on('/rerank', (exchange) => exchange.respondJson(200, { results: [] }))
    const paths = LISTED.flatMap((listed) => CLOTHES.map((wear) => wear(listed)))
    await statusesOf(paths.map((path) => ({ path, body: { model: 'tiny', messages: [] } })))
    expect(rig.engine.requests.length).toBeGreaterThan(0)
    for (const { path } of rig.engine.requests) expect(LISTED).toContain(path)
  })
})

describe('a path without a key', () => {
  it('is refused wherever it is served, also in other clothes', async () => {
    await rig.close()
    rig = await startRig({ settings: { auth: { kind: 'keys' }, passthrough: ['/rerank'] } })
    const served = [...ROUTES.map(({ path }) => path), '/rerank', '/v1/models', '/v1/responses/resp_1']
    const worn = served.flatMap((one) => [one, ...CLOTHES.map((wear) => wear(one))])
    const requests = worn.flatMap((path) => ['GET', 'POST'].map((method) => ({ method, path })))
    for (const { status, label } of await statusesOf(requests))
      expect([400, 401, 404], label).toContain(status)
    const plain = served.map((path) => {
      const read = path === '/v1/models' || path.includes('resp_1')
      return { method: read ? 'GET' : 'POST', path }
    })
    for (const { status, label } of await statusesOf(plain)) expect(status, label).toBe(401)
    expect(rig.engine.requests).toEqual([])
  })
})

describe('a stored response', () => {
  async function stored(): Promise<void> {
    const client = rig.client().send({ path: '/v1/responses', body: { model: 'tiny', input: 'Hello' } })
    ;(await rig.engine.nextRequest()).respondJson(200, { id: 'resp_abc123', object: 'response' })
    await client.waitStatus(200)
  }

  it.each([
    ['GET', '/v1/responses/resp_abc123?include=x'],
    ['DELETE', '/v1/responses/resp_abc123'],
    ['POST', '/v1/responses/resp_abc123/cancel'],
    ['GET', '/v1/responses/resp_abc123/input_items?limit=2'],
  ])('is asked for as the client asks: %s %s', async (method, path) => {
    await stored()
    const client = rig
      .client()
      .send({ method, path: `http://evil.test${path}`, headers: { 'content-length': '0' } })
    const exchange = await rig.engine.nextRequest()
    expect([exchange.request.method, exchange.path]).toEqual([method, path])
    exchange.respondJson(200, { id: 'resp_abc123' })
    await client.waitStatus(200)
  })

  it('leads to nothing else of its engine', async () => {
    await stored()
    const seen = rig.engine.requests.length
    for (const path of [
      '/v1/responses/resp_abc123/%2e%2e%2f%2e%2e%2f%2e%2e%2fmetrics',
      '/v1/responses/resp_abc123%2f..%2f..%2fmodels',
      '/v1/responses/resp_abc123/anything',
      '/v1/responses/resp_abc123/cancel%2fx',
    ]) {
      const client = rig.client().send({ method: 'GET', path })
      await client.waitStatus(404, path)
    }
    expect(rig.engine.requests).toHaveLength(seen)
  })
})
