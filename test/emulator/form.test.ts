/** What the emulated engine sends has the form of what a real vLLM 0.32 sent. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { floatText } from '../../src/emulator/prom-page.ts'
import { type RunningEngine, startEngine } from '../../src/emulator/start.ts'
import { vllm } from '../../src/engines/vllm.ts'
import { RawClient } from '../support/raw-client.ts'

const CAPTURES = new URL('../fixtures/engines/vllm-0.32.0/', import.meta.url)
const captured = (name: string) => readFileSync(new URL(name, CAPTURES), 'utf8')

let engine: RunningEngine
let keyed: RunningEngine

beforeAll(async () => {
  const options = { profile: 'Llama-3.1-8B/H100-80G-SXM/tp1', speed: 10, servedModelNames: ['tiny'] }
  engine = await startEngine({ ...options, maxModelLen: 8192, requestIdHeaders: true })
  keyed = await startEngine({
    ...options,
    apiKey: 'sk-test',
    maxNumQueuedReqs: 3,
    promptTokensDetails: false,
  })
})

afterAll(async () => {
  await engine.close()
  await keyed.close()
})

async function ask(
  path: string,
  body?: object | string,
  headers: Record<string, string> = {},
  port = engine.port,
  method = body === undefined ? 'GET' : 'POST',
): Promise<RawClient> {
  const client = new RawClient(port)
  client.send({
    method,
    path,
    headers: { connection: 'close', ...headers },
    ...(body === undefined ? {} : { body }),
  })
  return await client.waitComplete(`${method} ${path}`)
}

/** The keys of a value in order, with their kinds; null may stand for anything. */
function shape(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shape(value[0])]
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, shape(child)]))
}

/** JSON of each data line, with its event name. */
function frames(sse: string): { readonly event: string; readonly shape: unknown }[] {
  return sse
    .split('\n\n')
    .filter((block) => block.trim() !== '')
    .map((block) => {
      const lines = block.trim().split('\n')
      const data = lines.find((line) => line.startsWith('data: '))?.slice(6) ?? ''
      const event = lines.find((line) => line.startsWith('event: '))?.slice(7) ?? ''
      return { event, shape: data === '[DONE]' ? data : shape(JSON.parse(data)) }
    })
}

const chatBody = {
  model: 'tiny',
  messages: [
    { role: 'system', content: 'You are terse.' },
    { role: 'user', content: 'Say something about rivers.' },
  ],
  max_tokens: 8,
  temperature: 0.7,
  ignore_eos: true,
}
const textBody = { model: 'tiny', prompt: 'the river bends', max_tokens: 8, ignore_eos: true }
const usage = { stream: true, stream_options: { include_usage: true } }

describe('streams', () => {
  it.each([
    ['chat-stream.sse', '/v1/chat/completions', { ...chatBody, stream: true }],
    ['chat-stream-usage.sse', '/v1/chat/completions', { ...chatBody, ...usage }],
    [
      'chat-stream-usage-continuous.sse',
      '/v1/chat/completions',
      { ...chatBody, stream: true, stream_options: { include_usage: true, continuous_usage_stats: true } },
    ],
    ['completion-stream.sse', '/v1/completions', { ...textBody, stream: true }],
    ['completion-stream-usage.sse', '/v1/completions', { ...textBody, ...usage }],
    [
      'messages-stream.sse',
      '/v1/messages',
      {
        model: 'tiny',
        max_tokens: 6,
        stream: true,
        messages: [{ role: 'user', content: 'Hello' }],
        ignore_eos: true,
      },
    ],
  ])('%s frame by frame', async (name, path, body) => {
    const client = await ask(path, body)
    expect(client.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'transfer-encoding': 'chunked',
      server: 'uvicorn',
    })
    expect(frames(client.text)).toEqual(frames(captured(name)))
  })

  it('send each frame as a chunk of its own, both roles before any content', async () => {
    const client = await ask('/v1/chat/completions', { ...chatBody, max_tokens: 4, n: 2, ...usage })
    const ours = frames(client.text)
    expect(ours.slice(0, 4)).toEqual(frames(captured('chat-stream-n2.sse')).slice(0, 4))
    expect(client.received.toString('latin1').match(/\r\n[0-9a-f]+\r\ndata: /g)).toHaveLength(ours.length)
  })

  it('say 200 before the engine has been asked', async () => {
    const client = new RawClient(engine.port)
    client.send({ path: '/v1/completions', body: { ...textBody, stream: true } })
    await client.waitStatus(200)
    expect(client.text).toBe('')
    await client.waitComplete()
    client.leave()
  })
})

describe('whole answers', () => {
  it.each([
    ['chat.json', '/v1/chat/completions', chatBody],
    ['completion.json', '/v1/completions', textBody],
    [
      'messages.json',
      '/v1/messages',
      { model: 'tiny', max_tokens: 8, messages: [{ role: 'user', content: 'Hello' }], ignore_eos: true },
    ],
  ])('%s field by field', async (name, path, body) => {
    expect(shape((await ask(path, body)).json)).toEqual(shape(JSON.parse(captured(name))))
  })

  it('carry the client id', async () => {
    const client = await ask(
      '/v1/chat/completions',
      { ...chatBody, max_tokens: 1 },
      { 'x-request-id': 'abc-123' },
    )
    expect(client.json.id).toBe('chatcmpl-abc-123')
    expect(client.headers['x-request-id']).toBe('abc-123')
    const silent = await ask(
      '/v1/completions',
      textBody,
      { 'x-request-id': 'q', authorization: 'Bearer sk-test' },
      keyed.port,
    )
    expect(silent.json.id).toBe('cmpl-q')
    expect(silent.headers['x-request-id']).toBeUndefined()
    expect((silent.json.usage as Record<string, unknown>).prompt_tokens_details).toBeNull()
  })
})

describe('refusals', () => {
  it('have the bodies of the captures', async () => {
    const unknown = await ask('/v1/chat/completions', { ...chatBody, model: 'nope' })
    expect([unknown.status, unknown.text]).toEqual([404, captured('err-unknown-model.json')])
    const lost = await ask('/v1/nope')
    expect([lost.status, lost.text]).toEqual([404, captured('not-found.json')])
    const locked = await ask('/v1/chat/completions', chatBody, {}, keyed.port)
    expect([locked.status, locked.text]).toEqual([401, captured('queue-err-no-key.json')])
  })

  it('know full queues in every dialect', async () => {
    const key = { authorization: 'Bearer sk-test' }
    const full = await ask('/v1/chat/completions', { ...chatBody, n: 4, stream: true }, key, keyed.port)
    expect([full.status, full.text]).toEqual([503, captured('queue-full-chat.json')])
    expect(full.headers['retry-after']).toBeUndefined()
    const messages = await ask('/v1/messages', { ...chatBody, n: 4 }, key, keyed.port)
    expect([messages.status, messages.text]).toEqual([503, captured('queue-full-messages.json')])
  })

  it('name what is wrong with a body', async () => {
    const broken = await ask('/v1/chat/completions', '{"model": "tiny", "messages": [')
    expect([broken.status, (broken.json.error as { type: string }).type]).toEqual([400, 'Bad Request'])
    const missing = await ask('/v1/chat/completions', { model: 'tiny' })
    expect((missing.json.error as { param: string }).param).toBe('body.messages')
    const typed = await ask('/v1/chat/completions', chatBody, { 'content-type': 'text/plain' })
    expect([typed.status, typed.text.includes('Unsupported Media Type')]).toEqual([400, true])
    const wrong = await ask('/v1/chat/completions')
    expect([wrong.status, wrong.headers.allow]).toEqual([405, 'POST'])
  })
})

describe('small routes', () => {
  it('answer as captured', async () => {
    const health = await ask('/health')
    expect([health.status, health.headers['content-length']]).toEqual([200, '0'])
    expect((await ask('/ping', '')).status).toBe(200)
    expect((await ask('/version')).json).toEqual({ version: '0.32.0' })
    expect((await ask('/load')).json).toEqual({ server_load: 0 })
    const models = (await ask('/v1/models')).json as { data: { max_model_len: number }[] }
    expect(models.data[0]?.max_model_len).toBe(8192)
    const counted = await ask('/tokenize', { model: 'tiny', prompt: 'the river bends' })
    expect(counted.json).toMatchObject({ count: 4, max_model_len: 8192 })
  })
})

describe('metrics page', () => {
  interface Families {
    readonly types: Map<string, string>
    /** Family member → names of its labels. */
    readonly labels: Map<string, string>
    readonly bounds: Map<string, string>
  }

  function families(page: string): Families {
    const types = new Map<string, string>()
    const labels = new Map<string, string>()
    const bounds = new Map<string, string>()
    for (const line of page.split('\n')) {
      const type = /^# TYPE (\S+) (\S+)$/.exec(line)
      if (type !== null) types.set(type[1]!, type[2]!)
      const sample = /^([\w:]+)(?:\{(.*)\})? \S+$/.exec(line)
      if (sample === null) continue
      const names = [...(sample[2] ?? '').matchAll(/(\w+)="[^"]*"/g)].map((match) => match[1]!)
      labels.set(sample[1]!, names.toSorted().join())
      const le = /le="([^"]+)"/.exec(line)
      if (le !== null) bounds.set(sample[1]!, `${bounds.get(sample[1]!) ?? ''} ${le[1]}`)
    }
    return { types, labels, bounds }
  }

  it('has names, types, labels and buckets of the real one', async () => {
    const real = families(captured('metrics-idle.txt'))
    const client = await ask('/metrics')
    expect(client.headers['content-type']).toBe('text/plain; version=1.0.0; charset=utf-8')
    const ours = families(client.text)
    for (const [name, type] of ours.types) expect([name, real.types.get(name)]).toEqual([name, type])
    for (const [name, bounds] of ours.bounds) {
      // Token buckets end at the model's length there and here, whatever it is.
      expect([name, real.bounds.get(name)?.split(' ').slice(0, 8)]).toEqual([
        name,
        bounds.split(' ').slice(0, 8),
      ])
    }
    for (const [name, names] of ours.labels) {
      if (name === 'vllm:cache_config_info') continue
      expect([name, real.labels.get(name)]).toEqual([name, names])
    }
  })

  it('is understood by the vLLM adapter', async () => {
    const page = (await ask('/metrics')).text
    const sample = vllm.parseLoad(page)
    expect(sample?.gauges).toMatchObject({ runningRequests: 0, waitingRequests: 0, kvUsageRatio: 0 })
    expect(sample?.asleep).toBe(false)
    expect(sample?.processStartSec).toBeGreaterThan(1e9)
    expect(sample?.limits.kvCapacityTokens).toBe(Math.floor(445_480 / 16) * 16)
  })

  it('counts what it served', async () => {
    const before = await ask('/metrics')
    await ask('/v1/completions', textBody)
    const after = await ask('/metrics')
    const value = (client: RawClient, name: string) =>
      Number(
        client.text
          .split('\n')
          .find((line) => line.startsWith(`vllm:${name}{`))
          ?.split(' ')
          .at(-1),
      )
    expect(value(after, 'generation_tokens_total') - value(before, 'generation_tokens_total')).toBe(8)
    expect(
      value(after, 'e2e_request_latency_seconds_count') - value(before, 'e2e_request_latency_seconds_count'),
    ).toBe(1)
    expect(
      value(after, 'inter_token_latency_seconds_count') - value(before, 'inter_token_latency_seconds_count'),
    ).toBe(7)
  })

  it('prints numbers as Python does', () => {
    expect(
      [0, 41, 0.25, 999_999, 1_000_000, 9_184_221, 1_795_965_516.11, Number.POSITIVE_INFINITY].map(floatText),
    ).toEqual(['0.0', '41.0', '0.25', '999999.0', '1e+06', '9.184221e+06', '1.79596551611e+09', '+Inf'])
  })
})
