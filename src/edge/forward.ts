/** Relays an exchange that is not judged: paths of `passthrough`, and stored responses asked for by id. */
import type { Ms } from '../core/units.ts'
import type {
  OpenRequest,
  Replica,
  UpstreamFault,
  UpstreamHandler,
  UpstreamStream,
} from '../upstream/ports.ts'
import type { ClientAnswer } from './answer.ts'
import type { Clock } from './clock.ts'
import type { ResponseHeaders } from './upstream-body.ts'

export class Forward implements UpstreamHandler {
  readonly #replica: Replica
  readonly #answer: ClientAnswer
  readonly #clock: Clock
  readonly #onOver: () => void
  #stream: UpstreamStream | undefined
  #over = false

  constructor(options: { replica: Replica; answer: ClientAnswer; clock: Clock; onOver: () => void }) {
    this.#replica = options.replica
    this.#answer = options.answer
    this.#clock = options.clock
    this.#onOver = options.onOver
  }

  open(request: OpenRequest): void {
    this.#answer.set({ 'x-sluice-replica': this.#replica.name })
    this.#answer.onDrain = () => this.#stream?.resume()
    this.#answer.onLeft = () => this.end()
    this.#stream = this.#replica.open(request, this)
  }

  onHeaders(status: number, headers: ResponseHeaders): void {
    if (!this.#over) this.#answer.beginWhole(status, headers)
  }

  onBytes(bytes: Uint8Array): void {
    const nowMs: Ms = this.#clock.nowMs()
    if (!this.#over && !this.#answer.write(bytes, nowMs)) this.#stream?.pause()
  }

  onEnd(): void {
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
    if (this.#over) return
    if (this.#answer.started) this.#answer.cut()
    else this.#answer.refuse('draining', 'this Sluice is shutting down', { closing: true })
    this.#finish()
    this.#stream?.abort()
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    this.#answer.onDrain = () => {}
    this.#onOver()
  }
}
