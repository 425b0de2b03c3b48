/** Builds and runs a real OpenTelemetry Collector that writes what it gets to files; absent without Go. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until, within } from '../support/deadline.ts'
import { metricsIn, type SeenMetric, type SeenSpan, spansIn } from '../support/otlp-shapes.ts'

const SOURCE = fileURLToPath(new URL('collector/', import.meta.url))
const BUILT = fileURLToPath(new URL('../../.real-otel/', import.meta.url))
const BINARY = join(BUILT, 'collector')

/** False, with a word on the console, where no Go can build the collector. */
export const HAS_GO = hasGo()

function hasGo(): boolean {
  try {
    execFileSync('go', ['version'])
    return true
  } catch {
    console.warn('SKIPPED: test:otel needs Go >= 1.26 (`go` on the PATH) to build the collector.')
    return false
  }
}

/** Takes a minute or two at first use. */
export function buildCollector(): void {
  mkdirSync(BUILT, { recursive: true })
  execFileSync('go', ['build', '-o', BINARY, '.'], { cwd: SOURCE, stdio: 'inherit' })
}

export class Collector {
  readonly url: string
  readonly #folder: string
  readonly #child: ChildProcess
  #log = ''

  constructor(port: number, folder: string) {
    this.url = `http://127.0.0.1:${port}`
    this.#folder = folder
    const config = join(folder, 'collector.yaml')
    writeFileSync(config, configText(port, folder))
    this.#child = spawn(BINARY, ['--config', config], { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#log += bytes.toString()
    })
  }

  async ready(): Promise<void> {
    const isReady = () => this.#log.includes('Everything is ready')
    await until(() => isReady() || this.#child.exitCode !== null, 'the collector', 30_000)
    if (!isReady()) throw new Error(`the collector ended: ${this.#log}`)
  }

  /** Complaints that it had about what it got. */
  get complaints(): readonly string[] {
    return this.#log.split('\n').filter((line) => /\t(warn|error)\t/.test(line))
  }

  get spans(): readonly SeenSpan[] {
    return this.#lines('traces').flatMap(spansIn)
  }

  /** The last export of each. */
  get metrics(): ReadonlyMap<string, SeenMetric> {
    const all = this.#lines('metrics').flatMap(metricsIn)
    return new Map(all.map((metric) => [metric.name, metric]))
  }

  /** Stops it in its tracks, sockets open, or lets it go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal)
  }

  async close(): Promise<void> {
    this.#child.kill('SIGCONT')
    this.#child.kill('SIGTERM')
    if (this.#child.exitCode === null)
      await within(once(this.#child, 'close'), 'the collector to end', 15_000)
  }

  #lines(name: string): Record<string, unknown>[] {
    const whole = readFileSync(join(this.#folder, `${name}.json`), 'utf8')
      .split('\n')
      .slice(0, -1)
    return whole.map((line) => JSON.parse(line) as Record<string, unknown>)
  }
}

function configText(port: number, folder: string): string {
  const exporter = (name: string) =>
    `  file/${name}: { path: ${join(folder, `${name}.json`)}, flush_interval: 50ms }`
  const pipeline = (name: string) => `    ${name}: { receivers: [otlp], exporters: [file/${name}] }`
  return `receivers:
  otlp: { protocols: { http: { endpoint: "127.0.0.1:${port}" } } }
exporters:
${['traces', 'metrics'].map(exporter).join('\n')}
service:
  telemetry: { metrics: { level: none } }
  pipelines:
${['traces', 'metrics'].map(pipeline).join('\n')}
`
}
