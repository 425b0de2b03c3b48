/** One socket to a replica, which serves one exchange after another and closes when it can't be trusted any more. */
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Ms } from '../core/units.ts'
import type { Stop } from './clock.ts'
import type { ResponseHead } from './response-head.ts'
import { type AnswerSink, ResponseReader } from './response-reader.ts'

/** The exchange that a line serves at the moment. */
export interface LineUser {
  /** The socket is connected, and the request is on its way. */
  onSent(reused: boolean): void
  onHead(head: ResponseHead): void
  onBody(bytes: Buffer): void
  /** `reusable`: the socket may serve another exchange. */
  onEnd(reusable: boolean): void
  /** The socket broke, or said what is no answer. */
  onBroken(error: NodeJS.ErrnoException): void
}

/** Where a line leads, and what it needs of its owner. */
export interface LineHost {
  readonly url: URL
  readonly connectTimeoutMs: Ms
  after(delayMs: Ms, run: () => void): Stop
  /** A session of an earlier TLS socket, to shorten the handshake. */
  tlsSession: Buffer | undefined
  /** Its socket is closed; idle or not, it serves nobody any more. */
  onClosed(line: Line): void
}

/** The engine's side of a connection is looked for when it has been silent for that long, in ms. */
const TCP_KEEP_ALIVE_MS: Ms = 60_000
/**
 * As much as is read at a time. It bounds what a client that stands still makes us keep of its stream: Node's own reads
 * of 64 KiB would leave one of them with the client's socket and another with the engine's.
 */
const READ_BYTES = 8 * 1024
/** One for all lines: each read is copied out of it before the next one begins. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES)

export class Line implements AnswerSink {
  /** It waits for an exchange until then, on the owner's clock; undefined while it has one. */
  idleUntilMs: Ms | undefined
  readonly #socket: Socket
  readonly #reader: ResponseReader
  #user: LineUser | undefined
  #request: readonly Uint8Array[] = []
  #connected = false
  readonly #stopConnecting: Stop
  #served = 0
  #head: ResponseHead | undefined

  constructor(host: LineHost) {
    this.#reader = new ResponseReader(this)
    this.#socket = connect(host, (bytes) => this.#onData(bytes))
    const connected = host.url.protocol === 'https:' ? 'secureConnect' : 'connect'
    this.#socket.once(connected, () => this.#onConnected())
    this.#stopConnecting = host.after(host.connectTimeoutMs, () => this.#connectLimit())
    this.#socket.on('end', () => this.#onEof())
    this.#socket.on('error', (error) => this.#broken(error))
    this.#socket.once('close', () => {
      this.#broken(closedByEngine())
      host.onClosed(this)
    })
  }

  /** How long the engine said that it keeps this socket idle, in ms. */
  get toldIdleMs(): Ms | undefined {
    return this.#head?.idleMs
  }

  /** Whether its socket is still open at both ends, as far as is known. */
  get open(): boolean {
    return this.#socket.readable && this.#socket.writable
  }

  /** Sends a request, at once or as soon as there is a connection. Only one at a time. */
  send(request: readonly Uint8Array[], user: LineUser): void {
    this.#user = user
    this.#head = undefined
    this.#reader.begin()
    if (this.#connected) this.#write(request)
    else this.#request = request
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Closes the socket at once, also one that is still connecting. */
  destroy(): void {
    this.#user = undefined
    this.#request = []
    this.#stopConnecting()
    this.#reader.stop()
    this.#socket.destroy()
  }

  onHead(head: ResponseHead): void {
    this.#head = head
    this.#user?.onHead(head)
  }

  onBody(bytes: Buffer): void {
    this.#user?.onBody(bytes)
  }

  onEnd(clean: boolean): void {
    const user = this.#user
    this.#user = undefined
    this.#served += 1
    // An answer may end while its request is still being sent: what is left of it would begin the next one.
    const reusable = clean && this.#head?.keepAlive === true && this.#socket.writableLength === 0
    if (!reusable) this.#socket.destroy()
    else if (this.#socket.isPaused()) this.#socket.resume()
    user?.onEnd(reusable)
  }

  #onConnected(): void {
    this.#connected = true
    this.#stopConnecting()
    this.#socket.setNoDelay(true).setKeepAlive(true, TCP_KEEP_ALIVE_MS)
    const request = this.#request
    this.#request = []
    if (this.#user !== undefined) this.#write(request)
  }

  /** After a loop that was held up, the connection may stand and only not have been told of: sockets are looked at first. */
  #connectLimit(): void {
    const judge = () => {
      if (!this.#connected) this.#broken(connectingTookTooLong())
    }
    // The first of the two may come before the sockets' turn.
    setImmediate(() => setImmediate(judge))
  }

  #write(request: readonly Uint8Array[]): void {
    this.#user?.onSent(this.#served > 0)
    if (request.length > 1) this.#socket.cork()
    for (const bytes of request) this.#socket.write(bytes)
    if (request.length > 1) this.#socket.uncork()
  }

  #onData(bytes: Buffer): void {
    // Nobody has asked for anything: whatever it is, the next answer must not begin with it.
    if (this.#user === undefined) {
      this.destroy()
      return
    }
    try {
      this.#reader.feed(bytes)
    } catch (error) {
      this.#broken(error as Error)
    }
  }

  #onEof(): void {
    if (this.#user !== undefined && this.#reader.ended()) return
    this.#broken(closedByEngine())
  }

  #broken(error: NodeJS.ErrnoException): void {
    const user = this.#user
    this.destroy()
    user?.onBroken(error)
  }
}

function closedByEngine(): NodeJS.ErrnoException {
  return Object.assign(new Error('the engine closed the connection'), { code: 'ECONNRESET' })
}

function connectingTookTooLong(): NodeJS.ErrnoException {
  return Object.assign(new Error('connecting took too long'), { code: 'CONNECT_TIMEOUT' })
}

function connect(host: LineHost, onData: (bytes: Buffer) => void): Socket {
  const { hostname, port, protocol } = host.url
  const name = hostname.replace(/^\[(.*)\]$/, '$1')
  if (protocol !== 'https:') {
    const callback = (count: number) => {
      onData(Buffer.from(readBuffer.subarray(0, count)))
      return true
    }
    return connectTcp({ host: name, port: Number(port || 80), onread: { buffer: readBuffer, callback } })
  }
  const named = /^[\d.]+$|:/.test(name) ? {} : { servername: name }
  const session = host.tlsSession === undefined ? {} : { session: host.tlsSession }
  const to = { host: name, port: Number(port || 443), ALPNProtocols: ['http/1.1'] }
  const socket = connectTls({ ...to, ...named, ...session })
  socket.on('data', onData)
  socket.on('session', (told) => {
    host.tlsSession = told
  })
  return socket
}
