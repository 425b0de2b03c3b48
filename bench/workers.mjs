/**
 * What `workers: 2` costs and keeps, beside one process. Prints tables and, last, one JSON object.
 *
 *   (a) CPU per streamed frame and per request, all processes of a Sluice together, in interleaved passes; and of one
 *       process with half of the streams, which wakes for as few frames at a time as each of two workers: no link
 *       between processes can cost less than that;
 *   (b) goodput at 1.5x of what two simulated engines can serve well, and how the requests split over the workers.
 *
 * Usage: npm run bench:workers -- [--only cpu|goodput] [--passes 3] [--streams 100] [--tokens 128] [--rounds 2]
 *                                 [--seconds 40] [--seeds 1,2]
 * About 6 minutes. Wanted: a frame at most 1.1x of one process, a split within 10 %, the same goodput.
 */
import { mkdtempSync, openSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { sluice } from './peers/sluice.mjs'
import { canPin, stopAll } from './processes.mjs'
import { measureRelayCpu } from './relay/cpu.mjs'
import { table } from './relay/print.mjs'
import { measureGoodput } from './workers/goodput.mjs'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    passes: { type: 'string', default: '3' },
    streams: { type: 'string', default: '100' },
    tokens: { type: 'string', default: '128' },
    rounds: { type: 'string', default: '2' },
    interval: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '40' },
    seeds: { type: 'string', default: '1,2' },
  },
})

const say = (line) => process.stderr.write(`${line}\n`)
const workDir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const log = openSync(join(workDir, 'children.log'), 'a')
// All processes of a Sluice share core 1, so that both shapes have the same to run on; what drives them has core 0.
const pinning = canPin && cpus().length >= 2 ? { proxyCore: 1, loadCore: 0 } : {}

const peerWith = (workers) => ({
  ...sluice,
  name: workers === 1 ? 'one process' : `${workers} workers`,
  command: (given) => sluice.command({ ...given, workers }),
})

function printCpu({ peers, streams, tokens, rounds, intervalMs, passes }) {
  const base = peers.find(({ peer }) => peer === 'one process')
  console.log(
    `\nRelay, ${streams} streams x ${rounds} x ${tokens} tokens at ${intervalMs} ms, medians of ${passes} interleaved passes, every byte compared (wanted: <= 1.1 x one process a chunk)`,
  )
  table(
    ['', 'CPU µs/chunk', 'x', 'CPU µs/request', 'x', 'delay p50 ms', 'p99', 'TTFT p50 ms', 'p99', 'errors'],
    peers
      .filter(({ peer }) => peer !== 'direct')
      .map((row) => [
        row.peer,
        row.usPerChunk.toFixed(1),
        (row.usPerChunk / base.usPerChunk).toFixed(2),
        row.usPerRequest.toFixed(0),
        (row.usPerRequest / base.usPerRequest).toFixed(2),
        ...[row.delayP50Ms, row.delayP99Ms, row.ttftP50Ms, row.ttftP99Ms].map((ms) => ms.toFixed(2)),
        JSON.stringify(row.errors),
      ]),
  )
}

function printGoodput(rows, seconds) {
  console.log(`\nGoodput at 1.5x of two engines (demo/slow), ${seconds} s a run`)
  table(
    ['seed', '', 'good/s', 'of offered', 'shed', 'requests by worker', 'valid'],
    rows.map(({ seed, workers, goodPerSec, attained, shed, split, valid }) => [
      String(seed),
      workers === 1 ? 'one process' : `${workers} workers`,
      goodPerSec.toFixed(2),
      `${(attained * 100).toFixed(1)} %`,
      String(shed),
      split.length === 0 ? '–' : split.join(' : '),
      valid ? 'yes' : 'NO: the client lagged',
    ]),
  )
}

async function main() {
  const result = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length }
  if (values.only !== 'goodput') {
    result.cpu_us = await measureRelayCpu({
      peers: [peerWith(1), peerWith(2), { ...peerWith(1), name: 'one, half the streams', streamsRatio: 0.5 }],
      passes: Number(values.passes),
      streams: Number(values.streams),
      tokens: Number(values.tokens),
      rounds: Number(values.rounds),
      intervalMs: Number(values.interval),
      ...{ workDir, log, say, ...pinning },
    })
    printCpu(result.cpu_us)
  }
  if (values.only !== 'cpu') {
    result.goodput = []
    for (const seed of values.seeds.split(',').map(Number)) {
      for (const workers of [1, 2]) {
        say(`goodput: seed ${seed}, ${workers} workers`)
        const run = { workers, seed, seconds: Number(values.seconds), workDir, log }
        result.goodput.push(await measureGoodput(run))
      }
    }
    printGoodput(result.goodput, values.seconds)
  }
  console.log(JSON.stringify(result))
}

try {
  await main()
} finally {
  await stopAll()
  rmSync(workDir, { recursive: true, force: true })
}
