/** One request that a scripted engine received, and every way in which the test may answer or break it. */
import type { Socket } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { deferred, within } from './deadline.ts'

/** How bytes of the body are cut into socket writes: as given, byte by byte, or at these sizes in turn. */
export type CutPlan = 'whole' | 'bytes' | readonly number[]

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  /** Names in lower case; a repeated header keeps its last value. */
  readonly headers: Readonly<Record<string, string>>
  /** Name and value as sent, in order. */
  readonly rawHeaders: readonly (readonly [string, string])[]
  readonly body: Buffer
}

export type LineEnd = '\n' | '\r\n' | '\r'

/** How events are written. */
export interface FrameStyle {
  readonly lineEnd?: LineEnd
  readonly event?: string
  /** Each event has an `id:` line with its number. */
  readonly ids?: boolean
  /** Text between `data:` and the payload. */
  readonly space?: string
  /** JSON payloads go over two `data:` lines. */
  readonly twoLines?: boolean
}

/** How the end of a body is told: by chunks, by its length (a header that the test sets), or by the close. */
export type Framing = 'chunked' | 'length' | 'close'

export class ScriptedExchange {
  readonly request: ReceivedRequest
  readonly #socket: Socket
  readonly #onDone: (keepAlive: boolean) => void
  #framing: Framing = 'length'
  #finished = false
  #events = 0
  /** How body bytes are cut into writes from now on. */
  cut: CutPlan = 'whole'
  /** How events are written from now on. */
  style: FrameStyle = {}
  /** Compresses each write into a gzip member of its own; to be set before the head. */
  gzip = false

  constructor(request: ReceivedRequest, socket: Socket, onDone: (keepAlive: boolean) => void) {
    this.request = request
    this.#socket = socket
    this.#onDone = onDone
  }

  get path(): string {
    return this.request.path
  }
  /** The body as JSON. */
  get json(): Record<string, unknown> {
    return JSON.parse(this.request.body.toString('utf8')) as Record<string, unknown>
  }
  /** True once the other side, or the test, has closed the socket. */
  get closed(): boolean {
    return this.#socket.destroyed
  }
  get finished(): boolean {
    return this.#finished
  }

  /** Waits until the other side has closed the socket under this exchange. */
  async waitClosed(label = 'the proxy to close its upstream socket', limitMs?: number): Promise<void> {
    if (this.#socket.destroyed) return
    const gone = deferred()
    this.#socket.once('close', () => gone.resolve())
    await within(gone.promise, label, limitMs)
  }

  /** Sends status and headers of a streamed answer: a chunked event stream unless told otherwise. */
  head(status = 200, headers: Readonly<Record<string, string>> = {}, framing: Framing = 'chunked'): this {
    this.#framing = framing
    return this.raw(
      headText(status, {
        'content-type': 'text/event-stream; charset=utf-8',
        ...(this.gzip ? { 'content-encoding': 'gzip' } : {}),
        ...(framing === 'close' ? { connection: 'close' } : {}),
        ...headers,
        ...(framing === 'chunked' ? { 'transfer-encoding': 'chunked' } : {}),
      }),
    )
  }

  /** Sends body bytes, one HTTP chunk per piece of the cut plan. */
  write(bytes: string | Uint8Array): this {
    const body = this.gzip ? gzipSync(bytes) : Buffer.from(bytes as string)
    for (const piece of cutUp(body, this.cut)) {
      if (this.#framing !== 'chunked') this.raw(piece)
      else this.raw(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, CRLF]))
    }
    return this
  }

  /** Whatever `act` sends leaves in one write. */
  together(act: (exchange: this) => void): this {
    this.#socket.cork()
    act(this)
    this.#socket.uncork()
    return this
  }

  /** Sends one event with `data` as its payload; objects are sent as JSON. */
  frame(data: string | object, style: FrameStyle = {}): this {
    const { lineEnd = '\n', event, ids, space = ' ', twoLines } = { ...this.style, ...style }
    const text = typeof data === 'string' ? data : JSON.stringify(data)
    this.#events += 1
    const lines = [
      ...(ids === true ? [`id: ${this.#events}`] : []),
      ...(event === undefined ? [] : [`event: ${event}`]),
      ...(twoLines === true && text.startsWith('{')
        ? [`data:${space}{`, `data:${space}${text.slice(1)}`]
        : [`data:${space}${text}`]),
    ]
    return this.write(`${lines.join(lineEnd)}${lineEnd}${lineEnd}`)
  }

  comment(text = ' keep-alive'): this {
    const { lineEnd = '\n' } = this.style
    return this.write(`:${text}${lineEnd}${lineEnd}`)
  }

  /** The role frame that chat streams begin with. */
  role(): this {
    return this.frame(chatChunk({ role: 'assistant', content: '' }))
  }

  /** A frame of a chat stream with that delta and, beside its choices, those members. */
  delta(delta: object, members: object = {}): this {
    return this.frame({ ...chatChunk(delta), ...members })
  }

  /** One content frame of a chat stream. */
  token(text = ' token'): this {
    return this.delta({ content: text })
  }

  /** One content frame of at least that many bytes. */
  huge(bytes: number): this {
    return this.token('x'.repeat(bytes))
  }

  tokens(count: number): this {
    for (let index = 0; index < count; index += 1) this.token(` t${index}`)
    return this
  }

  finish(reason = 'stop'): this {
    return this.frame(chatChunk({}, reason))
  }

  usage(promptTokens: number, completionTokens: number, cachedTokens?: number): this {
    const details =
      cachedTokens === undefined ? {} : { prompt_tokens_details: { cached_tokens: cachedTokens } }
    const usage = {
      prompt_tokens: promptTokens,
      total_tokens: promptTokens + completionTokens,
      completion_tokens: completionTokens,
      ...details,
    }
    return this.frame({ ...chatChunk({}), choices: [], usage })
  }

  error(code: number, message: string, type = 'InternalServerError'): this {
    return this.frame({ error: { message, type, param: null, code } })
  }

  /** The end marker, then the clean end of the answer. */
  done(): void {
    this.frame('[DONE]')
    this.end()
  }

  /** The clean end of a streamed answer. */
  end(): void {
    if (this.#framing === 'chunked') this.raw('0\r\n\r\n')
    this.#settle(this.#framing !== 'close')
  }

  /** A whole answer with a length. */
  respond(status: number, body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): void {
    const bytes = Buffer.from(body as string)
    this.raw(headText(status, { ...headers, 'content-length': String(bytes.length) }))
    this.raw(bytes)
    this.#settle(headers.connection !== 'close')
  }

  /** The same, compressed, with the true length of what is sent. */
  respondEncoded(status: number, body: string, encoding: 'gzip' | 'br' | 'deflate'): void {
    const encode = { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync }[encoding]
    this.respond(status, encode(body), { 'content-type': 'application/json', 'content-encoding': encoding })
  }

  /** A refusal in vLLM's shape, with or without a time to come back. */
  refuse(status: number, retryAfterSec?: number): void {
    const headers = retryAfterSec === undefined ? {} : { 'retry-after': String(retryAfterSec) }
    const [type, message] = REFUSALS[status] ?? ['Error', `status ${status}`]
    this.respondJson(status, { error: { message, type, param: null, code: status } }, headers)
  }

  respondJson(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): void {
    this.respond(status, JSON.stringify(value), { 'content-type': 'application/json', ...headers })
  }

  /** Bytes as they are, no framing. */
  raw(bytes: string | Uint8Array): this {
    if (!this.#socket.destroyed) this.#socket.write(bytes)
    return this
  }

  /** RST. */
  reset(): void {
    this.#finished = true
    this.#socket.resetAndDestroy()
  }

  /** FIN without a proper end of the answer. */
  fin(): void {
    this.#finished = true
    this.#socket.end()
  }

  #settle(keepAlive: boolean): void {
    if (this.#finished) return
    this.#finished = true
    this.#onDone(keepAlive)
  }
}

const REFUSALS: Readonly<Record<number, readonly [type: string, message: string]>> = {
  429: ['RateLimitError', 'too many requests'],
  500: ['InternalServerError', 'boom'],
  503: ['Service Unavailable', 'currently busy'],
}
const CRLF = Buffer.from('\r\n')

function headText(status: number, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`
}

function cutUp(bytes: Buffer, plan: CutPlan): Buffer[] {
  if (plan === 'whole' || bytes.length === 0) return [bytes]
  const sizes = plan === 'bytes' ? [1] : plan
  const pieces: Buffer[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1)
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

/** A chunk of a chat stream in vLLM's shape. */
export function chatChunk(delta: object, finishReason: string | null = null): Record<string, unknown> {
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion.chunk',
    created: 1795965696,
    model: 'tiny',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
  }
}
