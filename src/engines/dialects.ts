/** What the frames of each wire dialect mean: content, usage, error or end. */
import type { Usage } from '../core/events.ts'
import type { Dialect } from './adapter.ts'
import { asObject, type Failure, parseJson, readFailure } from './failures.ts'
import { anthropicFinish, openaiFinishes, responsesFinish, tgiFinish } from './finish.ts'
import type { Frame } from './sse.ts'
import { anthropicUsage, openaiUsage, responsesUsage, tgiUsage } from './usage.ts'

/** A frame read in full. */
export interface Reading {
  readonly content: boolean
  /** The generation's end: with the end marker all there is to show for the one token of one that stops at once. */
  readonly ends: boolean
  /** Why it ended, as the engine says it. */
  readonly finishReason?: string
  readonly failure?: Failure
  readonly usage?: Usage
  readonly done: boolean
  /** Nothing but usage is in it, so it may be taken out. */
  readonly usageOnly: boolean
  /** The engine itself cut the generation short; it says `abort` when it is going down. */
  readonly aborted: boolean
}

export interface DialectReader {
  /** Whether the frame holds generated output, by byte search alone. May be called for any frame after the first content. */
  looksLikeContent(frame: Frame): boolean
  /** Whether the frame, holding no content, may say anything else of note. */
  worthReading(frame: Frame): boolean
  /** Whether the last content frame may say more than that: usage, or why it is the last. */
  lastWorthReading(frame: Frame): boolean
  read(event: string, data: string): Reading
  /** What a frame too long to look into is taken for, by its beginning. */
  oversized(event: string): { readonly content: boolean; readonly done: boolean }
}

const NOTHING: Reading = { content: false, ends: false, done: false, usageOnly: false, aborted: false }
const QUOTE = 0x22
const BRACKET = 0x5b
const BRACE = 0x7b

/** Where `needle` is within the frame, or -1. */
function find(frame: Frame, needle: Buffer, from = frame.start): number {
  // A search past the frame would walk over the frames behind it, each time again.
  if (frame.end === frame.bytes.length) return frame.bytes.indexOf(needle, from)
  const at = frame.bytes.subarray(from, frame.end).indexOf(needle)
  return at < 0 ? -1 : at + from
}

function skipSpace(bytes: Buffer, at: number): number {
  let next = at
  while (bytes[next] === 0x20) next += 1
  return next
}

/** Whether a key, quotes included, is followed by a value that is not empty: "x", [x] or {x}. */
function keyHasValue(frame: Frame, key: Buffer, from = frame.start): boolean {
  const at = find(frame, key, from)
  if (at < 0) return false
  const { bytes } = frame
  const colon = skipSpace(bytes, at + key.length)
  if (bytes[colon] !== 0x3a) return false
  const value = skipSpace(bytes, colon + 1)
  const opener = bytes[value]
  if (opener === QUOTE) return bytes[value + 1] !== QUOTE
  if (opener === BRACKET || opener === BRACE) return bytes[skipSpace(bytes, value + 1)] !== opener + 2
  return false
}

const OPENAI_KEYS = [
  'content',
  'text',
  'reasoning',
  'reasoning_content',
  'tool_calls',
  'refusal',
  'function_call',
]
const CHOICES_KEY = Buffer.from('"choices"')
const KEY_BYTES = OPENAI_KEYS.map((key) => Buffer.from(`"${key}"`))
const ERROR_KEY = Buffer.from('"error"')
const USAGE_KEY = Buffer.from('"usage"')
const DONE_MARK = Buffer.from('[DONE]')
const FINISH_KEY = Buffer.from('"finish_reason"')
const ERROR_EVENTS = [Buffer.from('event: error'), Buffer.from('event:error')]

function filled(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0
  const object = asObject(value)
  return object !== undefined && Object.keys(object).length > 0
}

function choiceHasContent(choice: unknown): boolean {
  const it = asObject(choice)
  if (it === undefined) return false
  if (filled(it.text)) return true
  const delta = asObject(it.delta)
  return delta !== undefined && OPENAI_KEYS.some((key) => filled(delta[key]))
}

function readOpenai(event: string, data: string): Reading {
  if (data.startsWith('[DONE]')) return { ...NOTHING, done: true }
  const frame = asObject(parseJson(data))
  if (frame === undefined) {
    return event === 'error' ? { ...NOTHING, failure: { type: 'error', message: data } } : NOTHING
  }
  const failed = readFailure(frame)
  if (failed !== undefined) return { ...NOTHING, failure: failed }
  const choices = Array.isArray(frame.choices) ? frame.choices : []
  const usage = openaiUsage(frame.usage)
  const finishes = openaiFinishes(frame)
  const aborted = finishes.includes('abort')
  const finishReason = finishes.at(-1)
  return {
    content: choices.some(choiceHasContent),
    ends: !aborted && finishes.length > 0,
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(usage === undefined ? {} : { usage }),
    done: false,
    usageOnly: usage !== undefined && Array.isArray(frame.choices) && choices.length === 0,
    aborted,
  }
}

/** Chat and completions. The key that hit last is tried first, so a plain stream costs two searches a frame. */
function openaiReader(): DialectReader {
  const keys = [...KEY_BYTES]
  return {
    looksLikeContent(frame) {
      // Events of other kinds (progress, tools, status) may have a `text` or `content` of their own.
      const choicesAt = find(frame, CHOICES_KEY)
      if (choicesAt < 0) return false
      for (let index = 0; index < keys.length; index += 1) {
        const key = keys[index]
        if (key === undefined || !keyHasValue(frame, key, choicesAt)) continue
        if (index > 0) {
          keys.splice(index, 1)
          keys.unshift(key)
        }
        return true
      }
      return false
    },
    worthReading: (frame) =>
      find(frame, USAGE_KEY) >= 0 ||
      keyHasValue(frame, FINISH_KEY) ||
      find(frame, DONE_MARK) >= 0 ||
      find(frame, ERROR_KEY) >= 0 ||
      ERROR_EVENTS.some((name) => find(frame, name) >= 0),
    lastWorthReading: (frame) => keyHasValue(frame, USAGE_KEY) || keyHasValue(frame, FINISH_KEY),
    read: readOpenai,
    oversized: () => ({ content: true, done: false }),
  }
}

/** Whether the frame begins with an `event:` line of that name, or of a name with that ending. */
function eventName(frame: Frame): string | undefined {
  const { bytes, start, end } = frame
  if (bytes[start] !== 0x65 || bytes[start + 5] !== 0x3a) return undefined
  const from = skipSpace(bytes, start + 6)
  let to = from
  while (to < end && bytes[to] !== 0x0a && bytes[to] !== 0x0d) to += 1
  return bytes.toString('latin1', from, to)
}

function typeOf(event: string, frame: Readonly<Record<string, unknown>>): string {
  return typeof frame.type === 'string' ? frame.type : event
}

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

function anthropicReader(): DialectReader {
  return {
    looksLikeContent: (frame) => eventName(frame) === 'content_block_delta',
    worthReading: () => true,
    lastWorthReading: () => true,
    read: readAnthropic,
    oversized: (event) => ({ content: event.startsWith('content_block'), done: event === 'message_stop' }),
  }
}

const RESPONSE_ENDS = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
])

function readResponses(event: string, data: string): Reading {
  if (data.startsWith('[DONE]')) return { ...NOTHING, done: true }
  const frame = asObject(parseJson(data))
  if (frame === undefined) return NOTHING
  const type = typeOf(event, frame)
  const response = asObject(frame.response)
  if (type === 'error' || event === 'error' || type === 'response.failed') {
    const told = readFailure(frame) ?? readFailure(response)
    return { ...NOTHING, failure: told ?? { type, message: data }, done: type === 'response.failed' }
  }
  if (RESPONSE_ENDS.has(type)) {
    const usage = responsesUsage(response?.usage)
    const finishReason = responsesFinish(response ?? {})
    return {
      ...NOTHING,
      ...(usage === undefined ? {} : { usage }),
      ...(finishReason === undefined ? {} : { finishReason }),
      ends: true,
      done: true,
    }
  }
  if (type.endsWith('.delta')) return { ...NOTHING, content: filled(frame.delta) }
  if (type !== 'response.output_item.added')
    return readFailure(frame) ? { ...NOTHING, failure: { type, message: data } } : NOTHING
  const item = asObject(frame.item)?.type
  return { ...NOTHING, content: typeof item === 'string' && item.endsWith('_call') }
}

function responsesReader(): DialectReader {
  return {
    looksLikeContent: (frame) => eventName(frame)?.endsWith('.delta') === true,
    worthReading: () => true,
    lastWorthReading: () => true,
    read: readResponses,
    oversized: (event) => ({
      content: event === '' || event.endsWith('.delta'),
      done: RESPONSE_ENDS.has(event),
    }),
  }
}

const TOKEN_KEY = Buffer.from('"token"')
const OPEN_TEXT = Buffer.from('"generated_text":null')

function readTgi(_event: string, data: string): Reading {
  const frame = asObject(parseJson(data))
  if (frame === undefined) return NOTHING
  const failed = readFailure(frame)
  if (failed !== undefined) return { ...NOTHING, failure: failed }
  const usage = tgiUsage(frame.details)
  const finishReason = tgiFinish(frame)
  const done = typeof frame.generated_text === 'string'
  return {
    ...NOTHING,
    ...(usage === undefined ? {} : { usage }),
    ...(finishReason === undefined ? {} : { finishReason }),
    content: asObject(frame.token) !== undefined || done,
    done,
  }
}

function tgiReader(): DialectReader {
  return {
    // The last frame has a token as well, but also the end and the sizes, so it is left to a full reading.
    looksLikeContent: (frame) => keyHasValue(frame, TOKEN_KEY) && find(frame, OPEN_TEXT) >= 0,
    worthReading: () => true,
    lastWorthReading: () => true,
    read: readTgi,
    oversized: () => ({ content: true, done: false }),
  }
}

/** The reader of a dialect; one per stream, since it may remember what hit last. */
export function dialectReader(dialect: Dialect): DialectReader {
  switch (dialect) {
    case 'openai':
      return openaiReader()
    case 'responses':
      return responsesReader()
    case 'anthropic':
      return anthropicReader()
    case 'tgi':
      return tgiReader()
    default:
      return dialect satisfies never
  }
}
