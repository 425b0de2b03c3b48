/** An HTTP/1.1 client on a bare socket: sees every byte when it comes, and leaves in whatever manner the test wants. */
import { connect, type Socket } from 'node:net'
import { until, within } from './deadline.ts'

export interface RawRequest {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Objects are sent as JSON. */
  readonly body?: string | Uint8Array | object
}

export class RawClient {
  readonly socket: Socket
  #pieces: Buffer[] = []
  /** Bytes received, framing included. */
  receivedBytes = 0
  #ended = false
  #reset = false

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('data', (bytes) => {
      this.#pieces.push(bytes)
      this.receivedBytes += bytes.length
    })
    this.socket.on('end', () => {
      this.#ended = true
    })
    this.socket.on('error', () => {
      this.#reset = true
    })
    this.socket.on('close', () => {
      this.#ended = true
    })
  }

  /** Sends a whole request. */
  send(request: RawRequest): this {
    const { body, headers = {} } = request
    const bytes = body === undefined ? undefined : bytesOf(body)
    const all: Record<string, string> = { host: 'sluice.test', ...headers }
    if (bytes !== undefined) {
      all['content-type'] ??= 'application/json'
      all['content-length'] ??= String(bytes.length)
    }
    const rows = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    this.raw(`${request.method ?? 'POST'} ${request.path ?? '/v1/chat/completions'} HTTP/1.1\r\n`)
    this.raw(`${rows.join('')}\r\n`)
    if (bytes !== undefined) this.raw(bytes)
    return this
  }

  raw(bytes: string | Uint8Array): this {
    if (!this.socket.destroyed) this.socket.write(bytes)
    return this
  }

  /** Everything received, framing included. */
  get received(): Buffer {
    const [first, ...rest] = this.#pieces
    if (first === undefined) return Buffer.alloc(0)
    if (rest.length > 0) this.#pieces = [Buffer.concat(this.#pieces)]
    return this.#pieces[0] ?? first
  }
  get ended(): boolean {
    return this.#ended
  }
  get wasReset(): boolean {
    return this.#reset
  }

  get #headEnd(): number {
    return this.received.indexOf('\r\n\r\n')
  }
  /** 0 until the head is there. */
  get status(): number {
    return this.#headEnd < 0 ? 0 : Number(this.received.toString('latin1', 9, 12))
  }
  get headers(): Readonly<Record<string, string>> {
    const rows = this.received.toString('latin1', 0, Math.max(0, this.#headEnd)).split('\r\n').slice(1)
    return Object.fromEntries(
      rows.map((row) => [
        row.slice(0, row.indexOf(':')).toLowerCase(),
        row.slice(row.indexOf(':') + 1).trim(),
      ]),
    )
  }
  /** The body so far, chunk framing removed. */
  get body(): Buffer {
    if (this.#headEnd < 0) return Buffer.alloc(0)
    const rest = this.received.subarray(this.#headEnd + 4)
    return this.headers['transfer-encoding'] === 'chunked' ? dechunk(rest).bytes : rest
  }
  get text(): string {
    return this.body.toString('utf8')
  }
  get json(): Record<string, unknown> {
    return JSON.parse(this.text) as Record<string, unknown>
  }
  /** Whether the answer has come to its own end. */
  get complete(): boolean {
    if (this.#headEnd < 0) return false
    const { headers } = this
    if (headers['transfer-encoding'] === 'chunked') {
      return dechunk(this.received.subarray(this.#headEnd + 4)).complete
    }
    const length = headers['content-length']
    return length === undefined ? this.#ended : this.body.length >= Number(length)
  }

  async waitStatus(status: number, label = `status ${status}`): Promise<this> {
    await until(() => this.status !== 0 || this.#ended, label)
    if (this.status !== status) throw new Error(`${label}: got ${this.status} ${this.text}`)
    return this
  }

  async waitText(text: string, label = `the client to receive ${JSON.stringify(text)}`): Promise<this> {
    await until(() => this.text.includes(text), label)
    return this
  }

  async waitComplete(label = 'a complete answer', limitMs?: number): Promise<this> {
    await until(() => this.complete || this.#ended, label, limitMs)
    if (!this.complete) throw new Error(`${label}: cut after ${JSON.stringify(this.text.slice(-300))}`)
    return this
  }

  async waitEnded(label = 'the connection to end', limitMs?: number): Promise<this> {
    await until(() => this.#ended, label, limitMs)
    return this
  }

  /** Reads nothing any more: the kernel's buffers fill, and then the sender has to wait. */
  stall(): this {
    this.socket.pause()
    return this
  }

  /** Reads on after a stall. */
  read(): this {
    this.socket.resume()
    return this
  }

  /** Sends bytes in small pieces with pauses; ends early, and without complaint, when the other side closes. */
  async trickle(
    bytes: string | Uint8Array,
    { pieceBytes = 1, everyMs = 5 }: { pieceBytes?: number; everyMs?: number } = {},
  ): Promise<void> {
    const all = Buffer.from(bytes as string)
    for (let at = 0; at < all.length && !this.socket.destroyed && !this.#ended; at += pieceBytes) {
      this.raw(all.subarray(at, at + pieceBytes))
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
  }

  /** Goes as a killed client does: the socket is closed, and what still comes is answered with RST. */
  leave(): void {
    this.socket.destroy()
  }

  /** RST at once. */
  vanish(): void {
    this.socket.resetAndDestroy()
  }

  /** FIN, and goes on reading. */
  halfClose(): this {
    this.socket.end()
    return this
  }

  async connected(): Promise<this> {
    if (this.socket.connecting) {
      await within(
        new Promise<void>((resolve) => this.socket.once('connect', resolve)),
        'the client to connect',
      )
    }
    return this
  }
}

function bytesOf(body: string | Uint8Array | object): Uint8Array {
  if (body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

function dechunk(bytes: Buffer): { readonly bytes: Buffer; readonly complete: boolean } {
  const pieces: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return { bytes: Buffer.concat(pieces), complete: false }
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    if (size === 0) return { bytes: Buffer.concat(pieces), complete: true }
    pieces.push(bytes.subarray(lineEnd + 2, Math.min(bytes.length, lineEnd + 2 + size)))
    at = lineEnd + 2 + size + 2
    if (at > bytes.length) return { bytes: Buffer.concat(pieces), complete: false }
  }
}
