/** The most memory that each peer takes with a thousand streams open at once. */
import { fileURLToPath } from 'node:url'
import { firstLineJson, start, stop } from '../processes.mjs'
import { REPLICAS, runLoader, startProxy } from './cpu.mjs'
import { peakMib } from './usage.mjs'

const upstreamScript = fileURLToPath(new URL('upstream.mjs', import.meta.url))
/** Slow enough that one core of load is no matter: memory hangs on what is open, and not on its pace. */
const INTERVAL_MS = 200
const LOAD = { streams: 1000, rounds: 1, tokens: 25, rampMs: 2000 }

/** One row a peer, from a process of its own. */
export async function measureMemory(options) {
  const { peers, say, log, loadCore } = options
  const args = [process.execPath, upstreamScript, String(INTERVAL_MS), String(REPLICAS)]
  const upstream = start(args, { core: loadCore, log, output: true })
  const rows = []
  try {
    const { ports } = await firstLineJson(upstream)
    for (const peer of peers) {
      say(`memory: ${peer.name}`)
      const { port, child } = await startProxy(peer, ports, options)
      const idleMib = peakMib(child.pid)
      const { errors } = await runLoader({ ...LOAD, port, loadCore, log })
      rows.push({ peer: peer.name, idleMib, peakMib: peakMib(child.pid), errors })
      await stop(child)
    }
  } finally {
    await stop(upstream)
  }
  return { streams: LOAD.streams, rows }
}
