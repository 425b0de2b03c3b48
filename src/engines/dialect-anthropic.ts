/** Messages of Anthropic: typed events, deltas of content blocks, `message_stop` at the end. */
import { type DialectReader, filled, NOTHING, type Reading, typeOf } from './dialect.ts'
import { asObject, parseJson, readFailure } from './failures.ts'
import { anthropicFinish } from './finish.ts'
import { eventName } from './frame-search.ts'
import { anthropicUsage } from './usage.ts'

const ANTHROPIC_DELTAS = ['text', 'thinking', 'partial_json']

function readAnthropic(event: string, data: string): Reading {
  const frame = asObject(parseJson(data))
  if (frame === undefined) return NOTHING
  const type = typeOf(event, frame)
  if (type === 'error' || event === 'error') {
    return { ...NOTHING, failure: readFailure(frame) ?? { type: 'error', message: data } }
  }
  if (type === 'message_stop') return { ...NOTHING, done: true }
  if (type === 'content_block_delta') {
    const delta = asObject(frame.delta)
    return { ...NOTHING, content: delta !== undefined && ANTHROPIC_DELTAS.some((key) => filled(delta[key])) }
  }
  // The name of a tool is generated output, though it comes in the block's head.
  if (type === 'content_block_start')
    return { ...NOTHING, content: asObject(frame.content_block)?.type === 'tool_use' }
  const usage = anthropicUsage(frame.usage ?? asObject(frame.message)?.usage)
  const finishReason = anthropicFinish(frame)
  return {
    ...NOTHING,
    ...(usage === undefined ? {} : { usage }),
    ...(finishReason === undefined ? {} : { finishReason }),
    ends: finishReason !== undefined,
  }
}

export function anthropicReader(): DialectReader {
  return {
    looksLikeContent: (frame) => eventName(frame) === 'content_block_delta',
    worthReading: () => true,
    lastWorthReading: () => true,
    read: readAnthropic,
    oversized: (event) => ({ content: event.startsWith('content_block'), done: event === 'message_stop' }),
  }
}
