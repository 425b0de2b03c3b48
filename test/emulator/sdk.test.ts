/** The official OpenAI SDK against the emulated engine, as a client of a real vLLM would use it. */
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningEngine, startEngine } from '../../src/emulator/start.ts'
import { until } from '../support/deadline.ts'

let engine: RunningEngine
let client: OpenAI

beforeAll(async () => {
  engine = await startEngine({
    profile: 'Llama-3.1-8B/H100-80G-SXM/tp1',
    speed: 10,
    servedModelNames: ['tiny', 'alias'],
    maxModelLen: 4096,
  })
  client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'unused', maxRetries: 0, timeout: 5000 })
})

afterAll(async () => {
  expect(engine.openRequests()).toBe(0)
  await engine.close()
})

const messages = [{ role: 'user' as const, content: 'Say something about rivers.' }]

describe('chat', () => {
  it('answers whole', async () => {
    const answer = await client.chat.completions.create({ model: 'tiny', messages, max_tokens: 8 })
    expect(answer.object).toBe('chat.completion')
    expect(answer.choices[0]?.message.role).toBe('assistant')
    expect(answer.choices[0]?.message.content).toMatch(/^\w+( \w+)*$/)
    const { usage } = answer
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0))
  })

  it('streams as many tokens as it says', async () => {
    const stream = await client.chat.completions.create({
      model: 'alias',
      messages,
      max_completion_tokens: 12,
      stream: true,
      stream_options: { include_usage: true },
      ...{ ignore_eos: true },
    })
    let content = 0
    let finish: string | null | undefined
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) content++
      finish = chunk.choices[0]?.finish_reason ?? finish
      usage = chunk.usage ?? usage
    }
    expect(content).toBe(12)
    expect(finish).toBe('length')
    expect(usage?.completion_tokens).toBe(12)
  })

  it('gives n choices and counts the prompt once', async () => {
    const answer = await client.chat.completions.create({
      model: 'tiny',
      messages,
      n: 2,
      max_tokens: 5,
      ...{ ignore_eos: true },
    })
    expect(answer.choices.map((choice) => choice.index)).toEqual([0, 1])
    expect(answer.usage?.completion_tokens).toBe(10)
    const alone = await client.chat.completions.create({ model: 'tiny', messages, max_tokens: 1 })
    expect(answer.usage?.prompt_tokens).toBe(alone.usage?.prompt_tokens)
  })

  it('takes tools and images, and counts them', async () => {
    const plain = await client.chat.completions.create({ model: 'tiny', messages, max_tokens: 1 })
    const rich = await client.chat.completions.create({
      model: 'tiny',
      max_tokens: 1,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Say something about rivers.' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
    })
    expect(rich.usage?.prompt_tokens).toBeGreaterThan((plain.usage?.prompt_tokens ?? 0) + 256)
  })

  it('reuses a cached prefix and says so', async () => {
    const long = [{ role: 'user' as const, content: 'A long and common beginning. '.repeat(40) }]
    await client.chat.completions.create({ model: 'tiny', messages: long, max_tokens: 1 })
    const again = await client.chat.completions.create({ model: 'tiny', messages: long, max_tokens: 1 })
    expect(again.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan(200)
    const salted = await client.chat.completions.create({
      model: 'tiny',
      messages: long,
      max_tokens: 1,
      ...{ cache_salt: 'other' },
    })
    expect(salted.usage?.prompt_tokens_details?.cached_tokens).toBe(0)
  })
})

describe('completions', () => {
  it('takes a text, token ids and lists of prompts', async () => {
    const ids = await client.completions.create({ model: 'tiny', prompt: [5, 6, 7], max_tokens: 2 })
    expect(ids.usage?.prompt_tokens).toBe(3)
    const text = await client.completions.create({ model: 'tiny', prompt: 'twelve bytes', max_tokens: 2 })
    expect(text.usage?.prompt_tokens).toBe(3)
    const list = await client.completions.create({
      model: 'tiny',
      prompt: ['one', 'two', 'three'],
      n: 2,
      max_tokens: 2,
      ...{ ignore_eos: true },
    })
    expect(list.choices.map((choice) => choice.index)).toEqual([0, 1, 2, 3, 4, 5])
    expect(list.usage?.completion_tokens).toBe(12)
  })

  it('streams every choice of a list to its own end', async () => {
    const stream = await client.completions.create({
      model: 'tiny',
      prompt: ['one', 'two'],
      max_tokens: 4,
      stream: true,
      ...{ ignore_eos: true },
    })
    const tokens = new Map<number, number>()
    const finished: number[] = []
    for await (const { choices } of stream) {
      for (const choice of choices) {
        tokens.set(choice.index, (tokens.get(choice.index) ?? 0) + 1)
        if (choice.finish_reason) finished.push(choice.index)
      }
    }
    expect([...tokens.values()]).toEqual([4, 4])
    expect(finished.toSorted()).toEqual([0, 1])
  })
})

describe('errors', () => {
  const create = (more: object) =>
    client.chat.completions.create({ model: 'tiny', messages, max_tokens: 4, ...more }) as Promise<unknown>

  it('come with the status and the words of vLLM', async () => {
    await expect(create({ model: 'nope' })).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining('The model `nope` does not exist. Valid aliases: tiny, alias.'),
    })
    await expect(create({ messages: [] })).rejects.toMatchObject({ status: 400 })
    await expect(create({ max_tokens: 0 })).rejects.toMatchObject({ status: 400, param: 'max_tokens' })
    await expect(create({ n: 0 })).rejects.toMatchObject({ status: 400 })
    await expect(create({ stream_options: { include_usage: true } })).rejects.toMatchObject({ status: 400 })
    const tooLong = [{ role: 'user', content: 'river '.repeat(4000) }]
    await expect(create({ messages: tooLong })).rejects.toMatchObject({ status: 400, param: 'input_tokens' })
  })
})

describe('leaving', () => {
  it('frees the engine at once', async () => {
    const stream = await client.chat.completions.create({
      model: 'tiny',
      messages,
      max_tokens: 4000,
      stream: true,
      ...{ ignore_eos: true },
    })
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
    await until(() => engine.openRequests() === 0, 'the request to be forgotten')
    await until(() => engine.gauges().runningSequences === 0, 'the batch to be empty')
    expect(engine.gauges().kvUsageRatio).toBe(0)
  })
})

describe('models and responses', () => {
  it('lists what it serves', async () => {
    const { data } = await client.models.list()
    expect(data.map((model) => model.id)).toEqual(['tiny', 'alias'])
  })

  it('answers and streams /v1/responses', async () => {
    const answer = await client.responses.create({ model: 'tiny', input: 'Hello', max_output_tokens: 6 })
    expect(answer.output_text.length).toBeGreaterThan(0)
    const stream = await client.responses.create({
      model: 'tiny',
      input: 'Hello',
      max_output_tokens: 6,
      stream: true,
      ...{ ignore_eos: true },
    })
    const types: string[] = []
    for await (const event of stream) types.push(event.type)
    expect(types.filter((type) => type === 'response.output_text.delta')).toHaveLength(6)
    expect(types.at(-1)).toBe('response.completed')
  })
})
