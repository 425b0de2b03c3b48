import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { prefixHashes } from '../../src/edge/prefix.ts'
import { asksForUsage, readShape } from '../../src/edge/request-shape.ts'
import { ROUTES } from '../../src/edge/routes.ts'
import type { RouteKey } from '../../src/engines/adapter.ts'
import { ProxyError } from '../../src/errors.ts'

const shapeOf = (key: RouteKey, body: unknown) => {
  const route = ROUTES.find((candidate) => candidate.key === key)
  if (route === undefined) throw new Error(key)
  return readShape(route, Buffer.from(JSON.stringify(body)))
}

describe('the shape of a request', () => {
  it('counts text and media of a chat apart, never the bytes of an image', () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` } }
    const shape = shapeOf('chat', {
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'What is this?' }, image, image] },
      ],
    })
    expect(shape).toMatchObject({ mediaParts: 2, sequences: 1, streamed: false, exactTokens: undefined })
    expect(shape.textBytes).toBeGreaterThan('Be brief.What is this?'.length)
    expect(shape.textBytes).toBeLessThan(100)
  })

  it.each([
    ['completions', { prompt: ['a', 'b'], n: 1e308 }],
    ['completions', { prompt: 'a', n: 2e8 }],
    ['completions', { prompt: Array.from({ length: 20_000 }, () => 'a') }],
    ['chat', { messages: [], n: 16_385 }],
    ['generate', { inputs: 'a', parameters: { best_of: 1e300 } }],
  ] as const)('refuses more sequences than any engine takes: %s', (key, body) => {
    expect(() => shapeOf(key, body)).toThrow(/more than 16384; send several/)
  })

  it('takes any number of texts to embed, and books a bounded one', () => {
    const input = Array.from({ length: 20_000 }, () => 'a')
    expect(shapeOf('embeddings', { input })).toMatchObject({ sequences: 16_384 })
  })

  it('reads a cap or floor of an answer beyond any context as one that is finite', () => {
    const body = { messages: [], max_tokens: 1e308, min_tokens: 1e300 }
    expect(shapeOf('chat', body)).toMatchObject({ maxOutputTokens: 1e7, minOutputTokens: 1e7, sequences: 1 })
  })

  it('counts bytes of UTF-8, not characters', () => {
    const plain = shapeOf('completions', { prompt: 'aaaa' })
    const wide = shapeOf('completions', { prompt: '漢漢漢漢' })
    expect([plain.textBytes, wide.textBytes]).toEqual([4, 12])
  })

  it.each([
    ['one text', 'Hello', 1, undefined],
    ['a list of texts', ['a', 'b', 'c'], 3, undefined],
    ['token ids', [1, 2, 3, 4], 1, 4],
    ['lists of token ids', [[1, 2], [3]], 2, 3],
  ])('reads %s as prompt', (_name, prompt, prompts, exactTokens) => {
    expect(shapeOf('completions', { prompt, n: 2 })).toMatchObject({
      prompts,
      sequences: prompts * 2,
      exactTokens,
    })
  })

  it.each([
    ['vLLM and SGLang', { prompt: 'abc' }],
    ['llama.cpp', { content: 'abc' }],
    ['TGI', { inputs: 'abc' }],
  ])('reads what %s wants tokenized', (_engine, body) => {
    expect(shapeOf('tokenize', body).textBytes).toBe(3)
  })

  it.each([
    ['chat', { messages: [], max_tokens: 5, max_completion_tokens: 7 }, 7],
    ['chat', { messages: [], max_tokens: 5 }, 5],
    ['chat', { messages: [] }, undefined],
    ['responses', { input: 'x', max_output_tokens: 9 }, 9],
    ['messages', { messages: [], max_tokens: 4 }, 4],
    ['generate', { inputs: 'x', parameters: { max_new_tokens: 3 } }, 3],
  ] as const)('reads the cap of %s', (key, body, cap) => {
    expect(shapeOf(key, body).maxOutputTokens).toBe(cap)
  })

  it.each([
    ['chat', { messages: [], min_tokens: 20 }, 20],
    ['completions', { prompt: 'x', min_tokens: 20, max_tokens: 8 }, 8],
    ['chat', { messages: [], ignore_eos: true, max_completion_tokens: 64, min_tokens: 2 }, 64],
    ['chat', { messages: [], ignore_eos: true, min_tokens: 2 }, 2],
    ['chat', { messages: [], ignore_eos: true }, undefined],
    ['chat', { messages: [], ignore_eos: false, max_tokens: 64 }, undefined],
    ['chat', { messages: [], min_tokens: 0 }, undefined],
    ['chat', { messages: [], min_tokens: '7' }, undefined],
    ['messages', { messages: [], ignore_eos: true, max_tokens: 64 }, undefined],
    ['embeddings', { input: 'x', min_tokens: 5 }, undefined],
  ] as const)('reads what one sequence of %s makes at least from %j', (key, body, least) => {
    expect(shapeOf(key, body).minOutputTokens).toBe(least)
  })

  it('knows which answers stream', () => {
    expect(shapeOf('generate_stream', { inputs: 'x' }).streamed).toBe(true)
    expect(shapeOf('generate', { inputs: 'x', stream: true }).streamed).toBe(false)
    expect(shapeOf('chat', { messages: [], stream: true }).streamed).toBe(true)
    expect(shapeOf('chat', { messages: [], stream: null }).streamed).toBe(false)
    expect(shapeOf('embeddings', { input: 'x', stream: true }).streamed).toBe(false)
  })

  it('reads tools, tool calls and results as text', () => {
    const bare = shapeOf('messages', { messages: [] }).textBytes
    const tooled = shapeOf('messages', {
      system: [{ type: 'text', text: 'sys' }],
      tools: [{ name: 'search', input_schema: { type: 'object' } }],
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', input: { q: 'weather' } }] },
        { role: 'user', content: [{ type: 'tool_result', content: 'sunny' }] },
      ],
    })
    expect(tooled.textBytes - bare).toBeGreaterThan(60)
    expect(tooled.mediaParts).toBe(0)
  })

  it('knows whether the client wants the usage frame itself', () => {
    const asks = (stream_options: unknown) => asksForUsage(shapeOf('chat', { messages: [], stream_options }))
    expect([asks({ include_usage: true }), asks({ include_usage: false }), asks(null), asks({})]).toEqual([
      true,
      false,
      false,
      false,
    ])
  })

  it('of any JSON is read or refused as malformed, and never fails otherwise', () => {
    const law = fc.property(fc.constantFrom(...ROUTES), fc.json(), (route, json) => {
      try {
        const shape = readShape(route, Buffer.from(json))
        return shape.sequences >= 1 && shape.textBytes >= 0
      } catch (error) {
        return error instanceof ProxyError && error.code === 'malformed'
      }
    })
    fc.assert(law)
  })
})

describe('prefix hashes', () => {
  const text = (characters: number, seed = 'a') => ({
    prefix: { text: seed.repeat(characters) },
    cacheSalt: '',
  })

  it('are equal as far as prompts are, block by block', () => {
    const shared = 'x'.repeat(5000)
    const one = prefixHashes({ prefix: { text: `${shared}${'y'.repeat(3000)}` }, cacheSalt: '' }, 'm')
    const two = prefixHashes({ prefix: { text: `${shared}${'z'.repeat(3000)}` }, cacheSalt: '' }, 'm')
    expect(one.slice(0, 4)).toEqual(two.slice(0, 4))
    expect(one.slice(4)).not.toEqual(two.slice(4))
    expect(new Set(one).size).toBe(one.length)
  })

  it('are kept apart by adapter and by cache salt', () => {
    const [plain] = prefixHashes(text(2000), 'm')
    const [adapted] = prefixHashes(text(2000), 'lora')
    const [salted] = prefixHashes({ ...text(2000), cacheSalt: 's' }, 'm')
    expect(new Set([plain, adapted, salted]).size).toBe(3)
  })

  it('cover whole blocks only, of text and of token ids, far into a prompt and not without end', () => {
    expect(prefixHashes(text(1023), 'm')).toHaveLength(0)
    expect(prefixHashes(text(2047), 'm')).toHaveLength(1)
    // 100 000 tokens of text, and four times as many.
    expect(prefixHashes(text(400_000), 'm')).toHaveLength(390)
    expect(prefixHashes(text(1_600_000), 'm')).toHaveLength(512 + 512 + 6)
    expect(prefixHashes(text(16_000_000), 'm')).toHaveLength(2048)
    const ids = (length: number) => ({
      prefix: { ids: Array.from({ length }, (_, id) => id) },
      cacheSalt: '',
    })
    expect(prefixHashes(ids(600), 'm')).toHaveLength(2)
    expect(prefixHashes(ids(200_000), 'm')).toHaveLength(512 + 134)
  })
})
