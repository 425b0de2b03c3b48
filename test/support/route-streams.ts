/** Requests of each route that streams, and the frames that engines answer them with, as text. */
import type { EngineKind } from '../../src/engines/adapter.ts'
import { chatChunk } from './scripted-exchange.ts'

export interface StreamedRequest {
  readonly path: string
  readonly body: object
}

export const CHAT: StreamedRequest = {
  path: '/v1/chat/completions',
  body: { model: 'tiny', stream: true, messages: [] },
}
export const COMPLETION: StreamedRequest = {
  path: '/v1/completions',
  body: { model: 'tiny', stream: true, prompt: 'Hi' },
}
export const MESSAGES: StreamedRequest = {
  path: '/v1/messages',
  body: { model: 'tiny', stream: true, max_tokens: 9, messages: [] },
}
export const RESPONSES: StreamedRequest = {
  path: '/v1/responses',
  body: { model: 'tiny', stream: true, input: 'Hi' },
}
export const GENERATE: StreamedRequest = { path: '/generate_stream', body: { inputs: 'Hi' } }

export const data = (payload: unknown): string => `data: ${JSON.stringify(payload)}\n\n`
/** An event with its name on a line of its own and in its data. */
export const named = (event: string, payload: object): string =>
  `event: ${event}\ndata: ${JSON.stringify({ type: event, ...payload })}\n\n`
/** A frame of a chat stream. */
export const delta = (fields: object): string => data(chatChunk(fields))
/** A frame of a stream of completions. */
export const text = (fields: object): string =>
  data({ object: 'text_completion', choices: [{ index: 0, ...fields }] })

export const DONE = 'data: [DONE]\n\n'
export const MESSAGE_END = named('message_stop', {})
export const RESPONSE_END = named('response.completed', { response: {} })

/** Ten tokens as an engine tells of them on a route, with usage in the route's own words. */
export interface TenTokens {
  readonly on: string
  readonly kind: EngineKind
  readonly request: StreamedRequest
  /** What comes before any token. */
  readonly opening: string
  /** One of the first nine. */
  readonly token: string
  /** The tenth, and the end of the stream. */
  readonly last: string
}

const USAGE = { input_tokens: 8, output_tokens: 10 }
const OPENAI_END =
  data({ choices: [], usage: { prompt_tokens: 8, total_tokens: 18, completion_tokens: 10 } }) + DONE

const CHAT_TOKEN = delta({ content: ' t' })
const TGI_CHAT_TOKEN = delta({ role: 'assistant', content: ' t' })
const COMPLETION_TOKEN = text({ text: ' t', finish_reason: null })
const MESSAGE_TOKEN = named('content_block_delta', { delta: { type: 'text_delta', text: ' t' } })
const RESPONSE_TOKEN = named('response.output_text.delta', { delta: ' t' })
const tgiToken = (index: number, end: { generated_text: string | null; details: object | null }): string =>
  data({ index, token: { id: 65, text: ' t', logprob: -0.5, special: false }, ...end })

export const TEN_TOKENS: readonly TenTokens[] = [
  {
    on: 'chat completions',
    kind: 'vllm',
    request: CHAT,
    opening: delta({ role: 'assistant', content: '' }),
    token: CHAT_TOKEN,
    last: CHAT_TOKEN + OPENAI_END,
  },
  {
    on: 'completions',
    kind: 'vllm',
    request: COMPLETION,
    opening: text({ text: '', finish_reason: null }),
    token: COMPLETION_TOKEN,
    last: COMPLETION_TOKEN + OPENAI_END,
  },
  {
    on: 'messages',
    kind: 'vllm',
    request: MESSAGES,
    opening: named('message_start', { message: { usage: { input_tokens: 8, output_tokens: 0 } } }),
    token: MESSAGE_TOKEN,
    last:
      MESSAGE_TOKEN +
      named('message_delta', { delta: { stop_reason: 'max_tokens' }, usage: USAGE }) +
      MESSAGE_END,
  },
  {
    on: 'responses',
    kind: 'vllm',
    request: RESPONSES,
    opening: named('response.created', { response: { id: 'resp_1', status: 'in_progress' } }),
    token: RESPONSE_TOKEN,
    last: RESPONSE_TOKEN + named('response.completed', { response: { status: 'completed', usage: USAGE } }),
  },
  {
    on: 'generations of TGI',
    kind: 'tgi',
    request: { ...GENERATE, body: { inputs: 'Hi', parameters: { details: true } } },
    opening: ':\n\n',
    token: tgiToken(1, { generated_text: null, details: null }),
    last: tgiToken(10, {
      generated_text: ' t'.repeat(10),
      details: { finish_reason: 'length', generated_tokens: 10, seed: null, input_length: 8 },
    }),
  },
  {
    on: 'chat completions of TGI',
    kind: 'tgi',
    request: CHAT,
    opening: ':\n\n',
    token: TGI_CHAT_TOKEN,
    last: TGI_CHAT_TOKEN + OPENAI_END,
  },
]
