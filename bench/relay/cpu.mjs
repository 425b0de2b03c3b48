/** CPU per streamed frame and per request of each peer, in interleaved passes over identical streams. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cpuSeconds, firstLineJson, freePort, listening, outputJson, start, stop } from './children.mjs'
import { median } from './stats.mjs'

const script = (name) => fileURLToPath(new URL(name, import.meta.url))
const PROMPT_BYTES = 2048
/** Requests of one token a pass: the cost of a request without its stream. */
const SHORT = { streams: 20, rounds: 40, tokens: 1 }
const REPLICAS = 2

/** Rows per peer with the median over passes; every answer was compared byte by byte with what was sent. */
export async function measureRelayCpu({ peers, passes, intervalMs, say, ...context }) {
  const rows = []
  for (let pass = 0; pass < passes; pass++) {
    // Each pass begins with another peer, so that no one always runs first.
    for (let turn = 0; turn < peers.length; turn++) {
      const peer = peers[(pass + turn) % peers.length]
      say(`relay: pass ${pass + 1}/${passes}, ${peer.name}`)
      rows.push({ peer: peer.name, ...(await onePass({ ...context, peer, intervalMs })) })
    }
    say(`relay: pass ${pass + 1}/${passes}, direct`)
    rows.push({ peer: 'direct', ...(await onePass({ ...context, intervalMs })) })
  }
  const names = [...peers.map((peer) => peer.name), 'direct']
  return {
    streams: context.streams,
    tokens: context.tokens,
    rounds: context.rounds,
    intervalMs,
    passes,
    peers: names.map((name) => summarise(name, rows)),
    rows,
  }
}

async function onePass({ peer, intervalMs, workDir, log, proxyCore, loadCore, streams, tokens, rounds }) {
  const upstream = start([process.execPath, script('upstream.mjs'), String(intervalMs), String(REPLICAS)], {
    core: loadCore,
    log,
    output: true,
  })
  let proxy
  try {
    const { ports } = await firstLineJson(upstream)
    const load = (options) => runLoader({ ...options, loadCore, log })
    if (peer === undefined) {
      const long = await load({ port: ports[0], streams, tokens, rounds, rampMs: 500 })
      return { ...wire(long), errors: long.errors }
    }
    const port = await freePort()
    const folder = join(workDir, `${peer.name}-${port}`)
    mkdirSync(folder, { recursive: true })
    const args = peer.command({ port, adminPort: await freePort(), upstreamPorts: ports, workDir: folder })
    proxy = start(args, { core: proxyCore, log })
    await listening(port, proxy, peer.name)
    return await costOf({ proxy, port, load, streams, tokens, rounds })
  } finally {
    await stop(proxy)
    await stop(upstream)
  }
}

async function costOf({ proxy, port, load, streams, tokens, rounds }) {
  await load({ ...SHORT, port, rampMs: 0 })
  await load({ port, streams: Math.min(streams, 100), tokens: 64, rounds: 1, rampMs: 500 })
  const metered = async (options) => {
    const before = cpuSeconds(proxy.pid)
    const seen = await load({ port, ...options })
    const after = cpuSeconds(proxy.pid)
    return { ...seen, ran: after.ran - before.ran, waited: after.waited - before.waited }
  }
  const short = await metered({ ...SHORT, rampMs: 0 })
  const long = await metered({ streams, tokens, rounds, rampMs: 500 })
  const requestSeconds = short.ran / short.requests
  // A one-token answer is the price of a request; what a long stream costs beyond it is the price of its frames.
  const furtherChunks = long.chunks - long.requests * (short.chunks / short.requests)
  return {
    ...wire(long),
    usPerChunk: ((long.ran - long.requests * requestSeconds) / furtherChunks) * 1e6,
    usPerRequest: requestSeconds * 1e6,
    cores: long.ran / long.seconds,
    waitedRatio: long.waited / long.ran,
    errors: { ...short.errors, ...long.errors },
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

function runLoader({ loadCore, log, ...options }) {
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
    'usPerRequest',
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
