/** When the first token came, how fast the others followed and how many there were, by a clock that the test turns. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Settlement } from '../../src/core/records.ts'
import { until } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'
import { ManualClock } from '../support/manual-clock.ts'
import type { RawClient } from '../support/raw-client.ts'
import {
  CHAT,
  COMPLETION,
  DONE,
  data,
  delta,
  GENERATE,
  MESSAGE_END,
  MESSAGES,
  named,
  RESPONSE_END,
  RESPONSES,
  type StreamedRequest,
  TEN_TOKENS,
  text,
} from '../support/route-streams.ts'
import { chatChunk, type ScriptedExchange } from '../support/scripted-engine.ts'

let rig: Rig
let clock: ManualClock
beforeEach(async () => {
  clock = new ManualClock()
  rig = await startRig({ clock, engineKind: ['vllm', 'tgi'], engines: 2 })
})
afterEach(() => rig.close())

/** Raw bytes of the stream, which the relay has read before the clock goes on. */
async function send(exchange: ScriptedExchange, bytes: string): Promise<void> {
  const before = rig.upstreamBytes
  exchange.write(bytes)
  await until(() => rig.upstreamBytes >= before + Buffer.byteLength(bytes), `the relay to read ${bytes}`)
}

async function begin(
  request: StreamedRequest,
  engineAt = request === GENERATE ? 1 : 0,
): Promise<[RawClient, ScriptedExchange]> {
  const client = rig.client().send(request)
  const exchange = await rig.engines[engineAt]?.nextRequest()
  if (exchange === undefined) throw new Error('no engine')
  return [client, exchange.head()]
}

async function settled(client: RawClient): Promise<Settlement> {
  await client.waitComplete()
  await rig.settled()
  return rig.settlement
}

describe('the time to first token', () => {
  /** Frames that hold nothing generated, by the route on which they come. */
  it.each([
    ['a role with empty content', CHAT, delta({ role: 'assistant', content: '' }), DONE],
    [
      'a role with null content',
      CHAT,
      delta({ role: 'assistant', content: null, reasoning_content: null }),
      DONE,
    ],
    ['a role alone', CHAT, delta({ role: 'assistant' }), DONE],
    ['an empty list of tool calls', CHAT, delta({ role: 'assistant', tool_calls: [] }), DONE],
    [
      'no choices, and usage',
      CHAT,
      data({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 0 } }),
      DONE,
    ],
    [
      'the progress of a prefill',
      CHAT,
      data({
        ...chatChunk({ role: 'assistant', content: null }),
        prompt_progress: { total: 9, processed: 4 },
      }),
      DONE,
    ],
    ['a comment', CHAT, ': still there\n\n', DONE],
    ['an event of an unknown name', CHAT, 'event: tool.progress\ndata: {"step":1}\n\n', DONE],
    ['no JSON', CHAT, 'data: null\n\ndata: 5\n\ndata: nonsense\n\n', DONE],
    ['empty text', COMPLETION, text({ text: '', finish_reason: null }), DONE],
    [
      'the start of a message',
      MESSAGES,
      named('message_start', { message: { usage: { input_tokens: 9 } } }),
      MESSAGE_END,
    ],
    [
      'the start of a text block',
      MESSAGES,
      named('content_block_start', { content_block: { type: 'text', text: '' } }),
      MESSAGE_END,
    ],
    ['a ping', MESSAGES, named('ping', {}), MESSAGE_END],
    [
      'a response being created',
      RESPONSES,
      named('response.created', { response: { id: 'resp_1', status: 'in_progress' } }),
      RESPONSE_END,
    ],
    [
      'a message item being added',
      RESPONSES,
      named('response.output_item.added', { item: { type: 'message', content: [] } }),
      RESPONSE_END,
    ],
    ['a keep-alive of TGI', GENERATE, ':\n\n', ''],
  ])('is not stopped by %s', async (_name, request, nothing, end) => {
    const [client, exchange] = await begin(request)
    clock.advance(5)
    await send(exchange, nothing)
    clock.advance(795)
    await send(exchange, FIRST[request.path] ?? '')
    clock.advance(40)
    await send(exchange, end)
    exchange.end()
    expect((await settled(client)).ttftMs).toBe(800)
  })

  /** Whatever the engine has generated, seen by people or not. */
  it.each([
    ['content', CHAT, delta({ content: ' it' }), DONE],
    ['reasoning', CHAT, delta({ reasoning: 'hm' }), DONE],
    ['reasoning of older engines', CHAT, delta({ reasoning_content: 'hm' }), DONE],
    [
      'a tool call',
      CHAT,
      delta({ tool_calls: [{ index: 0, function: { name: 'look', arguments: '' } }] }),
      DONE,
    ],
    ['a function call', CHAT, delta({ function_call: { name: 'look' } }), DONE],
    ['a refusal', CHAT, delta({ refusal: 'no' }), DONE],
    ['a space', CHAT, delta({ content: ' ' }), DONE],
    ['text', COMPLETION, text({ text: 'it' }), DONE],
    [
      'thinking',
      MESSAGES,
      named('content_block_delta', { delta: { type: 'thinking_delta', thinking: 'hm' } }),
      MESSAGE_END,
    ],
    [
      'the input of a tool',
      MESSAGES,
      named('content_block_delta', { delta: { type: 'input_json_delta', partial_json: '{' } }),
      MESSAGE_END,
    ],
    [
      'a tool',
      MESSAGES,
      named('content_block_start', { content_block: { type: 'tool_use', name: 'look' } }),
      MESSAGE_END,
    ],
    ['reasoning text', RESPONSES, named('response.reasoning_text.delta', { delta: 'hm' }), RESPONSE_END],
    [
      'arguments of a function',
      RESPONSES,
      named('response.function_call_arguments.delta', { delta: '{' }),
      RESPONSE_END,
    ],
    ['a token of TGI', GENERATE, data({ index: 1, token: { id: 5, text: ' it' }, generated_text: null }), ''],
  ])('is stopped by %s, and by nothing that comes later', async (_name, request, first, end) => {
    const [client, exchange] = await begin(request)
    clock.advance(183)
    await send(exchange, first)
    clock.advance(1017)
    await send(exchange, FIRST[request.path] ?? '')
    await send(exchange, end)
    exchange.end()
    expect((await settled(client)).ttftMs).toBe(183)
  })

  it('is that of the first of many tokens, with usage in the last frame', async () => {
    const [client, exchange] = await begin(CHAT)
    for (let index = 0; index < 128; index += 1) {
      clock.advance(80)
      await send(exchange, delta({ content: ` t${index}` }))
    }
    exchange.finish('length').usage(8, 128).done()
    const { ttftMs, tpotMs, outputTokens } = await settled(client)
    expect({ ttftMs, tpotMs, outputTokens }).toEqual({ ttftMs: 80, tpotMs: 80, outputTokens: 128 })
  })
})

/** One frame with content, by route. */
const FIRST: Readonly<Record<string, string>> = {
  [CHAT.path]: delta({ content: ' text' }),
  [COMPLETION.path]: text({ text: ' text' }),
  [MESSAGES.path]: named('content_block_delta', { delta: { type: 'text_delta', text: ' text' } }),
  [RESPONSES.path]: named('response.output_text.delta', { delta: ' text' }),
  [GENERATE.path]: data({ index: 2, token: { id: 6, text: ' text' }, generated_text: ' text' }),
}

describe('the time per output token', () => {
  async function stream(
    frames: number,
    stepMs: number,
    frame: (index: number) => string,
  ): Promise<ScriptedExchange> {
    const [client, exchange] = await begin(CHAT)
    reader = client
    clock.advance(5000)
    for (let index = 0; index < frames; index += 1) {
      if (index > 0) clock.advance(stepMs)
      await send(exchange, frame(index))
    }
    return exchange
  }
  let reader: RawClient

  it('has nothing of the time to the first token in it', async () => {
    const exchange = await stream(11, 10, (index) => delta({ content: ` t${index}` }))
    exchange.usage(8, 11).done()
    expect(await settled(reader)).toMatchObject({ ttftMs: 5000, tpotMs: 10 })
  })

  it('is not there for one token, and divides by nothing', async () => {
    const exchange = await stream(1, 0, () => delta({ content: 'Yes' }))
    exchange.usage(8, 1).done()
    const settlement = await settled(reader)
    expect(settlement).toMatchObject({ ttftMs: 5000, outputTokens: 1 })
    expect(settlement.tpotMs).toBeUndefined()
    expect(settlement.verdict.kind).toBe('good')
  })

  it('goes by the engine’s count where a frame holds several tokens', async () => {
    const exchange = await stream(100, 40, (index) => delta({ content: ` a b c ${index}` }))
    exchange.usage(8, 400).done()
    const { tpotMs, outputTokens, countedBy } = await settled(reader)
    expect({ outputTokens, countedBy }).toEqual({ outputTokens: 400, countedBy: 'usage' })
    expect(tpotMs).toBeCloseTo((99 * 40) / 399, 9)
  })

  it('goes by the engine’s count where the text could be tokenized in other ways', async () => {
    const exchange = await stream(4, 10, () => delta({ content: ' '.repeat(25) }))
    exchange.usage(8, 7).done()
    expect(await settled(reader)).toMatchObject({ outputTokens: 7, countedBy: 'usage', tpotMs: 5 })
  })

  it('falls back on frames without usage, and says so', async () => {
    const exchange = await stream(4, 10, () => delta({ content: ' x' }))
    exchange.done()
    expect(await settled(reader)).toMatchObject({ outputTokens: 4, countedBy: 'events', tpotMs: 10 })
  })
})

describe('the same timing', () => {
  it.each(TEN_TOKENS)('is the same figures, counted by usage, on $on', async (told) => {
    await rig.close()
    rig = await startRig({ clock, engineKind: told.kind })
    const [client, exchange] = await begin(told.request, 0)
    clock.advance(5)
    await send(exchange, told.opening)
    clock.advance(795)
    for (let index = 0; index < 9; index += 1) {
      await send(exchange, told.token)
      clock.advance(40)
    }
    await send(exchange, told.last)
    clock.advance(300)
    exchange.end()
    const { ttftMs, tpotMs, outputTokens, countedBy } = await settled(client)
    const seen = { ttftMs, tpotMs, outputTokens, countedBy }
    expect(seen).toEqual({ ttftMs: 800, tpotMs: 40, outputTokens: 10, countedBy: 'usage' })
  })
})
