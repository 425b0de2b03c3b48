/** A whole Sluice, as `serve` starts it, in front of scripted engines that listen on loopback. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Running, startSluice } from '../../src/cli/serve.ts'
import { readConfig } from '../../src/config/read.ts'
import type { Clock } from '../../src/upstream/clock.ts'
import { until } from './deadline.ts'
import { RawClient } from './raw-client.ts'
import { type ScriptedEngine, scriptedEngine, vllmPage } from './scripted-engine.ts'

export interface SluiceRigOptions {
  readonly engines?: number
  /** Lines of YAML beside `listen`, `admin` and `models`. */
  readonly yaml?: string
  /** Sequences that each engine is said to run at once; learnt when not told. */
  readonly slots?: number
  readonly clock?: Clock
  /** Empty unless told. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

export class SluiceRig {
  readonly engines: readonly ScriptedEngine[]
  readonly running: Running
  readonly path: string
  readonly #folder: string
  readonly #slots: number | undefined

  constructor(engines: readonly ScriptedEngine[], running: Running, folder: string, slots?: number) {
    this.engines = engines
    this.running = running
    this.#folder = folder
    this.#slots = slots
    this.path = join(folder, 'sluice.yaml')
  }

  get engine(): ScriptedEngine {
    const [engine] = this.engines
    if (engine === undefined) throw new Error('this rig has no engine')
    return engine
  }

  get url(): string {
    return `http://127.0.0.1:${this.running.port}`
  }
  get adminUrl(): string {
    return `http://127.0.0.1:${this.running.adminPort}`
  }

  chat(fields: object = {}, headers: Readonly<Record<string, string>> = {}): RawClient {
    const body = { model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hello' }], ...fields }
    return new RawClient(this.running.port).send({ headers, body })
  }

  /** Writes the file anew, for a reload. */
  async rewrite(yaml: string): Promise<void> {
    await writeFile(this.path, fileText(this.engines, yaml, this.#slots))
  }

  async close(): Promise<void> {
    const { runtime } = this.running
    await this.running.close()
    await Promise.all(this.engines.map((engine) => engine.close()))
    await rm(this.#folder, { recursive: true, force: true })
    const left = {
      inFlight: runtime.gate.inFlight,
      waiting: runtime.gate.state.waiting.requests,
      heldBytes: runtime.edge.buffers.heldBytes,
      sockets: runtime.fleet.openSockets(),
    }
    if (Object.values(left).some((count) => count > 0))
      throw new Error(`left behind: ${JSON.stringify(left)}`)
  }
}

/** Starts engines and Sluice, and waits until every replica takes work. */
export async function startSluiceRig(options: SluiceRigOptions = {}): Promise<SluiceRig> {
  const engines = await Promise.all(
    Array.from({ length: options.engines ?? 1 }, () => scriptedEngine({ metrics: vllmPage() })),
  )
  const folder = await mkdtemp(join(tmpdir(), 'sluice-e2e-'))
  const path = join(folder, 'sluice.yaml')
  await writeFile(path, fileText(engines, options.yaml ?? 'mode: enforce\nauth: none\n', options.slots))
  const loaded = await readConfig(path, { env: {} })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const anywhere = { host: '127.0.0.1', port: 0 }
  const config = { ...loaded.config, listen: anywhere, admin: { ...loaded.config.admin, listen: anywhere } }
  const clock = options.clock === undefined ? {} : { clock: options.clock }
  const running = await startSluice({
    config,
    path,
    env: options.env ?? {},
    logLevel: 'silent',
    ...clock,
  })
  const rig = new SluiceRig(engines, running, folder, options.slots)
  await until(
    () => running.runtime.fleet.reports().every(({ state }) => state === 'live' || state === 'ramping'),
    'every replica to take work',
  )
  return rig
}

function fileText(engines: readonly ScriptedEngine[], yaml: string, slots?: number): string {
  const replicas = engines.map(({ url }) => `      - ${url}`).join('\n')
  const args = slots === undefined ? '' : `    engine_args: { max_num_seqs: ${slots} }\n`
  const models = `models:\n  - name: tiny\n    served_name: org/tiny\n${args}    replicas:\n${replicas}\n`
  return `listen: 127.0.0.1:18080\nadmin: { listen: 127.0.0.1:19090 }\n${models}${yaml}`
}
