/** One request and its answer on an upstream socket: faults named, limits watched, told to its owner exactly once. */
import type { Ms } from '../core/units.ts'
import type { Line, LineUser } from './line.ts'
import type { OpenRequest, UpstreamFault, UpstreamHandler, UpstreamStream } from './ports.ts'
import type { ResponseHead } from './response-head.ts'

/** Codes that mean no connection came about, so that nothing was sent. */
const REFUSED = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EADDRNOTAVAIL',
])
const RESET = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED'])
const TIMED_OUT = new Set(['CONNECT_TIMEOUT', 'ETIMEDOUT'])

/**
 * A close that races with a request on a kept-alive socket shows within a round trip. A later reset means that the
 * engine had begun to work, and a second copy must not be started.
 */
const STALE_SOCKET_WINDOW_MS: Ms = 1000

/** What an exchange needs of the connections it runs on. */
export interface ExchangeHost {
  nowMs(): Ms
  /** Puts the request on a socket; `fresh` forbids one that was used before. Throws a RangeError when it is none. */
  dispatch(request: OpenRequest, exchange: Exchange, fresh: boolean): Line
  /** The answer has come whole; its socket may be used again when `reusable`. */
  completed(exchange: Exchange, line: Line | undefined, reusable: boolean): void
  /** The exchange is over, and its socket is closed. */
  failed(exchange: Exchange): void
}

function causeOf(code: string): UpstreamFault['cause'] {
  if (REFUSED.has(code)) return 'refused'
  if (RESET.has(code)) return 'reset'
  if (TIMED_OUT.has(code)) return 'timeout'
  return 'protocol'
}

/** Clients are told this, so it names no address: system errors do. */
function messageOf(error: NodeJS.ErrnoException, cause: UpstreamFault['cause']): string {
  const { code = '', syscall, message } = error
  return syscall === undefined ? message || cause : `${syscall} ${code}`
}

export class Exchange implements UpstreamStream, LineUser {
  readonly #firstByteMs: Ms
  readonly #betweenBytesMs: Ms
  readonly #host: ExchangeHost
  readonly #handler: UpstreamHandler
  /** Until its answer begins: after that it is not sent again. */
  #request: OpenRequest | undefined
  #line: Line | undefined
  #phase: UpstreamFault['phase'] = 'connect'
  #sentAtMs: Ms | undefined
  #reused = false
  #retried = false
  #settled = false
  #paused = false
  #bodyStarted = false
  /** Bytes came since the last sweep: one write per chunk is all that the limits cost. */
  #alive = false
  #quietSinceMs: Ms

  constructor(host: ExchangeHost, request: OpenRequest, handler: UpstreamHandler) {
    this.#host = host
    this.#request = request
    this.#firstByteMs = request.firstByteTimeoutMs
    this.#betweenBytesMs = request.betweenBytesTimeoutMs
    this.#handler = handler
    this.#quietSinceMs = host.nowMs()
  }

  start(): void {
    this.#dispatch(false)
  }

  pause(): void {
    this.#paused = true
    this.#line?.pause()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#alive = true
    this.#line?.resume()
  }

  abort(): void {
    this.#fail({
      phase: this.#phase,
      cause: 'aborted',
      sent: this.#sentAtMs !== undefined,
      message: 'closed by us',
    })
  }

  /** Ends it for an engine that shows no life. */
  breakOff(message: string): void {
    this.#fail({ phase: this.#phase, cause: 'silent', sent: this.#sentAtMs !== undefined, message })
  }

  /** Our own side has asked it to wait. */
  get paused(): boolean {
    return this.#paused
  }

  /** How long no byte has come, as of the last sweep, in ms. */
  quietForMs(nowMs: Ms): Ms {
    return this.#alive ? 0 : nowMs - this.#quietSinceMs
  }

  /** Checks the limits. Returns whether bytes came since the last call. */
  sweep(nowMs: Ms): boolean {
    if (this.#alive || this.#paused) {
      const came = this.#alive
      this.#alive = false
      this.#quietSinceMs = nowMs
      return came
    }
    const limitMs = this.#bodyStarted ? this.#betweenBytesMs : this.#firstByteMs
    if (nowMs - this.#quietSinceMs < limitMs) return false
    const limit = this.#bodyStarted ? 'between_bytes' : 'first_byte'
    const message = `nothing came for ${limitMs} ms (timeouts.${limit})`
    this.#fail({ phase: this.#phase, cause: 'timeout', sent: this.#sentAtMs !== undefined, message })
    return false
  }

  onSent(reused: boolean): void {
    this.#phase = 'headers'
    this.#reused = reused
    this.#sentAtMs = this.#host.nowMs()
  }

  onHead({ status, headers }: ResponseHead): void {
    if (this.#settled) return
    this.#phase = 'body'
    this.#request = undefined
    this.#handler.onHeaders(status, headers)
  }

  onBody(bytes: Buffer): void {
    if (this.#settled) return
    this.#alive = true
    this.#bodyStarted = true
    this.#handler.onBytes(bytes)
  }

  onEnd(reusable: boolean): void {
    if (this.#settled) return
    this.#settled = true
    this.#host.completed(this, this.#line, reusable)
    this.#handler.onEnd()
  }

  onBroken(error: NodeJS.ErrnoException): void {
    if (this.#settled) return
    const cause = causeOf(error.code ?? '')
    if (this.#mayRetry(cause)) {
      this.#retried = true
      this.#phase = 'connect'
      this.#dispatch(true)
      return
    }
    const sent = this.#sentAtMs !== undefined
    this.#fail({ phase: this.#phase, cause, sent, message: messageOf(error, cause) })
  }

  #dispatch(fresh: boolean): void {
    if (this.#request === undefined) return
    try {
      this.#line = this.#host.dispatch(this.#request, this, fresh)
    } catch (error) {
      const message = error instanceof RangeError ? error.message : 'the request could not be sent'
      this.#fail({ phase: 'connect', cause: 'protocol', sent: false, message })
      return
    }
    if (this.#paused) this.#line.pause()
  }

  #mayRetry(cause: UpstreamFault['cause']): boolean {
    if (cause !== 'reset' || this.#phase !== 'headers' || !this.#reused || this.#retried) return false
    return this.#host.nowMs() - (this.#sentAtMs ?? 0) < STALE_SOCKET_WINDOW_MS
  }

  /** Settles with a fault: the socket closes now, the owner hears of it in the next microtask. */
  #fail(fault: UpstreamFault): void {
    if (this.#settled) return
    this.#settled = true
    this.#host.failed(this)
    this.#line?.destroy()
    queueMicrotask(() => this.#handler.onFault(fault))
  }
}
