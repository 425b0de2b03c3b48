/** The built Sluice with workers, as an operator starts it: real processes, scripted engines, and its log. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { until, within } from '../support/deadline.ts'
import { RawClient } from '../support/raw-client.ts'
import {
  type ScriptedEngine,
  type ScriptedExchange,
  scriptedEngine,
  vllmPage,
} from '../support/scripted-engine.ts'

const BINARY = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const CHAT_PATH = '/v1/chat/completions'
export const CHAT = { model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hello' }] }

export type LogLine = Readonly<Record<string, unknown>> & { readonly event: string }

export interface WorkersRigOptions {
  readonly workers?: number | string
  readonly engines?: number
  /** Further lines of the file. */
  readonly yaml?: string
  readonly env?: Readonly<Record<string, string>>
}

export class WorkersRig {
  readonly engines: ScriptedEngine[] = []
  readonly lines: LogLine[] = []
  /** What it said to people. */
  said = ''
  port = 0
  adminPort = 0
  folder = ''
  #child: ChildProcess | undefined
  #ended: Promise<number | null> = Promise.resolve(null)
  #rest = ''
  readonly #exchanges: ScriptedExchange[] = []
  #options: WorkersRigOptions = {}

  get path(): string {
    return join(this.folder, 'sluice.yaml')
  }

  async open(options: WorkersRigOptions = {}): Promise<this> {
    await this.spawn(options)
    const told = /traffic {2}http:\/\/127\.0\.0\.1:(\d+)\n {2}admin {4}http:\/\/127\.0\.0\.1:(\d+)/
    await until(() => told.test(this.said), 'Sluice to serve', 30_000).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${this.said}${JSON.stringify(this.lines)}`)
    })
    const [, port, adminPort] = told.exec(this.said) ?? []
    this.port = Number(port)
    this.adminPort = Number(adminPort)
    return this
  }

  /** Starts it, whatever comes of that. */
  async spawn(options: WorkersRigOptions): Promise<void> {
    this.#options = options
    this.folder = await mkdtemp(join(tmpdir(), 'sluice-workers-'))
    for (let count = options.engines ?? 1; count > 0; count--) {
      const engine = await scriptedEngine({ metrics: vllmPage() })
      engine.on(CHAT_PATH, (exchange) => this.#exchanges.push(exchange))
      this.engines.push(engine)
    }
    await this.write(options.yaml ?? '')
    const child = spawn(process.execPath, [BINARY, 'serve', '-c', this.path], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...options.env },
    })
    this.#child = child
    child.stderr?.on('data', (bytes: Buffer) => {
      this.said += bytes.toString()
    })
    child.stdout?.on('data', (bytes: Buffer) => this.#heard(bytes.toString()))
    this.#ended = once(child, 'close').then(([code]) => code as number | null)
  }

  /** Writes the file, with `yaml` behind what the rig needs. */
  async write(yaml: string): Promise<void> {
    const head = [
      'listen: 127.0.0.1:0',
      'admin: { listen: "127.0.0.1:0" }',
      'mode: enforce',
      'auth: none',
      'default_class: agent',
      `workers: ${this.#options.workers ?? 2}`,
      `models: [{ name: tiny, replicas: [${this.engines.map(({ url }) => url).join(', ')}] }]`,
    ]
    await writeFile(this.path, `${head.join('\n')}\n${yaml}`)
  }

  /** The next request at whichever engine it reaches. */
  async nextExchange(): Promise<ScriptedExchange> {
    await until(() => this.#exchanges.length > 0, 'a request at an engine', 15_000)
    const next = this.#exchanges.shift()
    if (next === undefined) throw new Error('no request')
    return next
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  ended(limitMs = 15_000): Promise<number | null> {
    return within(this.#ended, 'Sluice to end', limitMs)
  }

  /** The pid that the child of that name was last started with: `decider`, `worker 1`. */
  pidOf(child: string): number {
    const started = this.lines.filter((line) => line.event === 'child_started' && line.child === child)
    return Number(started.at(-1)?.pid)
  }

  events(event: string): readonly LogLine[] {
    return this.lines.filter((line) => line.event === event)
  }

  async logged(event: string, count = 1): Promise<LogLine> {
    await until(() => this.events(event).length >= count, `${count} times ${event} in the log`, 20_000)
    const line = this.events(event)[count - 1]
    if (line === undefined) throw new Error(`no ${event}`)
    return line
  }

  client(): RawClient {
    return new RawClient(this.port)
  }

  async admin(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.adminPort}${path}`, init)
  }

  /** The samples of one metric by the value of its one label, or by '' without labels. */
  async metric(name: string): Promise<ReadonlyMap<string, number>> {
    const text = await (await this.admin('/metrics')).text()
    const rows = text.matchAll(new RegExp(`^${name}(?:\\{[^}]*?="([^"]*)"\\})? (\\S+)$`, 'gm'))
    return new Map([...rows].map(([, label, value]) => [label ?? '', Number(value)]))
  }

  /** Asks again and again until the answer suits. */
  async metricSuits(
    name: string,
    suits: (samples: ReadonlyMap<string, number>) => boolean,
    limitMs = 20_000,
  ): Promise<ReadonlyMap<string, number>> {
    const giveUpAtMs = performance.now() + limitMs
    for (;;) {
      // The admin port is away while the decider is.
      const samples = await this.metric(name).catch(() => new Map<string, number>())
      if (suits(samples)) return samples
      if (performance.now() > giveUpAtMs) {
        throw new Error(`waited ${limitMs} ms for ${name}, which is ${JSON.stringify([...samples])}`)
      }
      await pause(25)
    }
  }

  /** Nothing is in the books any more. */
  async nothingHeld(): Promise<void> {
    const none = (samples: ReadonlyMap<string, number>) =>
      samples.size > 0 && [...samples.values()].every((value) => value === 0)
    await this.metricSuits('sluice_in_flight_requests', none)
    await this.metricSuits('sluice_waiting_requests', none)
  }

  async close(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.ended()
    for (const engine of this.engines) await engine.close()
    await rm(this.folder, { recursive: true })
  }

  #heard(text: string): void {
    const parts = (this.#rest + text).split('\n')
    this.#rest = parts.pop() ?? ''
    for (const line of parts) {
      try {
        this.lines.push(JSON.parse(line) as LogLine)
      } catch {
        this.said += `${line}\n`
      }
    }
  }
}
