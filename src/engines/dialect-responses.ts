/** Responses of OpenAI: typed events, of which the last carries the whole response. */
import { type DialectReader, filled, NOTHING, type Reading, typeOf } from './dialect.ts'
import { asObject, parseJson, readFailure } from './failures.ts'
import { responsesFinish } from './finish.ts'
import { eventName } from './frame-search.ts'
import { responsesUsage } from './usage.ts'

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
  if (RESPONSE_ENDS.has(type)) return readEnd(response ?? {})
  if (type.endsWith('.delta')) return { ...NOTHING, content: filled(frame.delta) }
  if (type !== 'response.output_item.added')
    return readFailure(frame) ? { ...NOTHING, failure: { type, message: data } } : NOTHING
  const item = asObject(frame.item)?.type
  return { ...NOTHING, content: typeof item === 'string' && item.endsWith('_call') }
}

function readEnd(response: Readonly<Record<string, unknown>>): Reading {
  const usage = responsesUsage(response.usage)
  const finishReason = responsesFinish(response)
  return {
    ...NOTHING,
    ...(usage === undefined ? {} : { usage }),
    ...(finishReason === undefined ? {} : { finishReason }),
    ends: true,
    done: true,
  }
}

export function responsesReader(): DialectReader {
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
