/** All sockets to one replica: opened when needed, kept warm for less than the engine keeps them, closed at once on abort. */
import type { Socket } from 'node:net'
import { buildConnector, Client } from 'undici'
import type { Ms } from '../core/units.ts'
import type { Clock, Stop } from './clock.ts'
import { Exchange, type ExchangeHost, type Line } from './exchange.ts'
import type { OpenRequest, UpstreamHandler, UpstreamStream } from './ports.ts'

export interface ConnectionOptions {
  /** Scheme, host and port; a path in it is put before every route. */
  readonly url: string
  /** Sent as a bearer token to this replica only. */
  readonly key?: string
  readonly connectTimeoutMs: Ms
  /** How long an idle socket is kept. uvicorn closes its own after 5 s, so less than that. */
  readonly keepAliveMs?: Ms
}

/** The limits of exchanges are checked this often, and are late by no more. */
const SWEEP_MS: Ms = 100
const KEEP_ALIVE_MS: Ms = 4000
/** Up to here the pieces of a body are joined, which is cheaper than one write each. */
const JOIN_BYTES = 256 * 1024

type Connect = buildConnector.connector

/**
 * A client of the library is one socket here, and a list of idle ones takes the place of its pool: a dispatch costs the
 * same with a thousand streams open, and whether a socket was used before (the safe retry hangs on it) is known.
 */
class SocketLine implements Line {
  readonly client: Client
  served = 0
  /** In the list of idle lines. */
  idle = false
  #socket: Socket | undefined
  readonly #onDestroyed: (line: SocketLine) => void

  constructor(url: URL, connect: Connect, keepAliveMs: Ms, onDestroyed: (line: SocketLine) => void) {
    this.#onDestroyed = onDestroyed
    const tracked: Connect = (options, callback) => {
      this.#socket = connect(options, callback) as unknown as Socket
      return this.#socket
    }
    this.client = new Client(url.origin, {
      connect: tracked,
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    this.client.on('connect', () => {
      this.served = 0
    })
    this.client.on('disconnect', () => {
      // Of a line in use the exchange hears itself.
      if (this.idle) this.destroy()
    })
  }

  destroy(): void {
    this.#onDestroyed(this)
    // A socket that is still connecting is not the client's yet.
    this.#socket?.destroy()
    void this.client.destroy().catch(() => undefined)
  }
}

function joined(pieces: readonly Uint8Array[], bytes: number): Uint8Array | Iterable<Uint8Array> | null {
  const [first] = pieces
  if (first === undefined || bytes === 0) return null
  if (pieces.length === 1) return first
  return bytes <= JOIN_BYTES ? Buffer.concat(pieces) : pieces
}

export class Connection implements ExchangeHost {
  readonly #url: URL
  readonly #prefix: string
  readonly #keepAliveMs: Ms
  readonly #clock: Clock
  readonly #connect: Connect
  readonly #ownHeaders: Readonly<Record<string, string>>
  readonly #idle: SocketLine[] = []
  readonly #lines = new Set<SocketLine>()
  readonly #sockets = new Set<object>()
  readonly #exchanges = new Set<Exchange>()
  #stopSweep: Stop | undefined
  #lastBytesAtMs: Ms = Number.NEGATIVE_INFINITY
  #retries = 0
  #closed = false

  constructor(options: ConnectionOptions, clock: Clock) {
    this.#url = new URL(options.url)
    this.#prefix = this.#url.pathname.replace(/\/+$/, '')
    this.#keepAliveMs = options.keepAliveMs ?? KEEP_ALIVE_MS
    this.#clock = clock
    this.#connect = this.#tracking(buildConnector({ timeout: options.connectTimeoutMs }))
    // Compressed frames could neither be tapped nor be passed on as they come.
    const identity = { 'accept-encoding': 'identity' }
    this.#ownHeaders =
      options.key === undefined ? identity : { ...identity, authorization: `Bearer ${options.key}` }
  }

  /** Sockets open or opening, idle ones included. */
  get openSockets(): number {
    return this.#sockets.size
  }
  /** Sockets kept with all that belongs to them; never more than are open or opening, a turn of the loop aside. */
  get lines(): number {
    return this.#lines.size
  }
  /** Exchanges under way. */
  get inFlight(): number {
    return this.#exchanges.size
  }
  /** Exchanges that wait for the engine, and not for us. */
  get awaiting(): number {
    let count = 0
    for (const exchange of this.#exchanges) if (!exchange.paused) count += 1
    return count
  }
  /** Whether any exchange waits for the engine. */
  get isAwaiting(): boolean {
    for (const exchange of this.#exchanges) if (!exchange.paused) return true
    return false
  }
  /** When bytes last came on any exchange, within a sweep's period. */
  get lastBytesAtMs(): Ms {
    return this.#lastBytesAtMs
  }
  /** Requests sent again because a kept-alive socket had been closed under them. */
  get retries(): number {
    return this.#retries
  }

  nowMs(): Ms {
    return this.#clock.nowMs()
  }

  /** A timer on the same clock. */
  after(delayMs: Ms, run: () => void): Stop {
    return this.#clock.after(delayMs, run)
  }

  open(request: OpenRequest, handler: UpstreamHandler): UpstreamStream {
    const exchange = new Exchange(this, request, handler)
    this.#exchanges.add(exchange)
    this.#stopSweep ??= this.#clock.every(SWEEP_MS, () => this.#sweep())
    if (this.#closed) exchange.abort()
    else exchange.start()
    return exchange
  }

  /** Ends the exchanges on which nothing has come for `quietMs`: their engine has gone without closing them. */
  breakOffSilent(quietMs: Ms, message: string): number {
    const nowMs = this.#clock.nowMs()
    const silent = [...this.#exchanges].filter((exchange) => exchange.quietForMs(nowMs) >= quietMs)
    for (const exchange of silent) exchange.breakOff(message)
    return silent.length
  }

  /** Aborts what is under way and closes every socket. */
  async close(): Promise<void> {
    this.#closed = true
    for (const exchange of [...this.#exchanges]) exchange.abort()
    this.#stopSweep?.()
    this.#stopSweep = undefined
    const lines = [...this.#lines]
    this.#lines.clear()
    this.#idle.length = 0
    await Promise.allSettled(lines.map((line) => line.client.destroy()))
  }

  dispatch(exchange: Exchange, fresh: boolean): Line {
    const line = this.#take(fresh)
    if (fresh) this.#retries += 1
    const { request } = exchange
    const bytes = request.body.reduce((sum, piece) => sum + piece.length, 0)
    const headers: Record<string, string> = { ...request.headers, ...this.#ownHeaders }
    if (request.method === 'POST') headers['content-length'] = String(bytes)
    const options = {
      path: this.#prefix + request.path,
      method: request.method,
      headers,
      body: joined(request.body, bytes),
    }
    line.client.dispatch(options as Parameters<Client['dispatch']>[0], exchange)
    return line
  }

  release(exchange: Exchange, line: Line | undefined, reusable: boolean): void {
    this.#exchanges.delete(exchange)
    if (reusable) this.#lastBytesAtMs = this.#clock.nowMs()
    if (this.#exchanges.size === 0) {
      this.#stopSweep?.()
      this.#stopSweep = undefined
    }
    if (!(line instanceof SocketLine)) return
    line.served += 1
    if (reusable && !this.#closed && this.#lines.has(line)) {
      line.idle = true
      this.#idle.push(line)
    }
  }

  /** The line used last is the warmest, and lets the others grow old enough to be closed. */
  #take(fresh: boolean): SocketLine {
    const idle = fresh ? undefined : this.#idle.pop()
    if (idle !== undefined) {
      idle.idle = false
      return idle
    }
    const line = new SocketLine(this.#url, this.#connect, this.#keepAliveMs, (gone) => this.#forget(gone))
    this.#lines.add(line)
    return line
  }

  #forget(line: SocketLine): void {
    this.#lines.delete(line)
    if (!line.idle) return
    line.idle = false
    this.#idle.splice(this.#idle.indexOf(line), 1)
  }

  #tracking(connect: Connect): Connect {
    return (options, callback) => {
      const socket = connect(options, callback) as unknown as Socket
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      return socket as unknown as ReturnType<Connect>
    }
  }

  #sweep(): void {
    const nowMs = this.#clock.nowMs()
    for (const exchange of [...this.#exchanges]) {
      if (exchange.sweep(nowMs)) this.#lastBytesAtMs = nowMs
    }
  }
}
