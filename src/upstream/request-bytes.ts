/** Writes a request as HTTP/1.1 has it, in as few pieces as that takes. */
import type { OpenRequest } from './ports.ts'

/** Up to here head and body are joined: copying is cheaper than a write for each piece. */
const JOIN_BYTES = 256 * 1024
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const NOT_IN_TARGET = /[^\x21-\x7e\x80-\xff]/

/** Where all requests of a connection go, and what each of them says besides its own. */
export interface RequestFrame {
  /** Host and port as the `host` header names them. */
  readonly host: string
  /** Put before every path. */
  readonly prefix: string
  /** These win over the request's own. */
  readonly headers: Readonly<Record<string, string>>
}

/** The bytes in order. Throws a RangeError for what would be no request, or another one: a caller's bug. */
export function requestBytes(request: OpenRequest, frame: RequestFrame): readonly Uint8Array[] {
  const { method, body } = request
  const bodyBytes = body.reduce((sum, piece) => sum + piece.length, 0)
  const target = frame.prefix + request.path
  if (NOT_IN_TARGET.test(target)) throw new RangeError('the path holds what no request line may hold')
  let head = `${method} ${target} HTTP/1.1\r\nhost: ${frame.host}\r\nconnection: keep-alive\r\n`
  head += fields(request.headers, frame.headers) + fields(frame.headers, {})
  if (method === 'POST' || bodyBytes > 0) head += `content-length: ${bodyBytes}\r\n`
  head += '\r\n'
  if (bodyBytes > JOIN_BYTES) return [Buffer.from(head, 'latin1'), ...body]
  const bytes = Buffer.allocUnsafe(head.length + bodyBytes)
  let at = bytes.write(head, 'latin1')
  for (const piece of body) {
    bytes.set(piece, at)
    at += piece.length
  }
  return [bytes]
}

function fields(own: Readonly<Record<string, string>>, others: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const name in own) {
    const value = own[name]
    if (value === undefined || others[name] !== undefined) continue
    if (!FIELD_NAME.test(name) || NOT_IN_VALUE.test(value))
      throw new RangeError(`the header ${JSON.stringify(name)} holds what no header may hold`)
    lines += `${name}: ${value}\r\n`
  }
  return lines
}
