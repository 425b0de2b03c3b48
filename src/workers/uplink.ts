/** A worker's link to the decider: opened again whenever it breaks, and given up when the decider falls silent. */
import { connect } from 'node:net'
import type { Ms } from '../core/units.ts'
import type { Clock } from '../edge/clock.ts'
import { LineLink } from './line-link.ts'
import type { FromDecider, FromWorker } from './wire.ts'

/** Where the decider listens, and the secret that it wants to hear. */
export interface DeciderPlace {
  readonly port: number
  readonly token: string
}

export interface UplinkOptions {
  readonly worker: number
  readonly clock: Clock
  /** The link stands: the decider has answered the greeting. */
  onUp(send: (message: FromWorker) => void): void
  onMessage(message: FromDecider): void
  /** Told only after `onUp`. */
  onDown(why: string): void
}

export const LOOPBACK = '127.0.0.1'
/** The decider says something at least this often. */
export const BEAT_MS: Ms = 500
/** Silence after which it counts as gone, though its socket stands. */
const SILENT_MS: Ms = 2500
const RETRY_MS: Ms = 100

export class Uplink {
  readonly #options: UplinkOptions
  #place: DeciderPlace | undefined
  #link: LineLink<FromWorker, FromDecider> | undefined
  #up = false
  #heardAtMs: Ms = 0
  #cancel = () => {}
  #closed = false

  constructor(options: UplinkOptions) {
    this.#options = options
  }

  /** The decider is, or will soon be, there. */
  goTo(place: DeciderPlace): void {
    this.#place = place
    if (this.#link === undefined) this.#open()
    else this.#link.close('the decider has another place')
  }

  /** Dropped while there is no decider. */
  send(message: FromWorker): void {
    if (this.#up) this.#link?.send(message)
  }

  /** Sends what is left and opens nothing any more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancel()
    await this.#link?.end()
  }

  #open(): void {
    this.#cancel()
    const { worker, clock } = this.#options
    if (this.#place === undefined || this.#closed) return
    const { port, token } = this.#place
    const link = new LineLink<FromWorker, FromDecider>(connect({ host: LOOPBACK, port }), {
      onMessage: (message) => this.#heard(message),
      onClosed: (why) => this.#lost(why),
    })
    this.#link = link
    this.#heardAtMs = clock.nowMs()
    link.send({ kind: 'hello', worker, pid: process.pid, token })
    this.#watch(clock.nowMs())
  }

  #heard(message: FromDecider): void {
    this.#heardAtMs = this.#options.clock.nowMs()
    this.#options.onMessage(message)
    if (message.kind !== 'welcome' || this.#up) return
    this.#up = true
    this.#options.onUp((answer) => this.#link?.send(answer))
  }

  #lost(why: string): void {
    this.#link = undefined
    this.#cancel()
    this.#cancel = this.#options.clock.after(RETRY_MS, () => this.#open())
    if (!this.#up) return
    this.#up = false
    this.#options.onDown(why)
  }

  /** A look that comes late itself says nothing: what was sent meanwhile has not been read yet. */
  #watch(lookedAtMs: Ms): void {
    const { clock } = this.#options
    this.#cancel = clock.after(BEAT_MS, () => {
      const nowMs = clock.nowMs()
      const late = nowMs - lookedAtMs > 2 * BEAT_MS
      if (late || nowMs - this.#heardAtMs < SILENT_MS) this.#watch(nowMs)
      else this.#link?.close(`the decider has been silent for ${SILENT_MS} ms`)
    })
  }
}
