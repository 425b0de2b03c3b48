/** What counts as output, error, usage and end, dialect by dialect. */
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/engines/adapter.ts'
import { FRAME_CAP_BYTES } from '../../src/engines/sse.ts'
import { createTap } from '../../src/engines/tap.ts'
import { fixture, runTap, type Tapped, VLLM } from './captures.ts'

function tap(dialect: Dialect, ...frames: readonly (object | string)[]): Tapped {
  const text = frames.map((frame) =>
    typeof frame === 'string' ? frame : `data: ${JSON.stringify(frame)}\n\n`,
  )
  return runTap(createTap({ dialect, stripUsage: false }), [Buffer.from(text.join(''))])
}
function delta(value: object, finish: string | null = null): object {
  return { choices: [{ index: 0, delta: value, finish_reason: finish }] }
}
function captured(name: string, dialect: Dialect): Tapped {
  return runTap(createTap({ dialect, stripUsage: true }), [fixture(name)])
}

describe('content of a chat or completions stream', () => {
  it('is text, reasoning by either name, a refusal or a tool call', () => {
    for (const value of [
      { content: 'a' },
      { content: null, reasoning_content: 'a' },
      { reasoning: 'a' },
      { refusal: 'a' },
      { content: null, tool_calls: [{ index: 0, function: { name: 'f' } }] },
    ]) {
      expect(tap('openai', delta(value)).contentEvents, JSON.stringify(value)).toBe(1)
      expect(
        tap('openai', delta({ content: 'first' }), delta(value)).contentEvents,
        JSON.stringify(value),
      ).toBe(2)
    }
    expect(tap('openai', { choices: [{ index: 0, text: 'a' }] }).contentEvents).toBe(1)
  })

  it('is not a role, an empty delta, a comment, usage, or JSON that means nothing', () => {
    const nothing = [
      delta({ role: 'assistant', content: '' }),
      delta({ role: 'assistant', content: null }),
      delta({ content: '', tool_calls: [] }),
      ': keep-alive\n\n',
      { choices: [], usage: { prompt_tokens: 1, completion_tokens: 0 } },
      { choices: null },
      {},
      'data: null\n\n',
      'data: 5\n\n',
      'data: not json\n\n',
      'data:\n\n',
    ]
    expect(tap('openai', ...nothing).contentEvents).toBe(0)
    expect(tap('openai', delta({ content: 'a' }), ...nothing).contentEvents).toBe(1)
  })

  it('does not mistake words in a text for keys', () => {
    const text = '"content":"x","error":{"code":503},"usage":{},[DONE]'
    const seen = tap('openai', delta({ content: text }), delta({ content: text }))
    expect(seen).toMatchObject({ contentEvents: 2, error: undefined, done: false, usage: undefined })
  })

  it('is the end of a generation that stops at once, when its marker has come', () => {
    const stopped = [delta({ role: 'assistant', content: '' }), delta({}, 'stop')]
    expect(tap('openai', ...stopped).contentEvents).toBe(0)
    expect(tap('openai', ...stopped, 'data: [DONE]\n\n')).toMatchObject({
      contentEvents: 1,
      finishReason: 'stop',
    })
    expect(tap('openai', delta({ content: 'a' }), delta({}, 'stop')).contentEvents).toBe(1)
  })

  it('reads JSON with spaces, CRLF, data without a space and data over several lines alike', () => {
    const frames = [
      'data: {"choices": [{"delta": {"content": "a"}}]}\r\n\r\n',
      'data:{"choices":[{"delta":{"content":"b"}}]}\n\n',
      'data: {"choices":\ndata: [{"delta":{"content":"c"}}]}\n\n',
    ]
    expect(tap('openai', ...frames).contentEvents).toBe(3)
    expect(tap('openai', ...[...frames].reverse()).contentEvents).toBe(3)
  })
})

describe('the end of a stream', () => {
  it('is seen without its blank line', () => {
    expect(tap('openai', delta({ content: 'a' }), 'data: [DONE]').done).toBe(true)
  })

  it('is not seen in a stream that just stops', () => {
    expect(tap('openai', delta({ content: 'a' })).done).toBe(false)
  })

  it.each([
    [`${VLLM}/chat-stream.sse`, 'openai', 'length'],
    [`${VLLM}/chat-stream-stop.sse`, 'openai', 'stop'],
    [`${VLLM}/chat-stream-usage-continuous.sse`, 'openai', 'length'],
    [`${VLLM}/completion-stream.sse`, 'openai', 'length'],
    ['llamacpp-11549/chat-stream-usage.sse', 'openai', 'length'],
    ['tgi-3.3.7/chat-stream-usage.sse', 'openai', 'length'],
    [`${VLLM}/messages-stream.sse`, 'anthropic', 'max_tokens'],
    [`${VLLM}/responses-stream.sse`, 'responses', 'max_output_tokens'],
    [`${VLLM}/sigterm-default-decoding.sse`, 'openai', undefined],
  ] as const)('says why in %s', (name, dialect, reason) => {
    expect(captured(name, dialect).finishReason).toBe(reason)
  })

  it('says why in a frame without content, with the last content, and of the choice that ends last', () => {
    const done = 'data: [DONE]\n\n'
    expect(tap('openai', delta({ content: 'a' }), delta({}, 'tool_calls'), done).finishReason).toBe(
      'tool_calls',
    )
    expect(tap('openai', delta({ content: 'a' }), delta({ content: 'b' }, 'stop')).finishReason).toBe('stop')
    const both = tap(
      'openai',
      delta({ content: 'a' }, 'stop'),
      delta({ content: 'b' }),
      delta({}, 'length'),
      done,
    )
    expect(both.finishReason).toBe('length')
    const details = { finish_reason: 'eos_token', generated_tokens: 1 }
    expect(tap('tgi', { token: { text: 'a' }, generated_text: 'a', details }).finishReason).toBe('eos_token')
    expect(tap('openai', delta({ content: '"finish_reason":"stop"' }), done).finishReason).toBeUndefined()
  })

  it('tells of an engine that aborted by itself, before or after content', () => {
    expect(tap('openai', delta({ content: '' }, 'abort'), 'data: [DONE]\n\n')).toMatchObject({
      contentEvents: 0,
      error: { class: 'draining', type: 'abort' },
    })
    const late = tap('openai', delta({ content: 'a' }), delta({ content: 'b' }, 'abort'), 'data: [DONE]\n\n')
    expect(late.error).toMatchObject({ type: 'abort' })
  })
})

describe('usage', () => {
  it('is read from the usage frame, with what the cache gave', () => {
    expect(captured(`${VLLM}/chat-stream-usage.sse`, 'openai')).toMatchObject({
      contentEvents: 8,
      done: true,
      usage: { promptTokens: 41, outputTokens: 8, cachedTokens: 0 },
    })
  })

  it('is the last one told when every frame has it and the stream breaks off', () => {
    const frame = (tokens: number): object => ({
      ...delta({ content: 'x' }),
      usage: { prompt_tokens: 9, completion_tokens: tokens },
    })
    expect(tap('openai', frame(1), frame(5), frame(12)).usage).toEqual({ promptTokens: 9, outputTokens: 12 })
  })
})

describe('an error event', () => {
  it('inside a 200 is full, the engine’s or the client’s, by what it says', () => {
    expect(captured(`${VLLM}/queue-race-stream-error-event.sse`, 'openai')).toMatchObject({
      contentEvents: 0,
      error: { class: 'full' },
    })
    expect(captured(`${VLLM}/kill9-worker-decoding.sse`, 'openai')).toMatchObject({
      contentEvents: 76,
      error: { class: 'engine_error' },
    })
    expect(captured(`${VLLM}/kill9-worker-prefilling.sse`, 'openai')).toMatchObject({
      contentEvents: 0,
      error: { class: 'engine_error' },
    })
    expect(captured('tgi-3.3.7/err-chat-stream-overloaded.sse', 'openai').error?.class).toBe('full')
    expect(captured('tgi-3.3.7/err-generate-stream-overloaded.sse', 'tgi').error?.class).toBe('full')
    expect(captured('tgi-3.3.7/err-generate-stream-too-long.sse', 'tgi').error?.class).toBe('client_error')
    expect(tap('openai', 'event: error\ndata: {"error":{"message":"m","code":500}}\n\n').error?.class).toBe(
      'engine_error',
    )
    expect(tap('openai', 'event: error\ndata: it broke\n\n').error).toMatchObject({
      class: 'engine_error',
      message: 'it broke',
    })
    expect(
      tap('anthropic', { type: 'error', error: { type: 'overloaded_error', message: 'busy' } }).error?.class,
    ).toBe('full')
    const failed = { type: 'response.failed', response: { error: { code: 'server_error', message: 'm' } } }
    expect(tap('responses', failed)).toMatchObject({ error: { class: 'engine_error' }, done: true })
  })
})

describe('the other dialects', () => {
  it('count the deltas of messages, with tool names, and read both halves of the usage', () => {
    expect(captured(`${VLLM}/messages-stream.sse`, 'anthropic')).toMatchObject({
      contentEvents: 6,
      done: true,
      usage: { promptTokens: 13, outputTokens: 6 },
    })
    const tool = { type: 'content_block_start', content_block: { type: 'tool_use', name: 'f' } }
    const ping = { type: 'ping' }
    expect(
      tap('anthropic', ping, tool, { type: 'content_block_delta', delta: { partial_json: '{' } })
        .contentEvents,
    ).toBe(2)
  })

  it('count text, reasoning and arguments of responses, which end without a marker of their own', () => {
    expect(captured(`${VLLM}/responses-stream.sse`, 'responses')).toMatchObject({
      contentEvents: 5,
      done: true,
      usage: { promptTokens: 13, outputTokens: 6 },
    })
    const kinds = [
      'response.reasoning_text.delta',
      'response.output_text.delta',
      'response.function_call_arguments.delta',
    ]
    const frames = kinds.map((type) => `event: ${type}\ndata: ${JSON.stringify({ type, delta: 'x' })}\n\n`)
    expect(tap('responses', ...frames).contentEvents).toBe(3)
  })

  it('count the tokens of a generation, whose last frame ends it', () => {
    const token = (text: string, rest: object = {}): string =>
      `data:${JSON.stringify({ index: 1, token: { id: 1, text, special: false }, generated_text: null, details: null, ...rest })}\n\n`
    const last = token('c', { generated_text: 'abc', details: { generated_tokens: 3, input_length: 7 } })
    expect(tap('tgi', token('a'), token('b'), last)).toMatchObject({
      contentEvents: 3,
      done: true,
      usage: { promptTokens: 7, outputTokens: 3 },
    })
  })
})

describe('a frame over the cap', () => {
  it('passes as it comes, counts once and is told of, and the frames behind it are read again', () => {
    const big = `data: {"choices":[{"delta":{"content":"${'x'.repeat(500)}"}}]}\n\n`
    const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
    const bytes = Buffer.from(`${big}${big.replace(/x+/, 'y')}${usage}data: [DONE]\n\n`)
    for (const size of [1, 7, 100, 5000]) {
      const pieces: Buffer[] = []
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
      const seen = runTap(createTap({ dialect: 'openai', stripUsage: true, frameCapBytes: 200 }), pieces)
      expect(seen).toMatchObject({ contentEvents: 2, done: true, usage: { outputTokens: 2 } })
      expect(seen.oversizedFrames).toBe(size > 600 ? 0 : 1)
      expect(seen.out.toString()).toBe(bytes.toString().replace(usage, ''))
    }
  })

  it('is held back up to the cap and no further, however long it is', () => {
    const tap = createTap({ dialect: 'openai', stripUsage: true })
    const piece = Buffer.alloc(64 * 1024, 'x')
    let heldBytes = 0
    let mostHeld = 0
    for (let fed = 0; fed < 8 * 1024 * 1024; fed += piece.length) {
      const { pass } = tap.feed(piece)
      heldBytes += piece.length - pass.reduce((sum, { length }) => sum + length, 0)
      mostHeld = Math.max(mostHeld, heldBytes)
    }
    expect(heldBytes).toBe(0)
    expect(mostHeld).toBeLessThanOrEqual(FRAME_CAP_BYTES)
  })

  it('is no content when it is the echo of a long request', () => {
    const echo = `event: response.created\ndata: {"response":{"instructions":"${'x'.repeat(500)}"}}\n\n`
    const bytes = Buffer.from(echo)
    const seen = runTap(createTap({ dialect: 'responses', stripUsage: false, frameCapBytes: 200 }), [
      bytes.subarray(0, 300),
      bytes.subarray(300),
    ])
    expect(seen).toMatchObject({ contentEvents: 0, oversizedFrames: 1 })
  })
})
