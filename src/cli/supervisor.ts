/** The parent of a Sluice with workers: starts one child that decides and N that relay, and keeps each of them alive. */
import { type ChildProcess, fork } from 'node:child_process'
import cluster from 'node:cluster'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/config.ts'
import { createLog, errorFields, type Log, type LogLevel } from '../telemetry/log.ts'
import { systemClock } from '../upstream/clock.ts'
import { Keeper, type KeptChild } from '../workers/keeper.ts'
import type { ChildReport, Order, Setup } from '../workers/orders.ts'
import type { DeciderPlace } from '../workers/uplink.ts'

type Kept = Keeper<Order<Config>, ChildReport<Config>>

export interface SupervisorOptions {
  readonly config: Config
  readonly path: string
  readonly logLevel: LogLevel
}

/** Children may take so long beyond what they were given before they are ended, in ms. */
const GRACE_MS = 5000
/** How long a child may take to serve at first, in ms. */
const START_MS = 30_000

export class Supervisor {
  port = 0
  adminPort = 0
  readonly #options: SupervisorOptions
  readonly #log: Log
  readonly #token = randomBytes(32).toString('hex')
  readonly #decider: Kept
  readonly #workers: readonly Kept[]
  /** Holds the parent up while all children are down. */
  readonly #awake = setInterval(() => {}, 2 ** 30)
  #config: Config
  #place: DeciderPlace | undefined
  #onReady = (_keeper: Kept) => {}
  #onFailed: ((message: string) => void) | undefined

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#config = options.config
    this.#log = createLog({ level: options.logLevel, nowMs: () => performance.now() })
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({ exec: childPath('worker-child'), args: [], serialization: 'advanced' })
    this.#decider = this.#keeper('decider', 0, () =>
      fork(childPath('decider-child'), [], { serialization: 'advanced' }),
    )
    this.#workers = Array.from({ length: options.config.workers }, (_, index) =>
      this.#keeper(`worker ${index + 1}`, index + 1, () => cluster.fork().process),
    )
  }

  /** Resolves when every child serves. Rejects, with all of them ended, when one can't. */
  async start(): Promise<void> {
    try {
      await this.#started([this.#decider])
      await this.#started(this.#workers)
      this.#onFailed = undefined
    } catch (error) {
      await this.close()
      throw error
    }
  }

  reload(cause: 'signal' | 'watch'): void {
    this.#decider.send({ kind: 'reload', cause })
  }

  /** Nothing new is taken; resolves when every worker has ended, at `timeouts.drain` and some grace at the latest. */
  async drain(signal: string): Promise<void> {
    this.#decider.send({ kind: 'drain', signal })
    for (const worker of this.#workers) {
      worker.release()
      worker.send({ kind: 'drain', signal })
    }
    await this.#gone(this.#workers, this.#config.timeouts.drainMs + GRACE_MS)
  }

  hurry(): void {
    for (const worker of this.#workers) worker.send({ kind: 'hurry' })
  }

  /** Ends all children: the one that counts last, since it hears the others out. Idempotent. */
  async close(): Promise<void> {
    for (const part of [this.#workers, [this.#decider]]) {
      for (const keeper of part) {
        keeper.release()
        keeper.send({ kind: 'stop' })
      }
      await this.#gone(part, GRACE_MS)
    }
    clearInterval(this.#awake)
    this.#log.flush()
  }

  onFault(error: unknown): void {
    this.#log.line('error', 'fault', errorFields(error))
  }

  #keeper(name: string, worker: number, spawn: () => ChildProcess): Kept {
    return new Keeper({
      name,
      clock: systemClock,
      fork: () => kept(spawn()),
      onReport: (report, keeper) => {
        if (report.kind === 'awake') keeper.send({ kind: 'start', setup: this.#setup(worker) })
        else this.#heard(name, report, keeper)
      },
      onNotice: (level, event, fields) => this.#log.line(level, event, fields),
    })
  }

  #setup(worker: number): Setup<Config> {
    const { path, logLevel } = this.#options
    const place = worker === 0 || this.#place === undefined ? {} : { place: this.#place }
    const admin = this.adminPort === 0 ? {} : { adminPort: this.adminPort }
    return { config: this.#config, path, logLevel, token: this.#token, worker, ...place, ...admin }
  }

  #heard(name: string, report: Exclude<ChildReport<Config>, { kind: 'awake' }>, keeper: Kept): void {
    switch (report.kind) {
      case 'ready':
        this.#ready(report, keeper)
        break
      case 'failed':
        this.#log.line('error', 'child_failed', { child: name, message: report.message })
        this.#onFailed?.(report.message)
        break
      case 'configured':
        this.#config = { ...report.config, workers: this.#options.config.workers }
        for (const worker of this.#workers) worker.send({ kind: 'configured', config: this.#config })
        break
      case 'beat':
        break
      default:
        report satisfies never
    }
  }

  #ready({ port, adminPort, linkPort }: Extract<ChildReport<Config>, { kind: 'ready' }>, keeper: Kept): void {
    this.port = port ?? this.port
    this.adminPort = adminPort ?? this.adminPort
    if (linkPort !== undefined) {
      this.#place = { port: linkPort, token: this.#token }
      for (const worker of this.#workers) worker.send({ kind: 'decider', place: this.#place })
    }
    this.#onReady(keeper)
  }

  async #started(keepers: readonly Kept[]): Promise<void> {
    const missing = new Set(keepers)
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no child serves after ${START_MS} ms`)), START_MS)
      const end = (settle: () => void) => {
        clearTimeout(late)
        settle()
      }
      this.#onFailed = (message) => end(() => reject(new Error(message)))
      this.#onReady = (keeper) => {
        missing.delete(keeper)
        if (missing.size === 0) end(resolve)
      }
      for (const keeper of keepers) keeper.start()
    })
  }

  async #gone(keepers: readonly Kept[], limitMs: number): Promise<void> {
    await Promise.all(keepers.map((keeper) => keeper.gone(limitMs)))
  }
}

/** Beside this file, in whatever form it runs. */
function childPath(name: string): string {
  return fileURLToPath(new URL(`${name}${import.meta.url.slice(-3)}`, import.meta.url))
}

function kept(child: ChildProcess): KeptChild<Order<Config>, ChildReport<Config>> {
  return {
    pid: child.pid,
    send(order) {
      // A child that has just ended has nothing to hear.
      if (child.connected) child.send(order, () => {})
    },
    kill: () => void child.kill('SIGKILL'),
    onReport: (heard) => void child.on('message', heard),
    onExit(heard) {
      let ended = false
      const once = (how: string) => {
        if (!ended) heard(how)
        ended = true
      }
      child.once('exit', (code, signal) => once(signal ?? `exit code ${code}`))
      child.once('error', (error) => {
        // Without a pid it has never lived, and no exit will come.
        if (child.pid === undefined) once(error.message)
      })
    },
  }
}
