/** A body that Sluice changes on its way: its length, its meaning and the client's Expect. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EngineKind } from '../../src/engines/adapter.ts'
import { ENGINE_KINDS } from '../../src/engines/registry.ts'
import { until } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'

let rig: Rig
afterEach(() => rig.close())

const model = { name: 'tiny', aliases: ['default'], servedName: 'größe/tiny-Ünicode', adapters: [] }

async function start(engineKind: EngineKind): Promise<void> {
  rig = await startRig({
    engineKind,
    settings: { models: [{ ...model, priorityScheduling: true }] },
  })
  rig.engine.on('/v1/chat/completions', (exchange) => exchange.head().token().done())
}

/** What clients send: any names beside those that Sluice changes, in any order, with text of any kind. */
const bodies = fc
  .record(
    {
      messages: fc.constant([{ role: 'user', content: 'Grüße 👋 "quoted" \\ \u2028' }]),
      stream: fc.constant(true),
      model: fc.constantFrom('tiny', 'default'),
      stream_options: fc.option(fc.record({ include_usage: fc.boolean() }), { nil: undefined }),
      priority: fc.option(fc.integer(), { nil: undefined }),
      rid: fc.option(fc.string({ unit: 'grapheme' }), { nil: undefined }),
      request_id: fc.option(fc.string(), { nil: undefined }),
      user: fc.string({ unit: 'grapheme' }),
      metadata: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })),
    },
    { requiredKeys: ['messages', 'stream', 'model'] },
  )
  .chain((body) => fc.shuffledSubarray(Object.entries(body), { minLength: Object.keys(body).length }))
  // JSON knows no -0, so what is compared with has been through it.
  .map((entries) => JSON.parse(JSON.stringify(Object.fromEntries(entries))) as Record<string, unknown>)

describe.each(ENGINE_KINDS)('a body on its way to %s', (kind) => {
  beforeEach(() => start(kind))

  it('has the length of what is sent, and means the same but for what Sluice owns', async () => {
    const law = fc.asyncProperty(bodies, fc.constantFrom(undefined, 1, '\t'), async (body, indent) => {
      const before = rig.engine.requests.length
      const client = rig.client().send({ body: Buffer.from(JSON.stringify(body, undefined, indent)) })
      await client.waitComplete()
      client.leave()
      const [request, ...others] = rig.engine.requests.slice(before)
      expect(others).toEqual([])
      expect(Number(request?.headers['content-length'])).toBe(request?.body.length)
      expect(request?.headers['transfer-encoding']).toBeUndefined()
      const { model: asked, stream_options, priority, ...rest } = JSON.parse(String(request?.body))
      expect(asked).toBe(model.servedName)
      expect(stream_options).toEqual({ include_usage: true })
      expect(priority).toBe({ vllm: -10, sglang: 10 }[kind as string] ?? body.priority)
      const owned = [
        'model',
        'stream_options',
        'priority',
        { vllm: 'request_id', sglang: 'rid' }[kind as string],
      ]
      const kept = Object.entries(body).filter(([key, value]) => !owned.includes(key) && value !== undefined)
      expect(rest).toEqual(Object.fromEntries(kept))
    })
    await fc.assert(law, { numRuns: 15 })
  })
})

describe('a large body that is changed', () => {
  it('arrives whole, whether it is joined or sent in pieces', async () => {
    await start('vllm')
    for (const length of [100_000, 255_000, 262_144, 900_000]) {
      const content = 'ä'.repeat(length / 2)
      const client = rig.chat({ messages: [{ role: 'user', content }], priority: 1 })
      await client.waitComplete()
      const request = rig.engine.requests.at(-1)
      expect(Number(request?.headers['content-length'])).toBe(request?.body.length)
      expect(JSON.parse(String(request?.body))).toMatchObject({
        model: model.servedName,
        messages: [{ content }],
      })
    }
  })
})

describe('a client that expects', () => {
  const body = Buffer.from(
    JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'x'.repeat(900_000) }] }),
  )

  it.each([
    ['100-continue', 'content-length', String(body.length)],
    ['100-Continue', 'content-length', String(body.length)],
    ['100-continue', 'transfer-encoding', 'chunked'],
  ])(
    '%s is told to go on before it sends (%s), and the engine hears nothing of it',
    async (expectation, name, value) => {
      await start('vllm')
      const client = rig.client()
      client.raw(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: sluice.test\r\nexpect: ${expectation}\r\n${name}: ${value}\r\n\r\n`,
      )
      await until(() => client.received.includes('HTTP/1.1 100 Continue\r\n\r\n'), 'the 100')
      expect(rig.engine.requests).toEqual([])
      if (value === 'chunked')
        client
          .raw(`${body.length.toString(16)}\r\n`)
          .raw(body)
          .raw('\r\n0\r\n\r\n')
      else client.raw(body)
      await until(() => client.received.includes('[DONE]'), 'the answer')
      expect(client.received.toString('latin1')).toContain('HTTP/1.1 200 OK')
      const { headers } = rig.engine.requests[0] ?? {}
      expect(headers?.expect).toBeUndefined()
      expect(headers?.['transfer-encoding']).toBeUndefined()
    },
  )

  it('anything else is refused, and its connection is fit for the next request', async () => {
    await start('vllm')
    const client = rig.client().send({ headers: { expect: 'miracles' }, body: '' })
    await client.waitStatus(417)
    expect(rig.engine.requests).toEqual([])
  })
})
