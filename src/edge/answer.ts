/** The client's side of one request, whatever happens behind it: one status line, ordered bytes, one end. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Ms } from '../core/units.ts'
import type { Dialect } from '../engines/adapter.ts'
import type { ErrorCode } from '../errors.ts'
import { errorEvent, type Rng, refusalOf } from './refusal.ts'
import { sendTail } from './tail.ts'

export interface AnswerOptions {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly dialect: Dialect
  readonly rng: Rng
  /** A client that takes nothing of what is left of its answer for that long is cut, in ms. */
  readonly stallMs: Ms
}

type Headers = Readonly<Record<string, string | string[]>>

/** A comment that closes with one newline: an empty line after it would make some decoders emit an empty event. */
const HEARTBEAT = ': sluice\n'
const EVENT_STREAM = 'text/event-stream; charset=utf-8'
/** An unread upload up to that size is swallowed, so that its connection lives on. */
const SWALLOWED_BYTES = 64 * 1024
/** How long a refused upload is still read and thrown away, so that the refusal survives the close, in ms. */
export const LINGER_MS: Ms = 1000
/** Headers of an engine that clients may see; length and connection are ours to say. */
const PASSED_HEADERS = [
  'content-type',
  'content-encoding',
  'retry-after',
  'retry-after-ms',
  'openai-processing-ms',
  'x-compute-time',
]

/** Refusals that end the connection too: nothing more is taken, or the rest of an upload may never come. */
const CLOSING: readonly ErrorCode[] = ['draining', 'request_timeout']

export class ClientAnswer {
  readonly dialect: Dialect
  /** True once the client is gone and nothing can be said any more. */
  left = false
  /** Whether the client has left before its answer was complete; called once. */
  onLeft: () => void = () => {}
  /** Its last byte is out, or its client is gone; called once. */
  onClosed: () => void = () => {}
  /** The client takes bytes again. */
  onDrain: () => void = () => {}
  /** When bytes last went out, for heartbeats; minus infinity before. */
  wroteAtMs: Ms = Number.NEGATIVE_INFINITY
  readonly #incoming: IncomingMessage
  readonly #outgoing: ServerResponse
  readonly #rng: Rng
  readonly #stallMs: Ms
  #ended = false
  /** Kept here until the head is written: set one by one on the response, each would be checked and copied twice. */
  readonly #headers: Record<string, string> = {}

  constructor(options: AnswerOptions) {
    this.#incoming = options.incoming
    this.#outgoing = options.outgoing
    this.dialect = options.dialect
    this.#rng = options.rng
    this.#stallMs = options.stallMs
    this.#outgoing.on('error', () => {})
    this.#outgoing.on('drain', () => this.onDrain())
    this.#outgoing.once('close', () => {
      if (!this.#outgoing.writableFinished) {
        this.left = true
        if (!this.#ended) this.onLeft()
      }
      this.onClosed()
    })
    if (this.#outgoing.destroyed) this.left = true
  }

  /** The status that has gone out, if one has. */
  get status(): number | undefined {
    return this.started ? this.#outgoing.statusCode : undefined
  }

  /** Whether a status has gone out. */
  get started(): boolean {
    return this.#outgoing.headersSent
  }

  /** Adds headers; those set after the status has gone out are lost, as they must be. */
  set(headers: Readonly<Record<string, string>>): void {
    if (this.started) return
    Object.assign(this.#headers, headers)
  }

  /** Sends the 200 of a stream, unless it is out already. */
  beginStream(upstream: Headers): void {
    if (this.started) return
    const encoding = upstream['content-encoding']
    if (typeof encoding === 'string') this.#headers['content-encoding'] = encoding
    this.#head(200, {
      'content-type': upstream['content-type'] ?? EVENT_STREAM,
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    })
  }

  /** Sends the head of a whole body that is too big to hold. */
  beginWhole(status: number, upstream: Headers): void {
    const length = upstream['content-length']
    this.#head(status, {
      ...passed(upstream),
      ...(typeof length === 'string' ? { 'content-length': length } : {}),
    })
  }

  /** False when the client is behind: stop until `onDrain`. */
  write(bytes: Uint8Array, nowMs: Ms): boolean {
    this.wroteAtMs = nowMs
    return this.#outgoing.write(bytes)
  }

  /** Keeps a silent stream alive. Only between two frames. */
  heartbeat(nowMs: Ms): void {
    if (this.#ended || this.left) return
    this.beginStream({})
    this.wroteAtMs = nowMs
    this.#outgoing.write(HEARTBEAT)
  }

  /** A whole answer with its exact length. */
  whole(status: number, headers: Headers, body: Uint8Array): void {
    this.#ended = true
    this.#head(status, { 'content-length': body.length, ...passed(headers) })
    this.#finish(body)
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#finish()
  }

  /** Ends without an end, so that the client sees a cut and no completion. */
  cut(): void {
    this.#ended = true
    this.#outgoing.destroy()
  }

  /** Says no: with a status when none is out, else as an event. */
  refuse(code: ErrorCode, message: string, options: { retryAfterMs?: Ms | undefined } = {}): void {
    if (this.#ended || this.left) return
    const { dialect } = this
    if (this.started) {
      this.endWithEvent(code, message)
      return
    }
    this.#ended = true
    const refusal = refusalOf({ code, message, dialect, retryAfterMs: options.retryAfterMs }, this.#rng)
    const lingering = this.#unreadIsLarge()
    const closing = CLOSING.includes(code)
    if (lingering || closing) this.#headers.connection = 'close'
    this.#head(refusal.status, {
      ...refusal.headers,
      'content-length': Buffer.byteLength(refusal.body),
    })
    if (!this.#incoming.complete) {
      this.#incoming.resume()
      // Whoever still reads the upload is not told by Node that its connection goes.
      if (closing) this.#outgoing.once('close', () => this.#incoming.destroy())
    }
    if (lingering) {
      this.#outgoing.write(refusal.body)
      this.#linger()
    } else this.#finish(Buffer.from(refusal.body))
  }

  /** The last word on a stream that is under way and between two frames. */
  endWithEvent(code: ErrorCode, message: string): void {
    if (this.#ended || this.left) return
    this.#ended = true
    this.#finish(Buffer.from(errorEvent({ code, message, dialect: this.dialect })))
  }

  /** Ends the answer: nobody else looks after it from here on. */
  #finish(last?: Uint8Array): void {
    sendTail(this.#outgoing, last, this.#stallMs)
  }

  #head(status: number, headers: OutgoingHttpHeaders): void {
    this.#outgoing.writeHead(status, Object.assign(this.#headers as OutgoingHttpHeaders, headers))
  }

  #unreadIsLarge(): boolean {
    if (this.#incoming.complete) return false
    const length = this.#incoming.headers['content-length']
    return length === undefined || Number(length) > SWALLOWED_BYTES
  }

  /** Closing on unread bytes resets the connection and may take our answer with it: throw them away for a moment. */
  #linger(): void {
    const finish = () => {
      clearTimeout(timer)
      this.#incoming.off('end', finish).off('close', finish)
      this.#outgoing.end()
    }
    const timer = setTimeout(finish, LINGER_MS)
    this.#incoming.once('end', finish).once('close', finish)
  }
}

function passed(headers: Headers): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {}
  for (const name of PASSED_HEADERS) {
    const value = headers[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}
