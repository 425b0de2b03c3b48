/** Ten thousand requests that end in every manner at random: at the end nothing of them is left. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Running, startSluice } from '../../src/cli/serve.ts'
import { loadConfig } from '../../src/config/load.ts'
import { Rng } from '../../src/sim/rng.ts'
import { until } from '../support/deadline.ts'
import { drawFate, UnrulyLine } from '../support/unruly-client.ts'
import { UnrulyEngine } from '../support/unruly-engine.ts'

const REQUESTS = 10_000
const AT_ONCE = 64

let engines: UnrulyEngine[]
let running: Running

beforeAll(async () => {
  engines = [await new UnrulyEngine().listen(), await new UnrulyEngine().listen()]
  const replicas = engines.map(({ url }) => `      - ${url}`).join('\n')
  const yaml = `mode: enforce\nauth: none\ndefault_class: chat\nclasses: { chat: { ttft: 30s, overload: wait, max_wait: 1s } }\nlisten: 127.0.0.1:18080\nmodels:\n  - name: tiny\n    replicas:\n${replicas}\n`
  const loaded = loadConfig(yaml, { fileName: 'test.yaml', env: {} })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const anywhere = { host: '127.0.0.1', port: 0 }
  const config = { ...loaded.config, listen: anywhere, admin: { listen: anywhere } }
  running = await startSluice({ config, logLevel: 'silent' })
})

afterAll(async () => {
  await running.close()
  await Promise.all(engines.map((engine) => engine.close()))
})

it('leaves no permit, waiter, byte or open exchange, and a flat heap', { timeout: 180_000 }, async () => {
  const { runtime } = running
  const rng = new Rng(7)
  const tally = new Map<string, number>()
  const turn = async (requests: number) => {
    let begun = 0
    const client = async () => {
      const line = new UnrulyLine(running.port)
      while (begun < requests) {
        begun++
        const end = await line.one(drawFate(rng), rng)
        tally.set(end, (tally.get(end) ?? 0) + 1)
      }
      line.close()
    }
    await Promise.all(Array.from({ length: AT_ONCE }, client))
    await until(() => runtime.edge.underWay === 0, 'every request to be over', 10_000)
  }
  await turn(REQUESTS * 0.4)
  const before = settledHeap()
  await turn(REQUESTS * 0.6)
  const grownBytes = settledHeap() - before

  const { counts, inFlight, state } = runtime.gate
  expect(counts.offered).toBeGreaterThan(REQUESTS * 0.9)
  expect(counts.shed + counts.cancelled + counts.failed + counts.settled).toBe(counts.offered)
  expect({ inFlight, waiting: state.waiting.requests, bytes: state.waiting.bytes }).toEqual({
    inFlight: 0,
    waiting: 0,
    bytes: 0,
  })
  for (const ledger of state.replicas.values()) {
    expect([ledger.inFlightRequests, ledger.backlogTokens, ledger.contextTokens]).toEqual([0, 0, 0])
  }
  expect(runtime.edge.buffers.heldBytes).toBe(0)
  await until(
    () => engines.every((engine) => engine.openExchanges === 0),
    'every upstream exchange to be closed',
  )
  // The ring of decisions and the SLO windows fill during the first part; 6000 leaked requests would be 10 MB or more.
  expect(grownBytes).toBeLessThan(8_000_000)
  // The mix was a mix: both sides did what they were asked to.
  for (const end of ['left', '200', '400', 'cut']) expect(tally.get(end) ?? 0).toBeGreaterThan(100)
})

/** The heap after a full collection, in bytes. */
function settledHeap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}
