/** One request that a scripted engine received, and every way in which the test may answer or break it. */
import type { Socket } from 'node:net'
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

export interface FrameOptions {
  readonly lineEnd?: '\n' | '\r\n' | '\r'
  readonly event?: string
  /** Text between `data:` and the payload. */
  readonly space?: string
}

export class ScriptedExchange {
  readonly request: ReceivedRequest
  readonly #socket: Socket
  readonly #onDone: (keepAlive: boolean) => void
  #chunked = false
  #finished = false
  /** How body bytes are cut into writes from now on. */
  cut: CutPlan = 'whole'
  lineEnd: '\n' | '\r\n' | '\r' = '\n'

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

  /** Sends status and headers of a chunked answer: an event stream unless told otherwise. */
  head(status = 200, headers: Readonly<Record<string, string>> = {}): this {
    this.#chunked = true
    const all = {
      'content-type': 'text/event-stream; charset=utf-8',
      ...headers,
      'transfer-encoding': 'chunked',
    }
    this.raw(headText(status, all))
    return this
  }

  /** Sends body bytes, one HTTP chunk per piece of the cut plan. */
  write(bytes: string | Uint8Array): this {
    for (const piece of cutUp(Buffer.from(bytes as string), this.cut)) {
      this.raw(
        this.#chunked ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, CRLF]) : piece,
      )
    }
    return this
  }

  /** Sends one event with `data` as its payload; objects are sent as JSON. */
  frame(data: string | object, options: FrameOptions = {}): this {
    const end = options.lineEnd ?? this.lineEnd
    const text = typeof data === 'string' ? data : JSON.stringify(data)
    const event = options.event === undefined ? '' : `event: ${options.event}${end}`
    return this.write(`${event}data:${options.space ?? ' '}${text}${end}${end}`)
  }

  comment(text = ' keep-alive'): this {
    return this.write(`:${text}${this.lineEnd}${this.lineEnd}`)
  }

  /** The role frame that chat streams begin with. */
  role(): this {
    return this.frame(chatChunk({ role: 'assistant', content: '' }))
  }

  /** One content frame of a chat stream. */
  token(text = ' token'): this {
    return this.frame(chatChunk({ content: text }))
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

  /** The clean end of a chunked answer. */
  end(): void {
    this.raw('0\r\n\r\n')
    this.#settle(true)
  }

  /** A whole answer with a length. */
  respond(status: number, body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): void {
    const bytes = Buffer.from(body as string)
    this.raw(headText(status, { ...headers, 'content-length': String(bytes.length) }))
    this.raw(bytes)
    this.#settle(headers.connection !== 'close')
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
