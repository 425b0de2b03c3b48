/**
 * A million requests, and what is left of them.
 *
 *   npm run test:soak -- [--requests 1000000] [--minutes 25] [--seed 1] [--engines 8] [--clients 64]
 *                        [--samples 40] [--workers 1]
 *
 * Sluice as built, with its log, its accounts and enforcing, before fast engines in a process beside it. Requests stream
 * or not, are refused, broken, left by their clients in every phase, or shed for their tenant's limit. For each sample
 * the clients rest, and what the process holds is counted after a full collection. Lines are fitted to the samples
 * after the first fifth. Exits with 0 when nothing leaks, with 1 at a leak or a fault, with 2 when it was too short to
 * tell; stops by itself at the first sample after that many minutes. With several workers all processes are summed.
 *
 * One request in ninety meets an engine that calls itself full, which earns it, and one more, a rest of up to 0.2 s: with
 * two engines all would rest half of the time.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Rng } from '../../src/sim/rng.ts'
import { NodeChild, processesOf, scriptArgs, sluiceArgs } from '../support/node-child.ts'
import { drawFate, UnrulyLine } from '../support/unruly-client.ts'
import { conclusionOf, type Sample, type Verdict, verdictsOf } from './figures.ts'

const WARM_UP_RATIO = 0.2
/** Fewer say nothing. */
const LEAST_SAMPLES = 8
/** All of it may be stopped for a while, as when others on the machine need it. */
const SAMPLE_LIMIT_MS = 600_000
/** Share of requests of a tenant that has used up its limit. */
const LIMITED_RATIO = 0.1

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '1000000' },
    minutes: { type: 'string', default: '25' },
    seed: { type: 'string', default: '1' },
    engines: { type: 'string', default: '8' },
    clients: { type: 'string', default: '64' },
    samples: { type: 'string', default: '40' },
    workers: { type: 'string', default: '1' },
  },
})
const requests = Number(values.requests)
const sampled = Number(values.samples)
const limitMs = Number(values.minutes) * 60_000
const workers = Number(values.workers)
const areCounts = Number.isInteger(requests) && Number.isInteger(workers)
if (!areCounts || requests < 1000 || workers < 1 || !(limitMs > 0)) {
  console.error('--requests is a whole number of at least 1000, --workers of at least 1, --minutes above 0')
  process.exit(2)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

function fileOf(replicas: readonly string[]): string {
  return `listen: 127.0.0.1:0
admin: { listen: "127.0.0.1:0" }
mode: enforce
workers: ${workers}
auth: { header: x-tenant, trusted: [127.0.0.0/8] }
tenants: [{ name: free }, { name: limited, limits: { requests: 1/s } }]
models: [{ name: tiny, replicas: [${replicas.join(', ')}] }]
classes: { chat: { ttft: 30s, overload: wait, max_wait: 2s } }
default_class: chat
timeouts: { first_byte: 600s, between_bytes: 600s, heartbeat_after: 300s, drain: 600s }
`
}

async function start(folder: string): Promise<{ sluice: NodeChild; port: number; adminUrl: string }> {
  const script = scriptArgs(new URL('./engines.ts', import.meta.url), values.engines)
  const engines = new NodeChild({ args: script, name: 'engines', folder })
  const [, urls = ''] = await engines.said(/on (http.+)\n/)
  const file = join(folder, 'sluice.yaml')
  await writeFile(file, fileOf(urls.split(' ')))
  const sluice = new NodeChild({ args: sluiceArgs('serve', '-c', file), name: 'sluice', folder, mute: true })
  const [, url = '', adminUrl = ''] = await sluice.said(/traffic +(\S+)\n +admin +(\S+)\n/)
  return { sluice, port: Number(new URL(url).port), adminUrl }
}

/** Sends that many requests over the lines, and returns when none is open any more. */
async function turn(count: number, lines: readonly UnrulyLine[], rng: Rng, ends: Map<string, number>) {
  let begun = 0
  const client = async (line: UnrulyLine) => {
    while (begun < count) {
      begun += 1
      const tenant = rng.uniform() < LIMITED_RATIO ? 'limited' : 'free'
      const end = await line.one(drawFate(rng), rng, `x-tenant: ${tenant}\r\n`)
      ends.set(end, (ends.get(end) ?? 0) + 1)
    }
  }
  await Promise.all(lines.map(client))
}

function printVerdicts(verdicts: readonly Verdict[]): void {
  const mib = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
  console.log('what              first        last        per 1000 requests      limit   verdict')
  for (const { name, unit, first, last, rise, riseError, limit, verdict } of verdicts) {
    const show = (value: number) => (unit === 'bytes' ? mib(value) : String(value))
    const digits = unit === 'bytes' ? 0 : 3
    const slope = `${rise.toFixed(digits)} ± ${riseError.toFixed(digits)}`
    console.log(
      `${name.padEnd(16)}${show(first).padStart(12)}${show(last).padStart(12)}${slope.padStart(24)}${String(limit).padStart(10)}   ${verdict}`,
    )
  }
}

/** What of the last turn is still open; all of it must be gone before a sample counts. */
async function idle(adminUrl: string): Promise<void> {
  for (let look = 0; look < 200; look += 1) {
    const page = await (await fetch(`${adminUrl}/metrics`)).text()
    const busy = /^sluice_(?:in_flight_requests\{.*\}|waiting_requests|buffered_bytes) [^0]/m.test(page)
    if (!busy) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('requests, waiters or bodies are left 10 s after their clients')
}

const folder = await mkdtemp(join(tmpdir(), 'sluice-soak-'))
const { sluice, port, adminUrl } = await start(folder)
const lines = Array.from({ length: Number(values.clients) }, () => new UnrulyLine(port))
const rng = new Rng(Number(values.seed))
const ends = new Map<string, number>()
const samples: Sample[] = []
const startMs = performance.now()
let done = 0
while (done < requests && performance.now() - startMs < limitMs) {
  const count = Math.min(Math.ceil(requests / sampled), requests - done)
  await turn(count, lines, rng, ends)
  await idle(adminUrl)
  done += count
  const holdings = await sluice.holdings(SAMPLE_LIMIT_MS)
  if (holdings.processes !== processesOf(workers))
    throw new Error(`${holdings.processes} processes of Sluice answer, ${processesOf(workers)} should`)
  samples.push({ requests: done, holdings })
  const perSec = (done * 1000) / (performance.now() - startMs)
  console.error(`${done} requests, ${perSec.toFixed(0)}/s, heap ${(holdings.heapBytes / 1e6).toFixed(1)} MB`)
}
for (const line of lines) line.close()
const { code, signal } = await sluice.end()
const faults = sluice.err.split('\n').filter((line) => /error|warning/i.test(line))
if (code !== 0) faults.push(`Sluice ended with ${signal ?? code}`)
const seconds = (performance.now() - startMs) / 1000
console.log(`${done} of ${requests} requests in ${seconds.toFixed(0)} s, ${(done / seconds).toFixed(0)}/s`)
console.log(`ends: ${[...ends].map(([end, count]) => `${count} ${end}`).join(', ')}`)
for (const fault of faults) console.error(`fault: ${fault}`)
if (samples.length < LEAST_SAMPLES) {
  console.error(
    `${samples.length} samples are too few for a verdict: give it more --minutes or fewer --requests`,
  )
  await rm(folder, { recursive: true, force: true })
  process.exit(faults.length > 0 ? 1 : 2)
}
const [early, late] = [samples[samples.length >> 1], samples.at(-1)]
if (early !== undefined && late !== undefined) {
  const usPerRequest =
    ((late.holdings.cpuSec - early.holdings.cpuSec) * 1e6) / (late.requests - early.requests)
  console.log(`Sluice's CPU: ${usPerRequest.toFixed(0)} µs a request\n`)
}
const verdicts = verdictsOf(samples.slice(Math.floor(samples.length * WARM_UP_RATIO)))
printVerdicts(verdicts)
await rm(folder, { recursive: true, force: true })
const { line, exitCode } = conclusionOf(verdicts)
console.log(`\n${line}`)
process.exit(faults.length > 0 ? 1 : exitCode)
