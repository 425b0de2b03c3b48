/** The log: one JSON object a line on stdout, written behind the requests and flushed at the end. */
import pino, { type DestinationStream } from 'pino'
import { RateLimit } from './rate-limit.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export type LogFields = Readonly<Record<string, unknown>>

export interface Log {
  /** `event` names what happened, in snake_case; `fields` are plain values. */
  line(level: Exclude<LogLevel, 'silent'>, event: string, fields?: LogFields): void
  /** Like `line`, but a line of one `key` that comes too often is counted instead of written. */
  often(key: string, level: Exclude<LogLevel, 'silent'>, event: string, fields?: LogFields): void
  /** How many lines were left out so far. */
  readonly suppressedLines: number
  /** Writes out what is buffered. Call it last. */
  flush(): void
}

export interface LogOptions {
  readonly level?: LogLevel
  /** Where lines go; stdout unless a test or a file takes them. */
  readonly destination?: DestinationStream
  readonly nowMs: () => number
}

/** Longest text of a client or an engine in a line, in characters. */
export const MAX_TEXT_CHARS = 256

/** Lines that wait for a slow stdout, in bytes; beyond that they are dropped rather than filling memory. */
const MAX_BUFFERED_BYTES = 64 * 1024 * 1024

/** Lines are gathered up to here before they are written: a write costs more than all else that a line costs. */
const WRITE_BYTES = 64 * 1024
/** No line waits longer than that, in ms; warnings and errors don't wait at all. */
const FLUSH_MS = 200

interface BytesOut {
  write(bytes: Uint8Array): boolean
  flush(): void
  flushSync(): void
}

export function createLog(options: LogOptions): Log {
  const own = options.destination === undefined ? stdout() : undefined
  const least = LOG_LEVELS.indexOf(options.level ?? 'info')
  const limit = new RateLimit()
  let suppressedLines = 0
  const line: Log['line'] = (level, event, fields = {}) => {
    if (LOG_LEVELS.indexOf(level) < least) return
    const text = lineOf(level, event, fields)
    if (own === undefined) options.destination?.write(text)
    else own.write(Buffer.from(text))
    if (level === 'warn' || level === 'error') own?.flush()
  }
  return {
    line,
    often(key, level, event, fields = {}) {
      const { pass, leftOut } = limit.take(key, options.nowMs())
      if (pass) line(level, event, leftOut === 0 ? fields : { ...fields, suppressed_before: leftOut })
      else suppressedLines++
    },
    get suppressedLines() {
      return suppressedLines
    },
    flush() {
      own?.flushSync()
    },
  }
}

/** Takes bytes, since of texts it measures all that waits anew with each line; its types know texts only. */
function stdout(): BytesOut {
  const out: unknown = pino.destination({
    dest: 1,
    sync: false,
    maxLength: MAX_BUFFERED_BYTES,
    minLength: WRITE_BYTES,
    maxWrite: 2 * WRITE_BYTES,
    periodicFlush: FLUSH_MS,
    contentMode: 'buffer',
  })
  return out as BytesOut
}

/** The engine's own serialiser over all fields at once takes a fraction of what one call a field takes. */
function lineOf(level: LogLevel, event: string, fields: LogFields): string {
  const text = JSON.stringify(fields)
  const inside = text === '{}' ? '' : `${text.slice(1, -1)},`
  return `{"level":"${level}","time":"${isoTime(Date.now())}",${inside}"event":${JSON.stringify(event)}}\n`
}

let secondAtMs = Number.NaN
let secondText = ''

/** As dates write themselves, which is dear: within a second only three digits change. */
function isoTime(unixMs: number): string {
  const ms = unixMs % 1000
  if (unixMs - ms !== secondAtMs) {
    secondAtMs = unixMs - ms
    secondText = new Date(secondAtMs).toISOString().slice(0, -'000Z'.length)
  }
  return `${secondText}${String(ms).padStart(3, '0')}Z`
}

/** Cuts a text that came from outside to `MAX_TEXT_CHARS`. */
export function bounded(text: string): string {
  return text.length <= MAX_TEXT_CHARS ? text : `${text.slice(0, MAX_TEXT_CHARS)}…`
}

/** What a log line says of an error. */
export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { error: bounded(String(error)) }
  const cause = error.cause === undefined ? {} : { cause: bounded(String(error.cause)) }
  return { error: bounded(error.message), stack: error.stack?.slice(0, 4000), ...cause }
}
