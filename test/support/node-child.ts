/** A Node process of our own: its output in files, questions and answers over IPC, and it never outlives us. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { deferred, within } from './deadline.ts'

export interface ChildOptions {
  readonly args: readonly string[]
  readonly name: string
  /** Where its output goes, as `NAME.out` and `NAME.err`. */
  readonly folder: string
  /** What it prints is thrown away: it would fill a disk. */
  readonly mute?: boolean
  readonly env?: Readonly<Record<string, string>>
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** What a process and those that it has started hold together, as `process-probe.mjs` tells it. */
export interface Holdings {
  readonly processes: number
  /** CPU that they have used since their start, but for answering this. */
  readonly cpuSec: number
  readonly rssBytes: number
  readonly heapBytes: number
  readonly externalBytes: number
  /** Active handles and requests of the event loops, by type. */
  readonly handles: Readonly<Record<string, number>>
  readonly listeners: number
  readonly mapEntries: number
  readonly setEntries: number
  readonly timers: number
}

const here = (file: string): string => new URL(file, import.meta.url).href
const ANSWER_LIMIT_MS = 30_000
/** How long it may take to end once it was asked to. */
const END_LIMIT_MS = 15_000

/** Processes of a Sluice: with several workers also one that starts them and one that decides. */
export function processesOf(workers: number): number {
  return workers === 1 ? 1 : workers + 2
}

/** A script whose process answers `holdings`. */
export function probedArgs(script: string, ...args: readonly string[]): readonly string[] {
  return ['--import', here('./process-probe.mjs'), script, ...args]
}

/** The built command line, probed. */
export function sluiceArgs(...args: readonly string[]): readonly string[] {
  return probedArgs(fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)), ...args)
}

/** A TypeScript file of this repository, run as a process. */
export function scriptArgs(file: URL, ...args: readonly string[]): readonly string[] {
  return ['--import', here('./run-ts.mjs'), fileURLToPath(file), ...args]
}

export class NodeChild {
  readonly name: string
  readonly exited: Promise<Exit>
  readonly #process: ChildProcess
  readonly #outFile: string
  readonly #errFile: string
  readonly #open = new Map<number, (answer: unknown) => void>()
  #lastId = 0
  #exit: Exit | undefined

  constructor({ args, name, folder, mute = false, env = {} }: ChildOptions) {
    this.name = name
    this.#outFile = mute ? devNull : join(folder, `${name}.out`)
    this.#errFile = join(folder, `${name}.err`)
    // Appended to, so that a process that is started again goes on with what its predecessor wrote.
    const [out, err] = [openSync(this.#outFile, 'a'), openSync(this.#errFile, 'a')]
    this.#process = spawn(process.execPath, args, {
      stdio: ['ignore', out, err, 'ipc'],
      env: { ...process.env, NO_COLOR: '1', NODE_OPTIONS: '', ...env },
    })
    closeSync(out)
    closeSync(err)
    const killNow = () => void this.#process.kill('SIGKILL')
    process.once('exit', killNow)
    const exited = deferred<Exit>()
    this.exited = exited.promise
    this.#process.once('exit', (code, signal) => {
      process.off('exit', killNow)
      this.#exit = { code, signal }
      exited.resolve(this.#exit)
    })
    this.#process.on('message', ({ id, answer }: { id: number; answer: unknown }) => {
      this.#open.get(id)?.(answer)
      this.#open.delete(id)
    })
  }

  get pid(): number {
    return this.#process.pid ?? -1
  }
  /** How it has ended; undefined while it runs. */
  get exit(): Exit | undefined {
    return this.#exit
  }
  get out(): string {
    return readFileSync(this.#outFile, 'utf8')
  }
  get err(): string {
    return readFileSync(this.#errFile, 'utf8')
  }

  /** Asks it something that it answers; rejects when it has not within the limit. */
  async ask<T>(kind: string, facts: object = {}, limitMs = ANSWER_LIMIT_MS): Promise<T> {
    const id = ++this.#lastId
    const answered = deferred<T>()
    this.#open.set(id, answered.resolve as (answer: unknown) => void)
    this.#process.send({ id, kind, ...facts }, (error) => {
      if (error !== null) answered.reject(error)
    })
    const ended = this.exited.then(() => Promise.reject(new Error(`${this.name} has ended: ${this.err}`)))
    const first = Promise.race([answered.promise, ended])
    return within(first, `${this.name} to answer ${kind}`, limitMs)
  }

  holdings(limitMs?: number): Promise<Holdings> {
    return this.ask('holdings', {}, limitMs)
  }

  /** Waits until what it has written to stderr matches. */
  async said(pattern: RegExp, limitMs = 30_000): Promise<RegExpExecArray> {
    const giveUpAtMs = performance.now() + limitMs
    for (;;) {
      const match = pattern.exec(this.err)
      if (match !== null) return match
      if (this.#exit !== undefined || performance.now() > giveUpAtMs)
        throw new Error(`${this.name} never said ${pattern}: ${this.err.slice(-1500)}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** Ends it in its own way. Resolves when it is gone; idempotent. */
  async end(): Promise<Exit> {
    if (this.#exit !== undefined) return this.#exit
    this.kill('SIGCONT')
    this.kill('SIGTERM')
    const timer = setTimeout(() => this.kill('SIGKILL'), END_LIMIT_MS)
    const exit = await this.exited
    clearTimeout(timer)
    return exit
  }
}

/** In the child: answers questions of that kind from now on, and ends with the parent. */
export function answers(kinds: Readonly<Record<string, (facts: never) => unknown>>): void {
  process.on('message', async ({ id, kind, ...facts }: { id: number; kind: string }) => {
    process.send?.({ id, answer: await kinds[kind]?.(facts as never) })
  })
  process.once('disconnect', () => process.exit(0))
}
