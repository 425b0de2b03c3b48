/** Relays an exchange that is not judged: paths of `passthrough`, and stored responses asked for by id. */
import type { IncomingMessage } from 'node:http'
import type { Ms } from '../core/units.ts'
import type { ResponseHeaders } from '../engines/adapter.ts'
import type { ErrorCode } from '../errors.ts'
import type {
  OpenRequest,
  Replica,
  UpstreamFault,
  UpstreamHandler,
  UpstreamStream,
} from '../upstream/ports.ts'
import type { ClientAnswer } from './answer.ts'
import type { Clock } from './clock.ts'

export interface ForwardOptions {
  readonly replica: Replica
  readonly answer: ClientAnswer
  readonly clock: Clock
  /** Longest time that the client may take no byte, and the longest exchange in all. */
  readonly stallMs: Ms
  readonly totalMs: Ms
  readonly onOver: () => void
}

const METHODS = ['GET', 'POST', 'DELETE'] as const

/** Method and target of the call as it goes on: the client's own method and query, on a path of ours. */
export function lineOf(
  { method: asked, url = '' }: IncomingMessage,
  path: string,
): Pick<OpenRequest, 'method' | 'path'> {
  const at = url.indexOf('?')
  return {
    method: METHODS.find((method) => method === asked) ?? 'GET',
    path: at < 0 ? path : path + url.slice(at),
  }
}

export class Forward implements UpstreamHandler {
  readonly #replica: Replica
  readonly #answer: ClientAnswer
  readonly #clock: Clock
  readonly #stallMs: Ms
  readonly #onOver: () => void
  readonly #cancelLimit: () => void
  #cancelStall = () => {}
  #stream: UpstreamStream | undefined
  #over = false
  #status = 0

  constructor(options: ForwardOptions) {
    this.#replica = options.replica
    this.#answer = options.answer
    this.#clock = options.clock
    this.#stallMs = options.stallMs
    this.#onOver = options.onOver
    this.#cancelLimit = options.clock.after(options.totalMs, () =>
      this.#giveUp('upstream_timeout', 'the request took longer than limits.request'),
    )
  }

  open(request: OpenRequest): void {
    this.#answer.set({ 'x-sluice-replica': this.#replica.name })
    this.#answer.onDrain = () => this.#resume()
    this.#answer.onLeft = () => this.end()
    this.#stream = this.#replica.open(request, this)
  }

  onHeaders(status: number, headers: ResponseHeaders): void {
    if (this.#over) return
    this.#status = status
    this.#answer.beginWhole(status, headers)
  }

  onBytes(bytes: Uint8Array): void {
    const nowMs: Ms = this.#clock.nowMs()
    if (!this.#over && !this.#answer.write(bytes, nowMs)) this.#pause()
  }

  onEnd(): void {
    if (!this.#over && this.#status < 500) this.#replica.reportSuccess()
    this.#answer.end()
    this.#finish()
  }

  onFault(fault: UpstreamFault): void {
    if (this.#over) return
    this.#replica.reportFault(fault)
    const code = fault.cause === 'timeout' ? 'upstream_timeout' : 'upstream_failed'
    if (this.#answer.started) this.#answer.cut()
    else this.#answer.refuse(code, `${this.#replica.name}: ${fault.message}`)
    this.#finish()
  }

  /** Ends it from our side. Idempotent. */
  end(): void {
    this.#giveUp('draining', 'this Sluice is shutting down')
  }

  #giveUp(code: ErrorCode, message: string): void {
    if (this.#over) return
    if (this.#answer.started) this.#answer.cut()
    else this.#answer.refuse(code, message)
    this.#finish()
    this.#stream?.abort()
  }

  #pause(): void {
    this.#stream?.pause()
    this.#cancelStall()
    this.#cancelStall = this.#clock.after(this.#stallMs, () =>
      this.#giveUp('upstream_timeout', 'the client takes nothing'),
    )
  }

  #resume(): void {
    this.#cancelStall()
    this.#stream?.resume()
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    this.#cancelLimit()
    this.#cancelStall()
    this.#answer.onDrain = () => {}
    this.#onOver()
  }
}
