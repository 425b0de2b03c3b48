/** Four engines, two of each kind, and a built Sluice before them, all in processes of their own. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../support/deadline.ts'
import { freePort } from '../support/free-port.ts'
import { type Holdings, NodeChild, processesOf, scriptArgs, sluiceArgs } from '../support/node-child.ts'
import { chaosFile, MODEL, SLOTS } from './scenario.ts'
import type { Mood, PageMood } from './scripted-replica.ts'

export type ReplicaKind = 'embedded' | 'scripted'

const KINDS: readonly ReplicaKind[] = ['embedded', 'scripted', 'embedded', 'scripted']
const SCRIPT = new URL('./scripted-replica.ts', import.meta.url)

/** One engine; it may be killed and started again on its port. */
export class StagedReplica {
  readonly name: string
  readonly kind: ReplicaKind
  readonly port: number
  readonly #folder: string
  readonly #seed: number
  child: NodeChild

  constructor(at: number, port: number, folder: string, seed: number) {
    this.name = `${MODEL}-${at + 1}`
    this.kind = KINDS[at] ?? 'scripted'
    this.port = port
    this.#folder = folder
    this.#seed = seed + at
    this.child = this.#start()
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Starts it once more, after its end. */
  async restart(): Promise<void> {
    await this.child.exited
    this.child = this.#start()
    await this.ready()
  }

  /** Resolves when it answers. */
  async ready(): Promise<void> {
    await eventually(`${this.name} to answer`, 30_000, async () => {
      if (this.child.exit !== undefined) throw new Error(`${this.name} has ended: ${this.child.err}`)
      return (await fetch(`${this.url}/health`).catch(() => undefined))?.status === 200
    })
  }

  async setMood(mood: Mood, page: PageMood): Promise<void> {
    await this.child.ask('mood', { mood, page })
  }

  /** Requests that it still holds. Rejects when it can't be asked. */
  async open(): Promise<number> {
    if (this.kind === 'scripted') return this.child.ask<number>('open')
    const page = await (await fetch(`${this.url}/metrics`)).text()
    const of = (name: string) => {
      const shown = new RegExp(`^${name}\\{[^}]*\\} (\\S+)`, 'm').exec(page)?.[1]
      if (shown === undefined) throw new Error(`${this.name} shows no ${name}`)
      return Number(shown)
    }
    return of('vllm:num_requests_running') + of('vllm:num_requests_waiting')
  }

  #start(): NodeChild {
    const args =
      this.kind === 'scripted'
        ? scriptArgs(SCRIPT, String(this.port), String(this.#seed))
        : sluiceArgs(
            ...['engine', '--profile', 'demo/slow', '--model', MODEL, '--port', String(this.port)],
            ...['--max-num-seqs', String(SLOTS), '--seed', String(this.#seed)],
          )
    return new NodeChild({ args, name: this.name, folder: this.#folder })
  }
}

export class Stage {
  readonly replicas: readonly StagedReplica[]
  readonly folder: string
  readonly path: string
  readonly workers: number
  #sluice: NodeChild | undefined
  #url = ''
  #adminUrl = ''

  constructor(replicas: readonly StagedReplica[], folder: string, workers: number) {
    this.replicas = replicas
    this.folder = folder
    this.workers = workers
    this.path = join(folder, 'sluice.yaml')
  }

  get sluice(): NodeChild {
    if (this.#sluice === undefined) throw new Error('Sluice has not been started')
    return this.#sluice
  }
  get url(): string {
    return this.#url
  }
  get port(): number {
    return Number(new URL(this.#url).port)
  }
  get adminUrl(): string {
    return this.#adminUrl
  }
  get urls(): readonly string[] {
    return this.replicas.map(({ url }) => url)
  }

  /** A file for this stage; each number of waiting requests makes another digest. */
  file(waitingRequests: number, replicas = this.urls): string {
    return chaosFile({ replicas, waitingRequests, workers: this.workers })
  }

  /** Puts a file in the place of the one before, as a whole. */
  async write(text: string): Promise<void> {
    await writeFile(`${this.path}.new`, text)
    await rename(`${this.path}.new`, this.path)
  }

  async startSluice(): Promise<void> {
    await this.write(this.file(300))
    const args = sluiceArgs('serve', '-c', this.path, '--log-level', 'info')
    this.#sluice = new NodeChild({ args, name: 'sluice', folder: this.folder })
    const [, url = '', adminUrl = ''] = await this.sluice.said(/traffic +(\S+)\n +admin +(\S+)\n/)
    this.#url = url
    this.#adminUrl = adminUrl
  }

  /** What all processes of Sluice hold together. */
  async holdings(): Promise<Holdings> {
    const holdings = await this.sluice.holdings()
    if (holdings.processes === processesOf(this.workers)) return holdings
    throw new Error(`${holdings.processes} processes of Sluice answer, ${processesOf(this.workers)} should`)
  }

  async metrics(): Promise<string> {
    return (await fetch(`${this.#adminUrl}/metrics`)).text()
  }

  /** State by replica, as the admin port tells it. */
  async states(): Promise<Readonly<Record<string, string>>> {
    const { replicas } = (await (await fetch(`${this.#adminUrl}/replicas`)).json()) as {
      replicas: readonly { readonly name: string; readonly state: string }[]
    }
    return Object.fromEntries(replicas.map(({ name, state }) => [name, state]))
  }

  async close(): Promise<void> {
    await Promise.all([this.#sluice, ...this.replicas.map(({ child }) => child)].map((child) => child?.end()))
    await rm(this.folder, { recursive: true, force: true })
  }
}

/** Starts the engines and waits until each answers. Sluice is started apart, with that many workers. */
export async function startStage(seed: number, workers: number): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-chaos-'))
  const ports = await Promise.all(KINDS.map(freePort))
  const stage = new Stage(
    ports.map((port, at) => new StagedReplica(at, port, folder, seed)),
    folder,
    workers,
  )
  try {
    await Promise.all(stage.replicas.map((replica) => replica.ready()))
    return stage
  } catch (error) {
    await stage.close()
    throw error
  }
}
