/** A fresh Sluice before one cheap engine, with a crowd of clients, for each thing that is measured. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NodeChild, scriptArgs, sluiceArgs } from '../../test/support/node-child.ts'
import { sumOf } from '../../test/support/page-sums.ts'
import type { CrowdWish } from './crowd.ts'

/** What some figures need otherwise, as it stands in the file. */
export interface StageOptions {
  readonly heartbeatAfter?: string
  readonly buffered?: string
}

/** Nothing is held back or timed out, but for the model `held`, whose engine takes one request. */
const fileOf = (
  url: string,
  heldUrl: string,
  { heartbeatAfter = '800s', buffered = '1GiB' }: StageOptions,
) => `listen: 127.0.0.1:0
admin: { listen: "127.0.0.1:0" }
mode: enforce
auth: none
models:
  - { name: tiny, engine_args: { max_num_seqs: 20000, kv_capacity_tokens: 100M }, replicas: ["${url}"] }
  - { name: held, engine_args: { max_num_seqs: 1 }, replicas: ["${heldUrl}"] }
classes: { chat: { ttft: 600s, overload: wait, max_wait: 600s } }
default_class: chat
limits: { body: 16MiB, buffered: ${buffered}, waiting: { requests: 20000, bytes: 16MiB } }
timeouts: { first_byte: 900s, between_bytes: 900s, heartbeat_after: ${heartbeatAfter}, drain: 900s }
`

const PEAK_LOOK_MS = 250
const COMING_LIMIT_MS = 100_000

export class MemoryStage {
  readonly engine: NodeChild
  readonly sluice: NodeChild
  readonly crowd: NodeChild
  readonly url: string
  readonly #adminUrl: string
  readonly #folder: string

  constructor(
    parts: Pick<MemoryStage, 'engine' | 'sluice' | 'crowd' | 'url'>,
    adminUrl: string,
    folder: string,
  ) {
    this.engine = parts.engine
    this.sluice = parts.sluice
    this.crowd = parts.crowd
    this.url = parts.url
    this.#adminUrl = adminUrl
    this.#folder = folder
  }

  async metrics(): Promise<string> {
    return (await fetch(`${this.#adminUrl}/metrics`)).text()
  }

  async residentBytes(): Promise<number> {
    return this.gauge('process_resident_memory_bytes')
  }

  /** The sum over all samples of a gauge. */
  async gauge(name: string): Promise<number> {
    return sumOf(await this.metrics(), name)
  }

  come(wish: CrowdWish): Promise<number> {
    return this.crowd.ask('come', wish, COMING_LIMIT_MS)
  }

  /** The most that it holds over that time. */
  async peakBytes(forMs: number): Promise<number> {
    let peak = 0
    for (const endAtMs = performance.now() + forMs; performance.now() < endAtMs; ) {
      peak = Math.max(peak, await this.residentBytes())
      await pause(PEAK_LOOK_MS)
    }
    return peak
  }

  async close(): Promise<void> {
    this.crowd.kill('SIGKILL')
    this.sluice.kill('SIGKILL')
    this.engine.kill('SIGKILL')
    await Promise.all([this.crowd, this.sluice, this.engine].map(({ exited }) => exited))
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Has something measured on a fresh stage, and closes that. */
export async function staged<T>(
  measure: (stage: MemoryStage) => Promise<T>,
  options: StageOptions = {},
): Promise<T> {
  const stage = await memoryStage(options)
  try {
    return await measure(stage)
  } finally {
    await stage.close()
  }
}

/** Starts it and has it serve some hundred requests, so that what loads lazily is loaded. */
async function memoryStage(options: StageOptions): Promise<MemoryStage> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-memory-'))
  const here = (file: string) => new URL(file, import.meta.url)
  const engine = new NodeChild({ args: scriptArgs(here('./engine.ts')), name: 'engine', folder })
  const [, engineUrl = '', heldUrl = ''] = await engine.said(/on (http\S+) and (http\S+)/)
  const file = join(folder, 'sluice.yaml')
  await writeFile(file, fileOf(engineUrl, heldUrl, options))
  const sluice = new NodeChild({ args: sluiceArgs('serve', '-c', file), name: 'sluice', folder })
  const [, url = '', adminUrl = ''] = await sluice.said(/traffic +(\S+)\n +admin +(\S+)\n/)
  const args = scriptArgs(here('./crowd.ts'), new URL(url).port)
  const crowd = new NodeChild({ args, name: 'crowd', folder })
  await crowd.said(/ready/)
  const stage = new MemoryStage({ engine, sluice, crowd, url }, adminUrl, folder)
  await stage.come({ count: 500, wish: 'quick', begun: true })
  await crowd.ask('leave', { everyMs: 0 })
  await pause(1000)
  return stage
}

function pause(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs))
}
