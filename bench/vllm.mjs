/**
 * Good requests a second on a real vLLM (CPU, random weights): bare, behind vLLM's own queue cap, behind a rival
 * proxy if one is given, behind Sluice, and behind Sluice that is told the engine's settings; in turns, each under the same seeded arrivals.
 *
 *   npm run bench:vllm                                    about 8 minutes, plus the installation at first use
 *   npm run bench:vllm -- --seconds 40 --rounds 2         longer and steadier
 *   npm run bench:vllm -- --tpot-ms 15 --cap 8            when TPOT binds
 *   npm run bench:vllm -- --workload long-answers         or long-prompts
 *
 * 1x is what the bare engine finishes a second when it is saturated, measured first. A request is good when it
 * finishes with TTFT (from its scheduled arrival) within 0.8 s + 2 s per 1000 prompt tokens and TPOT within --tpot-ms.
 * SLUICE_SKETCH names a script of a rival proxy, started as `node SCRIPT PORT ENGINE_PORT --tpot=MS`.
 * Prints a table; the figures with their conditions go to --out (.bench/vllm.json) as JSON.
 */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import * as servers from '../test/vllm/servers.mjs'
import { freePort } from './relay/children.mjs'
import { runOpenLoop, saturate, warmUp } from './vllm/client.mjs'
import { formatTable, scoreRun, TTFT_BASE_MS, TTFT_PER_1K_TOKENS_MS } from './vllm/score.mjs'
import { makeArrivals, makeRequest, uniform, WORKLOADS } from './vllm/workload.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const STATE = join(ROOT, '.bench')
const GRACE_MS = 6000
const WARM_LOAD = 0.7
const READY_MS = 20_000
const TOLD = '{ max_num_seqs: 16, max_num_batched_tokens: 256 }'
const SATURATE_LIMIT_SECONDS = 120

const { values: options } = parseArgs({
  options: {
    workload: { type: 'string', default: 'mixed' },
    arms: { type: 'string', default: 'bare,cap,sketch,sluice,told' },
    loads: { type: 'string', default: '1,2' },
    seconds: { type: 'string', default: '30' },
    'warm-seconds': { type: 'string', default: '5' },
    rounds: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    rate: { type: 'string' },
    'tpot-ms': { type: 'string', default: '80' },
    cap: { type: 'string', default: '16' },
    out: { type: 'string', default: join(STATE, 'vllm.json') },
    help: { type: 'boolean', default: false },
  },
})

const shape = WORKLOADS[options.workload]
const seconds = Number(options.seconds)
const warmSeconds = Number(options['warm-seconds'])
const tpotTargetMs = Number(options['tpot-ms'])

/** Whether anything answers there; with `ok`, whether it answers with success. */
async function answers(url, ok) {
  return fetch(url, { method: ok ? 'GET' : 'POST' }).then(
    (response) => response.ok || !ok,
    () => false,
  )
}

/** Starts a script of Node, waits until `ready` resolves to true, and returns how to end it. */
async function startNode(name, args, ready) {
  const log = openSync(join(STATE, `${name}.log`), 'w')
  const child = spawn(process.execPath, args.map(String), { stdio: ['ignore', log, log], cwd: STATE })
  closeSync(log)
  const ended = new Promise((done) => child.once('exit', done))
  const end = async () => {
    child.kill('SIGTERM')
    await Promise.race([ended, sleep(3000, undefined, { ref: false })])
    child.kill('SIGKILL')
    await ended
  }
  for (const deadline = Date.now() + READY_MS; ; await sleep(100)) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await end()
      throw new Error(
        `${name} did not start:\n${readFileSync(join(STATE, `${name}.log`), 'utf8').slice(-2000)}`,
      )
    }
    if (await ready()) return end
  }
}

async function startSluice(enginePort, engineArgs = '{}') {
  const [port, adminPort] = [await freePort(), await freePort()]
  const file = join(STATE, 'sluice.yaml')
  const targets = `ttft: ${TTFT_BASE_MS}ms, ttft_per_1k_tokens: ${TTFT_PER_1K_TOKENS_MS}ms, tpot: ${tpotTargetMs}ms`
  writeFileSync(
    file,
    `listen: 127.0.0.1:${port}
admin: { listen: 127.0.0.1:${adminPort} }
mode: enforce
auth: none
models:
  - name: ${servers.MODEL_NAME}
    engine_args: ${engineArgs}
    replicas: [http://127.0.0.1:${enginePort}]
classes:
  bench: { ${targets}, objective: 99% }
default_class: bench
`,
  )
  const main = join(ROOT, 'dist', 'cli', 'main.js')
  const readyUrl = `http://127.0.0.1:${adminPort}/readyz`
  return { port, end: await startNode('sluice', [main, 'serve', '-c', file], () => answers(readyUrl, true)) }
}

async function startSketch(enginePort) {
  const port = await freePort()
  const script = resolve(process.env.SLUICE_SKETCH)
  const args = [script, port, enginePort, `--tpot=${tpotTargetMs}`]
  // It has no page of its own: that it answers an empty request with an error is enough.
  return { port, end: await startNode('sketch', args, () => answers(`http://127.0.0.1:${port}/`, false)) }
}

/** Waits until the engine has neither running nor waiting requests, so that no run inherits the last one's work. */
async function untilIdle(port) {
  for (const deadline = Date.now() + READY_MS; Date.now() < deadline; await sleep(250)) {
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const gauges = [...page.matchAll(/^vllm:num_requests_(?:running|waiting)\{[^}]*\} (\S+)/gm)]
    if (gauges.length >= 2 && gauges.every(([, value]) => Number(value) === 0)) return
  }
  throw new Error(`the engine on port ${port} does not become idle`)
}

const direct = (port) => ({ port, end: async () => {} })

/** The settings to compare, by name; each starts afresh for each run, so that no one carries learning over. */
function makeArms(plainPort, cappedPort) {
  return {
    bare: { engine: plainPort, open: async () => direct(plainPort) },
    cap: { engine: cappedPort, open: async () => direct(cappedPort) },
    sketch: { engine: plainPort, open: () => startSketch(plainPort) },
    sluice: { engine: plainPort, open: () => startSluice(plainPort) },
    // As an operator would write it; the cap above is as well informed.
    told: { engine: plainPort, open: () => startSluice(plainPort, TOLD) },
  }
}

function chosenArms() {
  const names = options.arms.split(',')
  if (!process.env.SLUICE_SKETCH && names.includes('sketch')) {
    console.error('SKIPPED: the rival proxy, since SLUICE_SKETCH names none.')
    return names.filter((name) => name !== 'sketch')
  }
  return names
}

async function measure(arm, load, ratePerSec, seed) {
  await untilIdle(arm.engine)
  const { port, end } = await arm.open()
  try {
    if (warmSeconds > 0) {
      await runOpenLoop(port, makeArrivals(shape, WARM_LOAD * ratePerSec, warmSeconds, seed + 7000), 0)
    }
    const arrivals = makeArrivals(shape, load * ratePerSec, seconds, seed)
    return scoreRun(await runOpenLoop(port, arrivals, GRACE_MS), seconds, tpotTargetMs)
  } finally {
    await end()
  }
}

async function saturatedRate(port) {
  const rng = uniform(99)
  const width = servers.ENGINE_ARGS['max-num-seqs'] + 8
  return saturate(port, () => makeRequest(shape, rng), width, SATURATE_LIMIT_SECONDS)
}

async function compare(names, ports) {
  const arms = makeArms(...ports)
  for (const port of new Set(names.map((name) => arms[name].engine))) {
    const rng = uniform(98)
    await warmUp(port, () => makeRequest(shape, rng), 8, SATURATE_LIMIT_SECONDS)
    await untilIdle(port)
  }
  const ratePerSec = options.rate === undefined ? await saturatedRate(ports[0]) : Number(options.rate)
  console.error(`1x = ${ratePerSec.toFixed(2)} requests/s`)
  const rows = []
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const load of options.loads.split(',').map(Number)) {
      for (const name of names) {
        const scored = await measure(arms[name], load, ratePerSec, Number(options.seed) + 100 * round)
        rows.push({ round, load, arm: name, ...scored })
        console.error(formatTable(rows.slice(-1)).split('\n')[1])
      }
    }
  }
  return { ratePerSec, rows }
}

function conditions(ratePerSec) {
  return {
    takenAt: new Date().toISOString(),
    vllm: servers.VLLM_VERSION,
    engineArgs: { ...servers.ENGINE_ARGS, dtype: servers.DTYPE },
    node: process.version,
    cpu: `${cpus().length} x ${cpus()[0]?.model}`,
    loadAverage: loadavg(),
    workload: { name: options.workload, ...shape },
    targets: { ttftMs: TTFT_BASE_MS, ttftPer1kTokensMs: TTFT_PER_1K_TOKENS_MS, tpotMs: tpotTargetMs },
    ratePerSec,
    seconds,
    warmSeconds,
    seed: Number(options.seed),
    cap: Number(options.cap),
  }
}

async function main() {
  if (options.help || shape === undefined) {
    console.error(readFileSync(fileURLToPath(import.meta.url), 'utf8').split('*/')[0])
    process.exitCode = options.help ? 0 : 2
    return
  }
  servers.install(servers.requirePython('bench:vllm'))
  const names = chosenArms()
  if (names.includes('sluice') && !existsSync(join(ROOT, 'dist', 'cli', 'main.js'))) {
    throw new Error('dist/ is missing: run `npm run build` first')
  }
  mkdirSync(STATE, { recursive: true })
  console.error(
    `load average before the start: ${loadavg()[0].toFixed(1)}; compare figures of quiet machines only`,
  )
  const ports = [await freePort(), await freePort()]
  const leave = () => servers.stop(ports).finally(() => process.exit(130))
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, leave)
  try {
    console.error('starting two vLLM servers (about a minute) ...')
    await Promise.all([
      servers.start([ports[0]]),
      names.includes('cap') ? servers.start([ports[1]], ['--max-num-queued-reqs', options.cap]) : undefined,
    ])
    const { ratePerSec, rows } = await compare(names, ports)
    console.log(formatTable(rows))
    mkdirSync(dirname(resolve(options.out)), { recursive: true })
    writeFileSync(options.out, `${JSON.stringify({ conditions: conditions(ratePerSec), rows }, null, 2)}\n`)
    console.log(`JSON: ${options.out}`)
  } finally {
    await servers.stop(ports)
  }
}

await main()
