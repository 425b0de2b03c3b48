/**
 * Do independent clients judge as Sluice does? Simulated engines, Sluice, and a load client of others, each a process;
 * then each request's verdict by the client beside the verdict in Sluice's log.
 *
 *   npm run test:clients                                        six runs, about seven minutes, after the installation
 *   npm run test:clients -- --clients aiperf --runs late        one of them
 *   npm run test:clients -- --seconds 60 --seed 2
 *
 * Clients: `vllm bench serve --goodput` and aiperf, under the same TTFT and TPOT targets as the class. The runs: 1x and
 * 2x are in mode enforce, so that Sluice refuses what it could not serve in time; `late` is 1.1x in mode off, so that
 * many requests end near their targets, on either side. 1x is about what two such engines carry.
 *
 * Fails when goodput differs by more than 1 %, or when a request that the two call differently is more than 5 ms from
 * the target, by either clock. A run in which the client's own event loop was late (p99 above 5 ms) is NOT VALID and
 * counts for nothing. Needs Python >= 3.11 and, at first use, 8 GB of disk for vLLM (shared with test:vllm) and aiperf;
 * skips loudly without Python.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'
import { answering, freePort, startSluice, stopAll } from '../../bench/processes.mjs'
import { table } from '../../bench/relay/print.mjs'
import * as aiperf from './aiperf.mjs'
import { compare, faultsOf } from './compare.mjs'
import { lagP99Ms, VALID_LAG_P99_MS } from './lag/lag.mjs'
import * as vllmBench from './vllm-bench.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '..', '..')
const TOKENIZER = join(ROOT, '.real-vllm', 'model')
const MODEL = 'demo'
const PROFILE = 'demo/slow'
const ENGINES = 2
const CLIENTS = { vllm: vllmBench, aiperf }
const RUNS = {
  '1x': { load: 1, mode: 'enforce' },
  '2x': { load: 2, mode: 'enforce' },
  late: { load: 1.1, mode: 'off' },
}
const TARGETS = { ttftMs: 800, tpotMs: 60 }
/** Lengths spread by that much around their means. */
const SHAPE = { answerTokens: 50, spreadRatio: 0.5 }
/** 1x: Sluice refuses 3 % at it, and at 1.1x with nobody refused half of the requests are late. */
const CAPACITY_PER_SEC = 11
const CLIENT_LIMIT_MS = 300_000

const { values: options } = parseArgs({
  options: {
    clients: { type: 'string', default: Object.keys(CLIENTS).join(',') },
    runs: { type: 'string', default: Object.keys(RUNS).join(',') },
    seconds: { type: 'string', default: '45' },
    seed: { type: 'string', default: '1' },
  },
})

function chosen(table, text, flag) {
  return text.split(',').map((name) => {
    if (table[name] === undefined)
      throw new Error(`--${flag} takes ${Object.keys(table).join(', ')}, not "${name}"`)
    return { key: name, ...table[name] }
  })
}

function sluiceConfig(mode, traffic, admin, engines) {
  return stringify({
    listen: `127.0.0.1:${traffic}`,
    admin: { listen: `127.0.0.1:${admin}` },
    mode,
    models: [{ name: MODEL, profile: PROFILE, replicas: engines.map((port) => `http://127.0.0.1:${port}`) }],
    classes: { agreed: { ttft: `${TARGETS.ttftMs}ms`, tpot: `${TARGETS.tpotMs}ms`, objective: '99%' } },
    default_class: 'agreed',
    auth: 'none',
  })
}

/** Starts engines and Sluice; returns its address. Sluice's log is `sluice.log` in the folder. */
async function startFleet(folder, mode) {
  const launch = (name, args, url) =>
    answering(url, startSluice(args, { log: join(folder, `${name}.log`) }), name)
  const [traffic, admin, ...engines] = await Promise.all(Array.from({ length: 2 + ENGINES }, freePort))
  const engineAt = (port, place) => {
    const named = ['--profile', PROFILE, '--served-model-name', MODEL, '--seed', place + 1]
    const args = ['engine', ...named, '--port', port]
    return launch(`engine-${place}`, args, `http://127.0.0.1:${port}/health`)
  }
  await Promise.all(engines.map(engineAt))
  const file = join(folder, 'sluice.yaml')
  writeFileSync(file, sluiceConfig(mode, traffic, admin, engines))
  await launch('sluice', ['serve', '-c', file], `http://127.0.0.1:${admin}/readyz`)
  return `http://127.0.0.1:${traffic}`
}

/** What a signal has to end. */
let underway = { client: undefined, folder: undefined }

/** Runs the client to its end, with its event loops watched. Throws with the end of its log when it fails. */
async function runClient({ program, args, env }, folder) {
  const lagFolder = join(folder, 'lag')
  mkdirSync(lagFolder)
  const logFile = join(folder, 'client.log')
  const log = openSync(logFile, 'w')
  const child = spawn(program, args, {
    stdio: ['ignore', log, log],
    cwd: folder,
    // A group of its own: aiperf has processes that would outlive it.
    detached: true,
    env: { ...process.env, ...env, PYTHONPATH: join(HERE, 'lag'), CLIENT_LAG_DIR: lagFolder },
  })
  closeSync(log)
  underway.client = child
  const timer = setTimeout(() => endClient(child), CLIENT_LIMIT_MS)
  const [code] = await once(child, 'exit')
  clearTimeout(timer)
  if (code !== 0)
    throw new Error(`${program} ended with ${code}:\n${readFileSync(logFile, 'utf8').slice(-3000)}`)
}

const requestLines = (folder) =>
  readFileSync(join(folder, 'sluice.log'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes('"event":"request"'))
    .map((line) => JSON.parse(line))

/** From the first generation's arrival to the last one's end, in Unix ms. */
function underWay(lines) {
  const generations = lines.filter(({ kind }) => kind === 'generate')
  return [
    Math.min(...generations.map(({ time, e2e_ms }) => Date.parse(time) - e2e_ms)),
    Math.max(...generations.map(({ time }) => Date.parse(time))),
  ]
}

async function runOne(client, run) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-clients-'))
  underway = { client: undefined, folder }
  try {
    const url = await startFleet(folder, run.mode)
    const ratePerSec = run.load * CAPACITY_PER_SEC
    const requests = Math.round(ratePerSec * Number(options.seconds))
    const order = { url, model: MODEL, tokenizer: TOKENIZER, targets: TARGETS, ratePerSec, requests }
    await runClient(client.command({ ...order, shape: SHAPE, seed: Number(options.seed), folder }), folder)
    await stopAll()
    const { records, ownGood } = client.read(folder, TARGETS)
    const lines = requestLines(folder)
    const found = compare(records, lines, TARGETS)
    const faults = faultsOf(found)
    if (ownGood !== found.goodByClient && found.unmatched === 0)
      faults.push(`the client itself counts ${ownGood} good, its records ${found.goodByClient}`)
    const lag = lagP99Ms(join(folder, 'lag'), client.clockProcess, ...underWay(lines))
    const valid = lag <= VALID_LAG_P99_MS
    return {
      ...found,
      lagP99Ms: lag,
      faults,
      word: !valid ? 'NOT VALID' : faults.length === 0 ? 'agrees' : 'DIFFERS',
    }
  } finally {
    await stopAll()
    rmSync(folder, { recursive: true, force: true })
  }
}

const shown = (ms) => (ms === undefined ? '–' : ms.toFixed(1))

function row({ client, run, found }) {
  const farthest = Math.max(0, ...found.disagreements.map(({ distanceMs }) => distanceMs))
  return [
    client.name,
    run.key,
    ...[found.requests, found.refused, found.goodByClient, found.goodBySluice].map(String),
    `${found.differencePercent.toFixed(2)} %`,
    String(found.disagreements.length),
    found.disagreements.length === 0 ? '–' : shown(farthest),
    `${shown(found.ttftLaterMs.p50)} / ${shown(found.ttftLaterMs.p99)}`,
    shown(found.lagP99Ms),
    found.word,
  ]
}

const HEAD = [
  ...[
    'client',
    'run',
    'requests',
    'refused',
    'good by client',
    'good by Sluice',
    'goodput differs',
    'verdicts differ',
  ],
  ...['farthest, ms', 'TTFT later there p50 / p99, ms', "client's loop lag p99, ms", ''],
]

function endClient(child) {
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

async function endNow() {
  if (underway.client !== undefined) endClient(underway.client)
  await stopAll()
  if (underway.folder !== undefined) rmSync(underway.folder, { recursive: true, force: true })
  process.exit(130)
}

async function main() {
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, endNow)
  const clients = chosen(CLIENTS, options.clients, 'clients')
  const runs = chosen(RUNS, options.runs, 'runs')
  for (const client of clients) client.install()
  const results = []
  for (const client of clients) {
    for (const run of runs) {
      console.log(`${client.name}, ${run.key} (mode ${run.mode}) ...`)
      const found = await runOne(client, run)
      for (const fault of found.faults) console.log(`  ${fault}`)
      results.push({ client, run, found })
    }
  }
  console.log(
    `\nTargets: TTFT ${TARGETS.ttftMs} ms, TPOT ${TARGETS.tpotMs} ms. 1x is ${CAPACITY_PER_SEC} requests/s.`,
  )
  table(HEAD, results.map(row))
  const count = (word) => results.filter(({ found }) => found.word === word).length
  const [passed, failed, late] = [count('agrees'), count('DIFFERS'), count('NOT VALID')]
  if (late > 0) console.log('NOT VALID: the client was late itself; take a quieter machine.')
  console.log(`${passed} passed, ${failed} failed, ${late} skipped`)
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0
}

await main()
