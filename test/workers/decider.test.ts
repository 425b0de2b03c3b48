/** The decider and a worker in one process, over their real link: what one must know of the other. */
import { afterEach, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { createGate } from '../../src/core/gate.ts'
import type { Ratio } from '../../src/core/units.ts'
import { systemClock } from '../../src/edge/clock.ts'
import type { EdgeObserver } from '../../src/edge/observer.ts'
import { createTrafficServer } from '../../src/edge/server.ts'
import { createLeastOutstanding } from '../../src/policies/rivals/least-outstanding.ts'
import { judge } from '../../src/slo/judge.ts'
import { Decider } from '../../src/workers/decider.ts'
import { ToldTraffic } from '../../src/workers/told-traffic.ts'
import { Worker } from '../../src/workers/worker.ts'
import { settingsOf } from '../core/core-rig.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { RawClient } from '../support/raw-client.ts'

const YAML = `mode: enforce
auth: none
default_class: chat
models: [{ name: tiny, replicas: ['http://127.0.0.1:9'] }]
`
const nothing = () => {}
const observer: EdgeObserver = {
  ...{ onDecision: nothing, onSettled: nothing, onBounced: nothing, onRejected: nothing },
  ...{ onClamped: nothing, onDecided: nothing, onFault: nothing },
}
const gate = () => createGate({ settings: settingsOf(), scheduler: createLeastOutstanding(), judge })

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A port with a worker behind it whose decider knows that headroom. */
async function open(headroom: () => Ratio | undefined): Promise<number> {
  const decider = new Decider({
    ...{ gate: gate(), clock: systemClock, observer, traffic: new ToldTraffic(), token: 'secret', headroom },
    fleet: { replica: () => undefined, reports: () => [], place: () => undefined },
    onNotice: nothing,
  })
  closing.push(() => decider.close())
  const deciderPort = await listenOnLoopback(decider.server)
  const loaded = loadConfig(YAML, { fileName: 'sluice.yaml', env: {} })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const health = { cpuSec: 0, residentBytes: 0, loopLagP99Ms: 0 }
  const worker = new Worker({
    ...{ worker: 1, settings: loaded.config, alone: gate(), health: () => health },
    ...{ onWelcome: nothing, onNotice: nothing, onFault: nothing },
  })
  closing.push(() => worker.close())
  worker.goTo({ port: deciderPort, token: 'secret' })
  const server = createTrafficServer({ edge: worker.edge, observer, rng: Math.random })
  closing.push(() => server.close())
  return listenOnLoopback(server)
}

it('a worker reports the load that the decider knows to clients that ask', async () => {
  const port = await open(() => 1.25)
  const headers = { 'endpoint-load-metrics-format': 'TEXT' }
  const giveUpAtMs = performance.now() + 10_000
  let told: string | string[] | undefined
  while (told === undefined) {
    if (performance.now() > giveUpAtMs) throw new Error('waited 10 s for a load report')
    const client = new RawClient(port).send({ headers, body: { model: 'none', messages: [] } })
    await client.waitComplete()
    told = client.headers['endpoint-load-metrics']
  }
  expect(told).toBe('TEXT application_utilization=0.8')
})
