/** Reads the head of an HTTP/1.1 answer and says how its body ends; what two parsers could read in two ways is refused. */
import type { Ms } from '../core/units.ts'

export type Headers = Readonly<Record<string, string | string[]>>

/** Where the body ends: it has none, in chunks, after so many bytes, or with its connection. */
export type Framing = 'none' | 'chunks' | 'close' | number

export interface ResponseHead {
  readonly status: number
  /** By lower-case name; a list where a name came more than once. */
  readonly headers: Headers
  readonly framing: Framing
  /** The engine means to keep the connection. */
  readonly keepAlive: boolean
  /** How long it says that it keeps the connection idle, in ms. */
  readonly idleMs: Ms | undefined
}

/** An answer that is no HTTP/1.1, or whose end is a matter of taste. */
export class UnreadableAnswer extends Error {
  readonly code = 'UNREADABLE_ANSWER'
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/
const LENGTH = /^\d{1,15}$/
const KEPT_SECONDS = /(?:^|[,;\s])timeout=(\d{1,9})/i

/** `text` is the head without its empty line, one character a byte. Throws UnreadableAnswer. */
export function readHead(text: string): ResponseHead {
  const lineEnd = text.indexOf('\r\n')
  const line = lineEnd < 0 ? text : text.slice(0, lineEnd)
  const found = STATUS_LINE.exec(line)
  if (found === null || CONTROL.test(line)) throw new UnreadableAnswer('the answer is no HTTP/1.1')
  const status = Number(found[2])
  const headers = readFields(text, lineEnd < 0 ? text.length : lineEnd + 2)
  const newer = found[1] === '1'
  const connection = textOf(headers.connection).toLowerCase()
  const framing = framingOf(status, headers, newer)
  const stays = newer ? !hasToken(connection, 'close') : hasToken(connection, 'keep-alive')
  const seconds = KEPT_SECONDS.exec(textOf(headers['keep-alive']))?.[1]
  return {
    status,
    headers,
    framing,
    keepAlive: stays && framing !== 'close',
    idleMs: seconds === undefined ? undefined : Number(seconds) * 1000,
  }
}

function readFields(text: string, from: number): Headers {
  const headers: Record<string, string | string[]> = Object.create(null)
  let at = from
  while (at < text.length) {
    const next = text.indexOf('\r\n', at)
    const end = next < 0 ? text.length : next
    readField(text.slice(at, end), headers)
    at = end + 2
  }
  return headers
}

function readField(line: string, headers: Record<string, string | string[]>): void {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(0, colon))
  // A folded line, too, begins with what is no name.
  if (!FIELD_NAME.test(name) || CONTROL.test(line))
    throw new UnreadableAnswer('a header of the answer is malformed')
  const key = name.toLowerCase()
  const value = trimmed(line, colon + 1)
  const known = headers[key]
  if (known === undefined) headers[key] = value
  else if (typeof known === 'string') headers[key] = [known, value]
  else known.push(value)
}

/** What of `line` from there on is no space or tab at either end; of other white space HTTP knows nothing. */
function trimmed(line: string, from: number): string {
  let start = from
  let end = line.length
  while (start < end && isBlank(line.charCodeAt(start))) start += 1
  while (end > start && isBlank(line.charCodeAt(end - 1))) end -= 1
  return line.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function framingOf(status: number, headers: Headers, newer: boolean): Framing {
  const encoding = headers['transfer-encoding']
  const length = headers['content-length']
  if (encoding !== undefined) {
    const chunked = typeof encoding === 'string' && encoding.toLowerCase() === 'chunked'
    if (!chunked || !newer || length !== undefined)
      throw new UnreadableAnswer('the answer says in two ways, or in none, where it ends')
  }
  if (length !== undefined && (typeof length !== 'string' || !LENGTH.test(length)))
    throw new UnreadableAnswer('the length of the answer is no number')
  if (status < 200 || status === 204 || status === 304) return 'none'
  if (encoding !== undefined) return 'chunks'
  return length === undefined ? 'close' : Number(length)
}

function textOf(value: string | string[] | undefined): string {
  return value === undefined ? '' : typeof value === 'string' ? value : value.join(',')
}

function hasToken(list: string, token: string): boolean {
  if (list === '' || list === token) return list === token
  return list.split(',').some((entry) => entry.trim() === token)
}
