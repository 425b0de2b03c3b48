/** The built program in front of simulated engines, exporting to a real OpenTelemetry Collector. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningEngine, startEngine } from '../../src/emulator/start.ts'
import { METRIC_ROWS } from '../../src/telemetry/metric-table.ts'
import { until, within } from '../support/deadline.ts'
import { freePort } from '../support/free-port.ts'
import { buildCollector, Collector, HAS_GO } from './collector.ts'

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const STREAMS = 12

let folder: string
let engines: RunningEngine[]
let collector: Collector

beforeAll(async () => {
  if (!HAS_GO) return
  buildCollector()
  folder = await mkdtemp(join(tmpdir(), 'sluice-otel-'))
  engines = await Promise.all(
    [0, 1].map(() => startEngine({ profile: 'demo/slow', speed: 20, servedModelNames: ['tiny'] })),
  )
  collector = new Collector(await freePort(), folder)
  await collector.ready()
})
afterAll(async () => {
  await collector?.close()
  await Promise.all((engines ?? []).map((engine) => engine.close()))
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
})

class Program {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  log = ''

  constructor(path: string, env: Readonly<Record<string, string>>) {
    const all = { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env }
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    this.#child = spawn(process.execPath, [PROGRAM, 'serve', '-c', path], { env: all, stdio: [...stdio] })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (bytes: Buffer) => {
        this.log += bytes.toString()
      })
    this.#ended = once(this.#child, 'close')
  }

  async ready(): Promise<string> {
    const told = /traffic {2}(http:\/\/\S+)/
    await until(() => told.test(this.log), 'Sluice to serve', 15_000)
    await until(() => this.log.split('"to":"live"').length > engines.length, 'live replicas', 15_000)
    return told.exec(this.log)?.[1] ?? ''
  }

  /** What the line of each request says. */
  get requests(): Record<string, unknown>[] {
    const lines = this.log.split('\n').filter((line) => line.includes('"event":"request"'))
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  }

  /** SIGTERM; resolves with how long the end took, in ms. */
  async stop(): Promise<number> {
    const startedAtMs = performance.now()
    this.#child.kill('SIGTERM')
    await within(this.#ended, 'Sluice to end', 30_000)
    expect(this.#child.exitCode).toBe(0)
    return performance.now() - startedAtMs
  }
}

async function serve(env: Readonly<Record<string, string>>): Promise<{ program: Program; url: string }> {
  const path = join(folder, 'sluice.yaml')
  const replicas = engines.map(({ url }) => url).join(', ')
  const text = `listen: 127.0.0.1:0
admin: { listen: "127.0.0.1:0" }
mode: enforce
auth: none
default_class: chat
models: [{ name: tiny, replicas: [${replicas}] }]
`
  await writeFile(path, text)
  const program = new Program(path, env)
  return { program, url: await program.ready() }
}

async function chat(url: string, model: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const messages = [{ role: 'user', content: 'Tell me of the river.' }]
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, stream: true, max_tokens: 6, ignore_eos: true, messages }),
  })
  await answer.text()
  return answer.status
}

const traceOf = (run: number, request: number) =>
  `${run}${request.toString(16).padStart(3, '0')}`.padEnd(32, 'a')

const RUNS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['protobuf', { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }],
  ['protobuf, compressed', { OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' }],
  ['JSON', { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }],
]

describe.skipIf(!HAS_GO)('a real collector', () => {
  it.each(RUNS.map(([name, env], run) => [name, env, run] as const))(
    'takes traces and metrics as %s, whole and in place',
    async (name, env, run) => {
      const service = { OTEL_SERVICE_NAME: `gate-${run}` }
      const { program, url } = await serve({ ...env, ...service })
      const clients = Array.from({ length: STREAMS }, (_, request) =>
        chat(url, 'tiny', { traceparent: `00-${traceOf(run, request)}-00f067aa0ba902b7-01` }),
      )
      expect(new Set(await Promise.all(clients))).toEqual(new Set([200]))
      expect(await chat(url, 'nope', {})).toBe(404)
      const endMs = await program.stop()
      const mine = () => collector.spans.filter(({ resource }) => resource['service.name'] === `gate-${run}`)
      const expected = STREAMS * 5 + 1
      await until(() => mine().length >= expected, `${expected} spans`)
      const spans = mine()
      expect(spans).toHaveLength(expected)
      const ids = new Map(spans.map((span) => [span.spanId, span]))
      expect(ids.size).toBe(expected)
      for (const line of program.requests) {
        const server = ids.get(String(line.span_id))
        expect(server).toMatchObject({ traceId: line.trace_id, parentSpanId: '00f067aa0ba902b7', kind: 2 })
        expect(server?.attributes['gen_ai.usage.output_tokens']).toBe(line.output_tokens)
        expect(server?.attributes['sluice.ttft_ms']).toBeCloseTo(Number(line.ttft_ms), 2)
      }
      expect(program.requests).toHaveLength(STREAMS)
      for (const { name: spanName, parentSpanId, traceId, startMs, endMs: spanEndMs } of spans) {
        expect(spanEndMs).toBeGreaterThanOrEqual(startMs)
        if (spanName.startsWith('POST')) continue
        const parent = ids.get(parentSpanId)
        expect(parent?.traceId).toBe(traceId)
        expect(startMs).toBeGreaterThanOrEqual(Math.floor(parent?.startMs ?? 0))
        expect(spanEndMs).toBeLessThanOrEqual(Math.ceil(parent?.endMs ?? 0))
      }
      const counted = () => collector.metrics.get('gen_ai.server.request.duration')
      await until(() => counted()?.resource['service.name'] === `gate-${run}`, 'the last metrics')
      expectMetrics(run)
      console.log(
        `${name}: ${spans.length} spans, ${collector.metrics.size} metrics, ended in ${endMs.toFixed(0)} ms`,
      )
    },
  )

  it('that hangs costs no request, and the end of the program at most a few seconds', async () => {
    collector.signal('SIGSTOP')
    const { program, url } = await serve({ OTEL_BSP_SCHEDULE_DELAY: '10' })
    const statuses = await Promise.all(Array.from({ length: 20 }, () => chat(url, 'tiny', {})))
    expect(new Set(statuses)).toEqual(new Set([200]))
    const endMs = await program.stop()
    console.log(`hanging: ended in ${endMs.toFixed(0)} ms`)
    // The flush may take 5 s; without its limit the exporters would wait for 10 s.
    expect(endMs).toBeLessThan(9000)
    collector.signal('SIGCONT')
  })

  it('had nothing to complain of', () => {
    expect(collector.complaints).toEqual([])
  })
})

/** Every metric that the page has without replicas, which are gone by the last export; and those of the conventions. */
function expectMetrics(run: number): void {
  const { metrics } = collector
  const global = METRIC_ROWS.map(([, row]) => row).filter(
    ({ labels, scope }) => scope === 'class' || (scope === 'global' && labels.length === 0),
  )
  const missing = global.map(({ name }) => name).filter((name) => metrics.get(name) === undefined)
  expect(missing).toEqual([])
  for (const name of ['request.duration', 'time_to_first_token', 'time_per_output_token']) {
    const metric = metrics.get(`gen_ai.server.${name}`)
    expect(metric?.resource['service.name']).toBe(`gate-${run}`)
    expect(metric?.points.reduce((sum, { value }) => sum + value, 0)).toBe(STREAMS)
  }
  const requests = metrics.get('sluice_requests_total')?.points ?? []
  expect(requests.reduce((sum, { value }) => sum + value, 0)).toBe(STREAMS)
}
