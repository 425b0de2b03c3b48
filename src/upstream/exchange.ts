/** One request and its answer on an upstream socket: faults named, limits watched, told to its owner exactly once. */
import type { Dispatcher } from 'undici'
import type { Ms } from '../core/units.ts'
import type { OpenRequest, UpstreamFault, UpstreamHandler, UpstreamStream } from './ports.ts'

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
const RESET = new Set([
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_SOCKET',
  'ECONNABORTED',
  'UND_ERR_INFO',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
])
const TIMED_OUT = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'])

/**
 * A close that races with a request on a kept-alive socket shows within a round trip. A later reset means that the
 * engine had begun to work, and a second copy must not be started.
 */
const STALE_SOCKET_WINDOW_MS: Ms = 1000

/** What an exchange needs of the connections it runs on. */
export interface ExchangeHost {
  nowMs(): Ms
  /** Puts the request on a socket; `fresh` forbids one that was used before. */
  dispatch(exchange: Exchange, fresh: boolean): Line
  /** The exchange is over; its socket may be used again when `reusable`. */
  release(exchange: Exchange, line: Line | undefined, reusable: boolean): void
}

/** A socket that serves one exchange after another. */
export interface Line {
  /** Exchanges that the present socket has served before. */
  readonly served: number
  /** Closes the socket at once, also one that is still connecting. */
  destroy(): void
}

function causeOf(code: string): UpstreamFault['cause'] {
  if (REFUSED.has(code)) return 'refused'
  if (RESET.has(code)) return 'reset'
  if (TIMED_OUT.has(code)) return 'timeout'
  return 'protocol'
}

/** Clients are told this, so it names no address: system errors and connect timeouts do. */
function messageOf(error: NodeJS.ErrnoException, cause: UpstreamFault['cause']): string {
  const { code = '', syscall, message } = error
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connecting took too long'
  return syscall === undefined ? message || cause : `${syscall} ${code}`
}

export class Exchange implements UpstreamStream, Dispatcher.DispatchHandler {
  readonly request: OpenRequest
  readonly #host: ExchangeHost
  readonly #handler: UpstreamHandler
  #line: Line | undefined
  #controller: Dispatcher.DispatchController | undefined
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
    this.request = request
    this.#handler = handler
    this.#quietSinceMs = host.nowMs()
  }

  start(): void {
    this.#dispatch(false)
  }

  pause(): void {
    this.#paused = true
    this.#controller?.pause()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#alive = true
    this.#controller?.resume()
  }

  abort(): void {
    this.#fail({
      phase: this.#phase,
      cause: 'aborted',
      sent: this.#sentAtMs !== undefined,
      message: 'closed by us',
    })
  }

  /** Ends it as if the engine had closed the socket. */
  breakOff(message: string): void {
    this.#fail({ phase: this.#phase, cause: 'reset', sent: this.#sentAtMs !== undefined, message })
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
    const limitMs = this.#bodyStarted ? this.request.betweenBytesTimeoutMs : this.request.firstByteTimeoutMs
    if (nowMs - this.#quietSinceMs < limitMs) return false
    const limit = this.#bodyStarted ? 'between_bytes' : 'first_byte'
    const message = `nothing came for ${limitMs} ms (timeouts.${limit})`
    this.#fail({ phase: this.#phase, cause: 'timeout', sent: this.#sentAtMs !== undefined, message })
    return false
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#settled) {
      controller.abort(new Error('closed by us'))
      return
    }
    this.#controller = controller
    this.#phase = 'headers'
    this.#reused = (this.#line?.served ?? 0) > 0
    this.#sentAtMs = this.#host.nowMs()
    if (this.#paused) controller.pause()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.#settled) return
    this.#phase = 'body'
    this.#handler.onHeaders(status, headers as Record<string, string | string[]>)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return
    this.#alive = true
    this.#bodyStarted = true
    this.#handler.onBytes(chunk)
  }

  onResponseEnd(): void {
    if (this.#settled) return
    this.#settled = true
    this.#host.release(this, this.#line, true)
    this.#handler.onEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: NodeJS.ErrnoException): void {
    if (this.#settled) return
    const cause = causeOf(error.code ?? '')
    if (this.#mayRetry(cause)) {
      this.#retried = true
      this.#phase = 'connect'
      this.#controller = undefined
      const stale = this.#line
      // Asynchronous, since the library is still taking the old socket down.
      queueMicrotask(() => {
        stale?.destroy()
        if (!this.#settled) this.#dispatch(true)
      })
      return
    }
    const sent = this.#sentAtMs !== undefined
    this.#fail({ phase: this.#phase, cause, sent, message: messageOf(error, cause) })
  }

  #dispatch(fresh: boolean): void {
    const line = this.#host.dispatch(this, fresh)
    this.#line = line
    // A request that the library refuses fails before the line is known.
    if (this.#settled) line.destroy()
  }

  #mayRetry(cause: UpstreamFault['cause']): boolean {
    if (cause !== 'reset' || this.#phase !== 'headers' || !this.#reused || this.#retried) return false
    return this.#host.nowMs() - (this.#sentAtMs ?? 0) < STALE_SOCKET_WINDOW_MS
  }

  /** Settles with a fault: the socket closes now, the owner hears of it in the next microtask. */
  #fail(fault: UpstreamFault): void {
    if (this.#settled) return
    this.#settled = true
    const line = this.#line
    this.#host.release(this, line, false)
    line?.destroy()
    queueMicrotask(() => this.#handler.onFault(fault))
  }
}
