/** Goodput of one Sluice before two simulated engines in overload, and how its requests split over its workers. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configText } from '../emulated-config.mjs'
import { freePort, listening, outputJson, startSluice, stop } from '../processes.mjs'

const ENGINES = 2
/** What a bare engine of this profile keeps at 90 % good for these promises, in requests a second. */
const CAPACITY_PER_SEC = 6.4
const LOAD = 1.5

function fileWith(file, head) {
  writeFileSync(file, configText(head))
  return file
}

/** Fresh engines and a fresh Sluice, so that a run depends on its seed alone. */
export async function measureGoodput({ workers, seed, seconds, workDir, log }) {
  const folder = join(workDir, `goodput-${workers}-${seed}`)
  mkdirSync(folder)
  const children = []
  const serve = async (args, port, what) => {
    const child = startSluice(args, { log })
    children.push(child)
    await listening(port, child, what)
  }
  try {
    const ports = []
    for (let engine = 0; engine < ENGINES; engine++) {
      const port = await freePort()
      const engineArgs = ['engine', '--profile', 'demo/slow', '--served-model-name', 'demo']
      await serve(
        [...engineArgs, '--port', `${port}`, '--seed', `${seed * ENGINES + engine}`],
        port,
        'engine',
      )
      ports.push(port)
    }
    const [port, adminPort] = [await freePort(), await freePort()]
    const replicas = ports.map((each) => `"http://127.0.0.1:${each}"`).join(', ')
    const models = (list) => `models: [{ name: demo, replicas: [${list}] }]`
    const head = [`listen: 127.0.0.1:${port}`, `admin: { listen: "127.0.0.1:${adminPort}" }`]
    const file = fileWith(join(folder, 'serve.yaml'), [...head, `workers: ${workers}`, models(replicas)])
    await serve(['serve', '-c', file], port, 'sluice')
    const promises = fileWith(join(folder, 'load.yaml'), [models('"http://127.0.0.1:1"')])
    const report = await loadReport({ port, seed, seconds, promises, log })
    const [{ goodPerSec, all }] = report.phases
    const { attainmentRatio: attained, shedRequests: shed } = all
    return { workers, seed, goodPerSec, attained, shed, valid: report.valid, split: await splitOf(adminPort) }
  } finally {
    for (const child of children.reverse()) await stop(child)
  }
}

function loadReport({ port, seed, seconds, promises, log }) {
  const rate = String(LOAD * ENGINES * CAPACITY_PER_SEC)
  const args = ['load', `http://127.0.0.1:${port}`, '--rate', rate, '--seed', `${seed}`]
  args.push('--duration', `${seconds}s`, '--length-ratio', '0.2', '--model', 'demo', '--lengths', 'simulated')
  const child = startSluice([...args, '--class', promises, '--format', 'json'], { log, output: true })
  return outputJson(child, 'load')
}

/** Requests of each worker; empty for one process. */
async function splitOf(adminPort) {
  const page = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
  return [...page.matchAll(/^sluice_worker_requests_total\{[^}]*\} (\d+)$/gm)].map(([, count]) =>
    Number(count),
  )
}
