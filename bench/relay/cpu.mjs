/** CPU per streamed frame and per request of each peer, in interleaved passes over identical streams. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { firstLineJson, freePort, listening, outputJson, start, stop } from '../processes.mjs'
import { median } from './stats.mjs'
import { cpuSeconds } from './usage.mjs'

const script = (name) => fileURLToPath(new URL(name, import.meta.url))
const PROMPT_BYTES = 2048
/** Requests of one token a pass: the cost of a request without its stream. Few at once, so that none queues here. */
const SHORT = { streams: 4, rounds: 500, tokens: 1, rampMs: 0 }
const LARGE = { ...SHORT, rounds: 100, promptBytes: 64 * 1024 }
/**
 * Node compiles what is hot over many thousand requests, and part of that anew when another kind of work first comes: a
 * pass before that measures the compiler.
 */
const ROUND = [
  { ...SHORT, rounds: 1700 },
  { ...LARGE, rounds: 80 },
  { streams: 100, rounds: 1, tokens: 64, rampMs: 500 },
]
const WARM_UP = [...ROUND, ...ROUND, ...ROUND]
export const REPLICAS = 2

/** Rows per peer with the median over passes; every answer was compared byte by byte with what was sent. */
export async function measureRelayCpu(options) {
  const { peers, passes, intervalMs, say, log, loadCore, streams, tokens, rounds } = options
  const upstream = start([process.execPath, script('upstream.mjs'), String(intervalMs), String(REPLICAS)], {
    core: loadCore,
    log,
    output: true,
  })
  const rows = []
  const load = (wanted) => runLoader({ ...wanted, loadCore, log })
  const long = { streams, tokens, rounds, rampMs: 500 }
  try {
    const { ports } = await firstLineJson(upstream)
    const proxies = []
    for (const peer of peers) proxies.push(await startProxy(peer, ports, options))
    for (const { peer, port } of proxies) {
      say(`relay: warming ${peer.name} up`)
      for (const wanted of peer.compiles ? WARM_UP : [SHORT]) await load({ ...wanted, port })
    }
    for (let pass = 0; pass < passes; pass++) {
      // Each pass begins with another peer, so that no one always runs first.
      for (let turn = 0; turn < proxies.length; turn++) {
        const proxy = proxies[(pass + turn) % proxies.length]
        say(`relay: pass ${pass + 1}/${passes}, ${proxy.peer.name}`)
        // A peer may be there to show what fewer streams cost.
        const own = { ...long, streams: streams * (proxy.peer.streamsRatio ?? 1) }
        rows.push({ peer: proxy.peer.name, pass, ...(await costOf(proxy, load, own)) })
      }
      say(`relay: pass ${pass + 1}/${passes}, direct`)
      const direct = await load({ ...long, port: ports[0] })
      rows.push({ peer: 'direct', pass, ...wire(direct), errors: direct.errors })
    }
    await Promise.all(proxies.map(({ child }) => stop(child)))
  } finally {
    await stop(upstream)
  }
  const names = [...peers.map((peer) => peer.name), 'direct']
  return {
    streams,
    tokens,
    rounds,
    intervalMs,
    passes,
    peers: names.map((name) => summarise(name, rows)),
    rows,
  }
}

export async function startProxy(peer, upstreamPorts, { workDir, log, proxyCore }) {
  const port = await freePort()
  const folder = join(workDir, peer.name)
  mkdirSync(folder, { recursive: true })
  const args = peer.command({ port, adminPort: await freePort(), upstreamPorts, workDir: folder })
  const child = start(args, { core: proxyCore, log })
  await listening(port, child, peer.name)
  return { peer, port, child }
}

async function costOf({ child, port }, load, long) {
  const metered = async (wanted) => {
    const before = cpuSeconds(child.pid)
    const seen = await load({ port, ...wanted })
    const after = cpuSeconds(child.pid)
    return { ...seen, ran: after.ran - before.ran, waited: after.waited - before.waited }
  }
  /** After as many of its kind unmetered: at each change of work Node compiles anew for a second or two. */
  const settled = async (wanted) => {
    await load({ port, ...wanted })
    return metered(wanted)
  }
  const shortRun = await settled(SHORT)
  const largeRun = await settled(LARGE)
  const longRun = await metered(long)
  const requestSeconds = shortRun.ran / shortRun.requests
  // A one-token answer is the price of a request; what a long stream costs beyond it is the price of its frames.
  const furtherChunks = longRun.chunks - longRun.requests * (shortRun.chunks / shortRun.requests)
  return {
    ...wire(longRun),
    usPerChunk: ((longRun.ran - longRun.requests * requestSeconds) / furtherChunks) * 1e6,
    usPerChunkAll: (longRun.ran / longRun.chunks) * 1e6,
    usPerRequest: requestSeconds * 1e6,
    usPerLargeRequest: (largeRun.ran / largeRun.requests) * 1e6,
    cores: longRun.ran / longRun.seconds,
    waitedRatio: longRun.waited / longRun.ran,
    errors: { ...shortRun.errors, ...largeRun.errors, ...longRun.errors },
  }
}

const wire = ({ chunks, seconds, delayMs, ttftMs }) => ({
  chunks,
  chunksPerSec: chunks / seconds,
  delayP50Ms: delayMs.p50,
  delayP99Ms: delayMs.p99,
  ttftP50Ms: ttftMs.p50,
  ttftP99Ms: ttftMs.p99,
})

export function runLoader({ loadCore, log, ...options }) {
  const child = start(
    [process.execPath, script('loader.mjs'), JSON.stringify({ promptBytes: PROMPT_BYTES, ...options })],
    { core: loadCore, log, output: true },
  )
  return outputJson(child, 'loader')
}

function summarise(name, rows) {
  const own = rows.filter((row) => row.peer === name)
  const of = (key) => median(own.map((row) => row[key] ?? null))
  const keys = [
    'usPerChunk',
    'usPerChunkAll',
    'usPerRequest',
    'usPerLargeRequest',
    'cores',
    'waitedRatio',
    'chunks',
    'chunksPerSec',
    'delayP50Ms',
    'delayP99Ms',
    'ttftP50Ms',
    'ttftP99Ms',
  ]
  return {
    peer: name,
    ...Object.fromEntries(keys.map((key) => [key, of(key)])),
    errors: Object.assign({}, ...own.map((row) => row.errors)),
  }
}
