/** Keeps one child alive: starts it again when it ends, later each time it ends soon, and ends it when it hangs. */
import type { Ms } from '../core/units.ts'
import type { Clock } from '../upstream/clock.ts'

/** A child as it is kept. */
export interface KeptChild<Order, Report> {
  readonly pid: number | undefined
  send(order: Order): void
  /** Ends it now, whatever it does. */
  kill(): void
  onReport(heard: (report: Report) => void): void
  /** `how` is its exit code or the signal, for people. */
  onExit(heard: (how: string) => void): void
}

export interface KeeperOptions<Order, Report> {
  readonly name: string
  readonly clock: Clock
  readonly fork: () => KeptChild<Order, Report>
  readonly onReport: (report: Report, keeper: Keeper<Order, Report>) => void
  readonly onNotice: (
    level: 'info' | 'warn',
    event: string,
    fields: Readonly<Record<string, unknown>>,
  ) => void
}

/** Children give a sign of life this often. */
export const CHILD_BEAT_MS: Ms = 1000
/** So many looks in a row without one mean that a child hangs. Counted, since a clock also runs while a machine sleeps. */
const SILENT_LOOKS = 15
const FIRST_DELAY_MS: Ms = 100
const LONGEST_DELAY_MS: Ms = 10_000
/** A child that has lived so long has shown that it can. */
const PROVEN_MS: Ms = 30_000

export class Keeper<Order, Report> {
  readonly #options: KeeperOptions<Order, Report>
  #child: KeptChild<Order, Report> | undefined
  #delayMs = FIRST_DELAY_MS
  #silentLooks = 0
  #released = false
  #cancel = () => {}
  #onGone: (() => void)[] = []

  constructor(options: KeeperOptions<Order, Report>) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#child !== undefined
  }

  start(): void {
    const { name, clock, fork, onReport, onNotice } = this.#options
    const child = fork()
    const startedAtMs = clock.nowMs()
    this.#child = child
    this.#silentLooks = 0
    this.#look(child)
    child.onReport((report) => {
      this.#silentLooks = 0
      onReport(report, this)
    })
    child.onExit((how) => {
      this.#cancel()
      this.#child = undefined
      if (this.#released) {
        for (const gone of this.#onGone.splice(0)) gone()
        return
      }
      if (clock.nowMs() - startedAtMs >= PROVEN_MS) this.#delayMs = FIRST_DELAY_MS
      const delayMs = this.#delayMs
      this.#delayMs = Math.min(LONGEST_DELAY_MS, delayMs * 2)
      onNotice('warn', 'child_ended', { child: name, pid: child.pid, how, restart_ms: delayMs })
      this.#cancel = clock.after(delayMs, () => this.start())
    })
    onNotice('info', 'child_started', { child: name, pid: child.pid })
  }

  /** Told to the child of now; one that starts later has to be told at its start. */
  send(order: Order): void {
    this.#child?.send(order)
  }

  /** It is not started again. */
  release(): void {
    this.#released = true
    if (this.#child === undefined) this.#cancel()
  }

  /** Resolves when no child is left, after `release`; ends it at the limit. */
  async gone(limitMs: Ms): Promise<void> {
    if (this.#child === undefined) return
    const cancel = this.#options.clock.after(limitMs, () => this.#child?.kill())
    await new Promise<void>((resolve) => this.#onGone.push(resolve))
    cancel()
  }

  #look(child: KeptChild<Order, Report>): void {
    const { name, clock, onNotice } = this.#options
    this.#cancel = clock.after(CHILD_BEAT_MS, () => {
      this.#silentLooks++
      if (this.#silentLooks < SILENT_LOOKS) {
        this.#look(child)
        return
      }
      onNotice('warn', 'child_hangs', { child: name, pid: child.pid })
      child.kill()
    })
  }
}
