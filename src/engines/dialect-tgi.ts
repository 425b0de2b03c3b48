/** Generations of TGI: a token each, and the whole text in the last. */
import { type DialectReader, NOTHING, type Reading } from './dialect.ts'
import { asObject, parseJson, readFailure } from './failures.ts'
import { tgiFinish } from './finish.ts'
import { find, keyHasValue } from './frame-search.ts'
import { tgiUsage } from './usage.ts'

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

export function tgiReader(): DialectReader {
  return {
    // The last frame has a token as well, but also the end and the sizes, so it is left to a full reading.
    looksLikeContent: (frame) => keyHasValue(frame, TOKEN_KEY) && find(frame, OPEN_TEXT) >= 0,
    worthReading: () => true,
    lastWorthReading: () => true,
    read: readTgi,
    oversized: () => ({ content: true, done: false }),
  }
}
