/** The official Anthropic SDK through a whole Sluice to an emulated engine. */
import { createHash } from 'node:crypto'
import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Running, startSluice } from '../../src/cli/serve.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type RunningEngine, startEngine } from '../../src/emulator/start.ts'
import { until, within } from '../support/deadline.ts'

const KEY = 'sk-for-the-anthropic-sdk'
const LIMITED_KEY = 'sk-that-may-ask-once'
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')

let engine: RunningEngine
let sluice: Running

beforeAll(async () => {
  engine = await startEngine({
    profile: 'Llama-3.1-8B/H100-80G-SXM/tp1',
    speed: 10,
    servedModelNames: ['org/tiny'],
    maxModelLen: 4096,
  })
  const text = `
listen: 127.0.0.1:18080
mode: enforce
models: [{ name: tiny, served_name: org/tiny, replicas: ["${engine.url}"] }]
tenants:
  - { name: sdk, key_sha256: ["${hashOf(KEY)}"] }
  - { name: limited, key_sha256: ["${hashOf(LIMITED_KEY)}"], limits: { requests: 1/min } }
`
  const loaded = loadConfig(text, { fileName: 'test.yaml', env: {} })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const anywhere = { host: '127.0.0.1', port: 0 }
  const config = { ...loaded.config, listen: anywhere, admin: { ...loaded.config.admin, listen: anywhere } }
  sluice = await startSluice({ config, logLevel: 'silent' })
  await until(() => sluice.runtime.downModels().length === 0, 'the engine to be known')
})

afterAll(async () => {
  await until(() => sluice.runtime.gate.inFlight === 0, 'every permit to be back')
  await sluice.close()
  expect(engine.openRequests()).toBe(0)
  await engine.close()
})

const sdk = (apiKey = KEY) =>
  new Anthropic({ baseURL: `http://127.0.0.1:${sluice.port}`, apiKey, maxRetries: 0, timeout: 5000 })
const messages = [{ role: 'user' as const, content: 'Say something about rivers.' }]
const asked = { model: 'tiny', messages, max_tokens: 8 }

describe('the Anthropic SDK', () => {
  it('gets a whole message with its usage', async () => {
    const message = await sdk().messages.create({ ...asked, system: 'Be brief.' })
    expect(message).toMatchObject({ type: 'message', role: 'assistant' })
    expect(message.content[0]).toMatchObject({ type: 'text', text: expect.stringMatching(/\w/) })
    expect(['end_turn', 'max_tokens']).toContain(message.stop_reason)
    expect(message.usage.input_tokens).toBeGreaterThan(0)
    expect(message.usage.output_tokens).toBeGreaterThan(0)
  })

  it('reads a stream event by event and puts the message together', async () => {
    const stream = sdk().messages.stream(asked)
    const texts: string[] = []
    stream.on('text', (text) => texts.push(text))
    const message = await stream.finalMessage()
    expect(message.content[0]).toMatchObject({ type: 'text', text: texts.join('') })
    expect(message.usage.output_tokens).toBe(texts.length)
    const kinds: string[] = []
    for await (const event of await sdk().messages.create({ ...asked, stream: true })) kinds.push(event.type)
    expect(kinds.slice(0, 2)).toEqual(['message_start', 'content_block_start'])
    expect(kinds.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
  })

  it('sees decision and request id in the headers', async () => {
    const { response, request_id: requestId } = await sdk().messages.create(asked).withResponse()
    expect(response.headers.get('x-sluice-decision')).toBe('admitted')
    expect(response.headers.get('x-sluice-replica')).toBe('tiny-1')
    expect(requestId).toBe(response.headers.get('x-request-id'))
    expect(requestId).toMatch(/^[0-9a-f]{24}$/)
  })

  it.each([
    ['an unknown model', KEY, { ...asked, model: 'nope' }, Anthropic.NotFoundError, 'not_found_error'],
    ['an unknown key', 'sk-nobody', asked, Anthropic.AuthenticationError, 'authentication_error'],
    ['an engine that says no', KEY, { ...asked, max_tokens: -1 }, Anthropic.BadRequestError, undefined],
    [
      'a prompt that is none',
      KEY,
      { ...asked, messages: 'hello' as unknown as typeof messages },
      Anthropic.BadRequestError,
      'invalid_request_error',
    ],
  ])('raises its own error for %s', async (_name, key, body, kind, type) => {
    const error = await sdk(key)
      .messages.create(body)
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(kind)
    if (type !== undefined) expect(error).toMatchObject({ error: { type: 'error', error: { type } } })
  })

  it('is told when to come back', async () => {
    await sdk(LIMITED_KEY).messages.create(asked)
    const error = await sdk(LIMITED_KEY)
      .messages.create(asked)
      .catch((thrown: unknown) => thrown)
    if (!(error instanceof Anthropic.RateLimitError)) throw error
    expect(error.type).toBe('rate_limit_error')
    expect(error.headers.get('x-sluice-reason')).toBe('tenant_limit')
    expect(Number(error.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it('frees its replica when its user aborts', async () => {
    const stream = sdk().messages.stream({ ...asked, max_tokens: 2000 })
    await within(stream.emitted('text'), 'the first text')
    stream.abort()
    await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIUserAbortError)
    await until(() => sluice.runtime.gate.inFlight === 0, 'the permit to come back')
    await until(() => engine.openRequests() === 0, 'the engine to be left alone')
  })
})
