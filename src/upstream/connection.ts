/** All sockets to one replica: opened when needed, kept warm for less than the engine keeps them, closed at once on abort. */
import { PassingSet } from '../core/passing-map.ts'
import type { Ms } from '../core/units.ts'
import type { Clock, Stop } from './clock.ts'
import { Exchange, type ExchangeHost } from './exchange.ts'
import { Line, type LineHost } from './line.ts'
import type { OpenRequest, UpstreamHandler, UpstreamStream } from './ports.ts'
import { type RequestFrame, requestBytes } from './request-bytes.ts'
import type { Traffic } from './traffic.ts'

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
/** An idle socket is closed by so much sooner than its engine says that it closes it. */
const KEEP_ALIVE_MARGIN_MS: Ms = 1000

export class Connection implements ExchangeHost, LineHost, Traffic {
  readonly url: URL
  readonly connectTimeoutMs: Ms
  tlsSession: Buffer | undefined
  readonly #frame: RequestFrame
  readonly #keepAliveMs: Ms
  readonly #clock: Clock
  /** The last one was used last. */
  readonly #idle: Line[] = []
  readonly #lines = new Set<Line>()
  readonly #exchanges = new PassingSet<Exchange>()
  #stopSweep: Stop | undefined
  #stopIdle: Stop | undefined
  #lastBytesAtMs: Ms = Number.NEGATIVE_INFINITY
  #busySinceMs: Ms = Number.NEGATIVE_INFINITY
  #retries = 0
  #closed = false

  constructor(options: ConnectionOptions, clock: Clock) {
    this.url = new URL(options.url)
    this.#keepAliveMs = options.keepAliveMs ?? KEEP_ALIVE_MS
    this.connectTimeoutMs = options.connectTimeoutMs
    this.#clock = clock
    // Compressed frames could neither be tapped nor be passed on as they come.
    const identity = { 'accept-encoding': 'identity' }
    const { key } = options
    this.#frame = {
      host: this.url.host,
      prefix: this.url.pathname.replace(/\/+$/, ''),
      headers: key === undefined ? identity : { ...identity, authorization: `Bearer ${key}` },
    }
  }

  /** Sockets open or opening, idle ones included. */
  get openSockets(): number {
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
  /** Since when exchanges have been waiting for the engine, without a pause. */
  get busySinceMs(): Ms {
    return this.#busySinceMs
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
    if (!this.#isAwaiting()) this.#busySinceMs = this.#clock.nowMs()
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
    this.#stopIdle?.()
    this.#stopIdle = undefined
    this.#idle.length = 0
    for (const line of this.#lines) line.destroy()
  }

  dispatch(request: OpenRequest, exchange: Exchange, fresh: boolean): Line {
    const bytes = requestBytes(request, this.#frame)
    if (fresh) this.#retries += 1
    const line = (fresh ? undefined : this.#takeIdle()) ?? new Line(this)
    this.#lines.add(line)
    line.send(bytes, exchange)
    return line
  }

  completed(exchange: Exchange, line: Line | undefined, reusable: boolean): void {
    this.#lastBytesAtMs = this.#clock.nowMs()
    this.failed(exchange)
    if (line === undefined || !reusable || this.#closed) return
    const toldMs = (line.toldIdleMs ?? Number.POSITIVE_INFINITY) - KEEP_ALIVE_MARGIN_MS
    const idleMs = Math.min(this.#keepAliveMs, toldMs)
    if (idleMs <= 0) {
      line.destroy()
      return
    }
    line.idleUntilMs = this.#lastBytesAtMs + idleMs
    this.#idle.push(line)
    this.#stopIdle ??= this.#clock.after(idleMs, () => this.#closeIdle())
  }

  failed(exchange: Exchange): void {
    this.#exchanges.delete(exchange)
  }

  onClosed(line: Line): void {
    this.#lines.delete(line)
    const at = line.idleUntilMs === undefined ? -1 : this.#idle.indexOf(line)
    if (at >= 0) this.#idle.splice(at, 1)
  }

  #isAwaiting(): boolean {
    for (const exchange of this.#exchanges) if (!exchange.paused) return true
    return false
  }

  /** The line used last is the warmest, and lets the others grow old enough to be closed. */
  #takeIdle(): Line | undefined {
    const nowMs = this.#clock.nowMs()
    for (let line = this.#idle.pop(); line !== undefined; line = this.#idle.pop()) {
      const fit = line.open && nowMs < (line.idleUntilMs ?? 0)
      line.idleUntilMs = undefined
      if (fit) return line
      line.destroy()
    }
    return undefined
  }

  /** Closes the lines that have idled for too long, and looks again when the next one will have. */
  #closeIdle(): void {
    this.#stopIdle = undefined
    const nowMs = this.#clock.nowMs()
    let nextAtMs = Number.POSITIVE_INFINITY
    for (const line of this.#idle.splice(0)) {
      const untilMs = line.idleUntilMs ?? 0
      if (untilMs <= nowMs) line.destroy()
      else {
        this.#idle.push(line)
        nextAtMs = Math.min(nextAtMs, untilMs)
      }
    }
    if (this.#idle.length > 0)
      this.#stopIdle = this.#clock.after(Math.max(1, nextAtMs - nowMs), () => this.#closeIdle())
  }

  /** Goes on until it finds none: a timer for each exchange that is alone costs more than one look too many. */
  #sweep(): void {
    if (this.#exchanges.size === 0) {
      this.#stopSweep?.()
      this.#stopSweep = undefined
      return
    }
    const nowMs = this.#clock.nowMs()
    for (const exchange of [...this.#exchanges]) {
      if (exchange.sweep(nowMs)) this.#lastBytesAtMs = nowMs
    }
  }
}
