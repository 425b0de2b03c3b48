/** Chat and completions of OpenAI: `choices` with deltas, `[DONE]` at the end. */
import type { Draft } from '../core/draft.ts'
import { type DialectReader, filled, NOTHING, type Reading } from './dialect.ts'
import { asObject, parseJson, readFailure } from './failures.ts'
import { openaiFinishes } from './finish.ts'
import { find, keyHasValue } from './frame-search.ts'
import { openaiUsage } from './usage.ts'

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
  const choices = Array.isArray(frame.choices) ? frame.choices : undefined
  const usage = openaiUsage(frame.usage)
  const finishes = openaiFinishes(frame)
  const aborted = finishes.includes('abort')
  const finishReason = finishes.at(-1)
  const reading: Draft<Reading> = {
    content: choices?.some(choiceHasContent) === true,
    ends: !aborted && finishes.length > 0,
    done: false,
    usageOnly: usage !== undefined && choices?.length === 0,
    aborted,
  }
  if (finishReason !== undefined) reading.finishReason = finishReason
  if (usage !== undefined) reading.usage = usage
  return reading
}

/** The key that hit last is tried first, so a plain stream costs two searches a frame. */
export function openaiReader(): DialectReader {
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
