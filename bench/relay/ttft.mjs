/** Sets up the emulator and the peers for the added-TTFT measurement. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { sluice } from '../peers/sluice.mjs'
import { freePort, listening, start, startSluice, stop } from '../processes.mjs'
import { measureAddedTtft } from './added-ttft.mjs'

/** The fastest large profile: a short step leaves the least noise in which to look for a millisecond. */
const PROFILE = 'Llama-3.1-8B/B200-180G/tp1'

/** What the engine is started with by default, as its operator knows it. */
const ENGINE_ARGS = { max_num_seqs: 256, max_num_batched_tokens: 16_384 }

export async function measureTtft({ peers, workDir, log, say, loadCore, ratePerSec, slices, seconds }) {
  // The engine is a command of Sluice's own.
  const missing = sluice.missing()
  if (missing !== undefined) throw new Error(missing)
  say(`ttft: ${slices} rounds of ${seconds} s each at ${ratePerSec} requests/s`)
  const enginePort = await freePort()
  const folder = join(workDir, 'ttft')
  mkdirSync(folder, { recursive: true })
  const engineArgs = ['engine', '--profile', PROFILE, '--port', enginePort, '--model', 'bench']
  const engine = startSluice(engineArgs, { core: loadCore, log })
  const proxies = []
  try {
    await listening(enginePort, engine, 'engine')
    const ports = { bare: enginePort }
    for (const peer of peers) {
      const port = await freePort()
      const adminPort = await freePort()
      const args = { port, adminPort, upstreamPorts: [enginePort], workDir: folder, engineArgs: ENGINE_ARGS }
      // Not held to a core: there its own collector and compiler threads would stand in its way.
      const proxy = start(peer.command(args), { log })
      proxies.push(proxy)
      await listening(port, proxy, peer.name)
      ports[peer.name] = port
    }
    const load = { ratePerSec, seconds, promptBytes: 400, maxTokens: 2, model: 'bench' }
    return { profile: PROFILE, ratePerSec, rows: await measureAddedTtft({ ports, slices, ...load }) }
  } finally {
    await Promise.all(proxies.map(stop))
    await stop(engine)
  }
}
