/**
 * Good requests a second on a real vLLM (CPU, random weights): bare, behind vLLM's own queue caps, behind HAProxy, behind
 * a rival proxy if one is given, and behind Sluice; in turns, each under the same seeded arrivals.
 *
 *   npm run bench:vllm                                            about 6 minutes, plus the installation at first use
 *   npm run bench:vllm -- --rounds 5 --loads 1,1.5,2              with intervals
 *   npm run bench:vllm -- --workloads mixed,long-answers,long-prompts,classes
 *   npm run bench:vllm -- --arms bare,cap:8,cap:16,token-cap:1500,haproxy:12,sketch,sluice,told
 *   npm run bench:vllm -- --tpot-ms 15 --arms cap:8,sluice        when TPOT binds
 *   npm run bench:vllm -- --again FILE                            the last table once more, from an earlier --out
 *
 * 1x is what the bare engine finishes a second when it is saturated, measured first. A request is good when it
 * finishes with TTFT (from its scheduled arrival) within 0.8 s + 2 s per 1000 prompt tokens and TPOT within --tpot-ms;
 * in `classes`, a mix of five, when it keeps the promise of its class.
 * SLUICE_SKETCH names a script of a rival proxy, started as `node SCRIPT PORT ENGINE_PORT --tpot=MS`. Sluice is told
 * nothing of the engine, except in `told`. Prints tables; the figures with their conditions go to --out as JSON. The last
 * table has the same rows in the simulator, on an engine of the costs that this one has when it is idle.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { fitParameters } from '../dist/replay/least-squares.js'
import * as servers from '../test/vllm/servers.mjs'
import { idleProfile } from './engine-model/live.mjs'
import { freePort, stopAll } from './processes.mjs'
import { armsOf } from './vllm/arms.mjs'
import { runOpenLoop, saturate, warmUp } from './vllm/client.mjs'
import { formatMeans, formatTable, scoreRun } from './vllm/score.mjs'
import { formatOrder, simulateRows } from './vllm/simulated.mjs'
import { makeArrivals, makeRequest, plainSlo, uniform, WARM_LOAD, WORKLOADS } from './vllm/workload.mjs'
import { eventually } from './waiting.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const STATE = join(ROOT, '.bench')
const GRACE_MS = 6000
const IDLE_MS = 20_000
const SATURATE_LIMIT_SECONDS = 120

const { values: options } = parseArgs({
  options: {
    workloads: { type: 'string', default: 'mixed' },
    arms: { type: 'string', default: 'bare,cap:16,haproxy:12,sketch,sluice' },
    loads: { type: 'string', default: '1,2' },
    seconds: { type: 'string', default: '30' },
    'warm-seconds': { type: 'string', default: '5' },
    rounds: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    rate: { type: 'string' },
    again: { type: 'string' },
    'tpot-ms': { type: 'string', default: '80' },
    out: { type: 'string', default: join(STATE, 'vllm.json') },
    help: { type: 'boolean', default: false },
  },
})

const workloads = options.workloads.split(',')
const seconds = Number(options.seconds)
const warmSeconds = Number(options['warm-seconds'])
const tpotTargetMs = Number(options['tpot-ms'])

/** Waits until the engine has neither running nor waiting requests, so that no run inherits the last one's work. */
async function untilIdle(port) {
  const isIdle = async () => (await servers.requestsAt(port)) === 0
  await eventually(`the engine on port ${port} to become idle`, IDLE_MS, isIdle, 250)
}

async function measure(arm, workload, load, ratePerSec, seed) {
  await untilIdle(arm.enginePort)
  const { port, end } = await arm.open({
    enginePort: arm.enginePort,
    stateDir: STATE,
    tpotTargetMs,
    workload,
  })
  try {
    if (warmSeconds > 0) {
      await runOpenLoop(port, makeArrivals(workload, WARM_LOAD * ratePerSec, warmSeconds, seed + 7000), 0)
    }
    const arrivals = makeArrivals(workload, load * ratePerSec, seconds, seed)
    return scoreRun(await runOpenLoop(port, arrivals, GRACE_MS), seconds, tpotTargetMs)
  } finally {
    await end()
  }
}

async function saturatedRate(port, shape) {
  const rng = uniform(99)
  const width = servers.ENGINE_ARGS['max-num-seqs'] + 8
  return saturate(port, () => makeRequest(shape, rng), width, SATURATE_LIMIT_SECONDS)
}

/** Every arm in turn on the same arrivals, round by round, so that a machine that changes changes for all. */
async function compare(arms, workload) {
  const shape = WORKLOADS[workload]
  const ratePerSec =
    options.rate === undefined ? await saturatedRate(arms[0].plainPort, shape) : Number(options.rate)
  console.error(`${workload}: 1x = ${ratePerSec.toFixed(2)} requests/s`)
  const rows = []
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const load of options.loads.split(',').map(Number)) {
      for (const arm of arms) {
        const seed = Number(options.seed) + 100 * round
        const scored = await measure(arm, shape, load, ratePerSec, seed)
        rows.push({ workload, round, load, arm: arm.name, ...scored })
        console.error(formatTable(rows.slice(-1)).split('\n')[1])
      }
    }
  }
  return { workload, ratePerSec, rows }
}

/** Starts an engine for each set of arguments and tells each arm which is its own. */
async function startEngines(arms, ports) {
  const portOf = new Map()
  for (const { engineArgs } of [{ engineArgs: [] }, ...arms]) {
    const key = engineArgs.join(' ')
    if (portOf.has(key)) continue
    const port = await freePort()
    portOf.set(key, port)
    ports.push(port)
    await servers.start([port], engineArgs)
    const rng = uniform(98)
    await warmUp(port, () => makeRequest(WORKLOADS.mixed, rng), 8, SATURATE_LIMIT_SECONDS)
  }
  return arms.map((arm) => ({
    ...arm,
    enginePort: portOf.get(arm.engineArgs.join(' ')),
    plainPort: portOf.get(''),
  }))
}

function conditions(engine) {
  return {
    engine,
    takenAt: new Date().toISOString(),
    vllm: servers.VLLM_VERSION,
    engineArgs: { ...servers.ENGINE_ARGS, dtype: servers.DTYPE },
    node: process.version,
    cpu: `${cpus().length} x ${cpus()[0]?.model}`,
    loadAverage: loadavg(),
    workloads: Object.fromEntries(workloads.map((name) => [name, WORKLOADS[name]])),
    targets: plainSlo(tpotTargetMs),
    seconds,
    warmSeconds,
    seed: Number(options.seed),
    rounds: Number(options.rounds),
  }
}

async function main() {
  const unknown = workloads.filter((name) => WORKLOADS[name] === undefined)
  if (options.help || unknown.length > 0) {
    console.error(readFileSync(fileURLToPath(import.meta.url), 'utf8').split('*/')[0])
    if (unknown.length > 0) console.error(`no workload ${unknown}; known: ${Object.keys(WORKLOADS)}`)
    process.exitCode = options.help ? 0 : 2
    return
  }
  if (options.again !== undefined) {
    console.log(formatOrder(await simulateRows(JSON.parse(readFileSync(options.again, 'utf8')))))
    return
  }
  servers.install(servers.requirePython('bench:vllm'))
  const arms = armsOf(options.arms.split(','))
  mkdirSync(STATE, { recursive: true })
  const before = loadavg()[0].toFixed(1)
  console.error(`load average before the start: ${before}; compare figures of quiet machines only`)
  const ports = []
  const leave = () => Promise.all([servers.stop(ports), stopAll()]).finally(() => process.exit(130))
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, leave)
  try {
    console.error('starting vLLM (about a minute for each set of engine arguments) ...')
    const placed = await startEngines(arms, ports)
    const { profile } = await idleProfile(placed[0].plainPort, servers.ENGINE_ARGS, fitParameters)
    const results = []
    for (const workload of workloads) results.push(await compare(placed, workload))
    for (const { workload, ratePerSec, rows } of results) {
      console.log(
        `${workload}: 1x = ${ratePerSec.toFixed(2)} requests/s, the engine's own pace when saturated`,
      )
      console.log(`${formatTable(rows)}\n\n${formatMeans(rows)}\n`)
    }
    mkdirSync(dirname(resolve(options.out)), { recursive: true })
    const measured = { conditions: conditions(profile), results }
    writeFileSync(options.out, `${JSON.stringify(measured, null, 2)}\n`)
    console.log(`${formatOrder(await simulateRows(measured))}\n\nJSON: ${options.out}`)
  } finally {
    await servers.stop(ports)
  }
}

await main()
