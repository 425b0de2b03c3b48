/** Sets up emulator and Sluice for the added-TTFT measurement. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sluice } from '../peers/sluice.mjs'
import { measureAddedTtft } from './added-ttft.mjs'
import { freePort, listening, start, stop } from './children.mjs'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** The fastest large profile: a short step leaves the least noise in which to look for a millisecond. */
const PROFILE = 'Llama-3.1-8B/B200-180G-SXM/tp1'

export async function measureTtft({ workDir, log, say, proxyCore, loadCore, ratePerSec, slices, seconds }) {
  const missing = sluice.missing()
  if (missing !== undefined) throw new Error(missing)
  say(`ttft: ${slices} pairs of ${seconds} s at ${ratePerSec} requests/s`)
  const [enginePort, port, adminPort] = [await freePort(), await freePort(), await freePort()]
  const folder = join(workDir, 'ttft')
  mkdirSync(folder, { recursive: true })
  const engine = start(
    [
      process.execPath,
      main,
      'engine',
      '--profile',
      PROFILE,
      '--port',
      String(enginePort),
      '--model',
      'bench',
    ],
    { core: loadCore, log },
  )
  let proxy
  try {
    await listening(enginePort, engine, 'engine')
    proxy = start(sluice.command({ port, adminPort, upstreamPorts: [enginePort], workDir: folder }), {
      core: proxyCore,
      log,
    })
    await listening(port, proxy, 'sluice')
    const load = { ratePerSec, seconds, promptBytes: 400, maxTokens: 2, model: 'bench' }
    const measured = await measureAddedTtft({ barePort: enginePort, sluicePort: port, slices, ...load })
    return { profile: PROFILE, ratePerSec, ...measured }
  } finally {
    await stop(proxy)
    await stop(engine)
  }
}
