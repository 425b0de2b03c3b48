/**
 * What Sluice adds to a streamed request. Prints tables and, last, one JSON object.
 *
 *   (a) TTFT added at 200 requests/s in front of an emulated engine, bare and behind each peer in turns;
 *   (b) CPU per streamed frame and per request of 2 KiB and 64 KiB, delays, and memory at 1000 streams.
 *
 * Peers are Sluice, the bare prototype, and HAProxy, nginx and vLLM's Rust router where they are on the PATH.
 *
 * Usage: npm run bench:relay -- [--passes 5] [--streams 100] [--tokens 128] [--rounds 2] [--only ttft|cpu|memory]
 *     [--peers sluice,haproxy] [--json FILE]
 *   --rt runs all ahead of other work on the machine (root); --keep keeps the children's log
 */
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { haproxy } from './peers/haproxy.mjs'
import { honoUndici } from './peers/hono-undici.mjs'
import { nginx } from './peers/nginx.mjs'
import { sluice } from './peers/sluice.mjs'
import { vllmRouter } from './peers/vllm-router.mjs'
import { canPin, stopAll, useRealTime } from './processes.mjs'
import { measureRelayCpu } from './relay/cpu.mjs'
import { measureMemory } from './relay/memory.mjs'
import { printCpu, printMemory, printTtft } from './relay/print.mjs'
import { measureTtft } from './relay/ttft.mjs'

const { values } = parseArgs({
  options: {
    passes: { type: 'string', default: '5' },
    streams: { type: 'string', default: '100' },
    tokens: { type: 'string', default: '128' },
    rounds: { type: 'string', default: '2' },
    interval: { type: 'string', default: '20' },
    slices: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    only: { type: 'string' },
    peers: { type: 'string' },
    json: { type: 'string' },
    rt: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
})

const say = (line) => process.stderr.write(`${line}\n`)
const workDir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const logFile = join(workDir, 'children.log')
const log = openSync(logFile, 'a')
// The proxy has core 1 for itself; what drives it has core 0.
const pinning = canPin && cpus().length >= 2 ? { proxyCore: 1, loadCore: 0 } : {}

async function main() {
  if (values.rt) useRealTime()
  const peers = []
  const wanted = values.peers?.split(',')
  for (const peer of [honoUndici, sluice, vllmRouter, haproxy, nginx]) {
    if (wanted?.includes(peer.name) === false) continue
    const missing = peer.missing()
    if (missing === undefined) peers.push(peer)
    else say(`SKIPPED ${peer.name}: ${missing}`)
  }
  if (pinning.proxyCore === undefined)
    say('NOT PINNED: taskset or a second core is missing, so CPU figures are rough')
  const context = { workDir, log, say, ...pinning }
  const result = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length }
  const runs = (part) => values.only === undefined || values.only === part
  if (runs('ttft')) {
    result.ttft = await measureTtft({
      ...context,
      peers,
      slices: Number(values.slices),
      seconds: Number(values.seconds),
      ratePerSec: 200,
    })
    printTtft(result.ttft)
  }
  if (runs('cpu')) {
    const load = {
      streams: Number(values.streams),
      tokens: Number(values.tokens),
      rounds: Number(values.rounds),
      intervalMs: Number(values.interval),
    }
    result.relay = await measureRelayCpu({ ...context, peers, passes: Number(values.passes), ...load })
    printCpu(result.relay)
  }
  if (runs('memory')) {
    result.memory = await measureMemory({ ...context, peers })
    printMemory(result.memory)
  }
  console.log(JSON.stringify(result))
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`)
}

const interrupted = () => {
  void stopAll().finally(() => process.exit(130))
}
process.once('SIGINT', interrupted)
process.once('SIGTERM', interrupted)
try {
  await main()
} catch (error) {
  say(`FAILED: ${error.stack}\n--- children said last:\n${readFileSync(logFile, 'utf8').slice(-2000)}`)
  process.exitCode = 1
} finally {
  await stopAll()
  if (!values.keep) rmSync(workDir, { recursive: true, force: true })
}
