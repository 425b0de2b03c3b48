/** The decider and a worker in one process, over their real link: what one must know of the other. */
import { afterEach, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { createGate } from '../../src/core/gate.ts'
import type { Ratio } from '../../src/core/units.ts'
import { systemClock } from '../../src/edge/clock.ts'
import type { EdgeObserver } from '../../src/edge/observer.ts'
import { createTrafficServer } from '../../src/edge/server.ts'
import { engineAdapter } from '../../src/engines/registry.ts'
import { createLeastOutstanding } from '../../src/policies/plain/least-outstanding.ts'
import { judge } from '../../src/slo/judge.ts'
import type { Replica } from '../../src/upstream/ports.ts'
import { Decider, type DeciderOptions } from '../../src/workers/decider.ts'
import { ToldTraffic } from '../../src/workers/told-traffic.ts'
import { Worker } from '../../src/workers/worker.ts'
import { reportOf, settingsOf } from '../core/core-rig.ts'
import { until } from '../support/deadline.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { RawClient } from '../support/raw-client.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'

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

/** A fleet of engines at those addresses that says what its breakers are told. */
function fleetOf(urls: readonly string[] = [], told: string[] = []): DeciderOptions['fleet'] {
  const adapter = engineAdapter('vllm')
  const replica = (id: string): Replica => ({
    ...{ id, name: id, adapter, reportContent: nothing, open: () => expect.fail('exchanges run in workers') },
    reportFault: ({ cause, suspect }) => told.push(`${id} ${cause}${suspect === true ? ' suspect' : ''}`),
    reportSuccess: () => told.push(`${id} success`),
  })
  return {
    replica: (id) => (urls.includes(id) ? replica(id) : undefined),
    reports: () => urls.map((url) => reportOf(url, { pools: ['tiny'] })),
    place: (url) => ({
      ...{
        identity: url,
        url,
        engine: 'vllm',
        pools: ['tiny'],
        groupId: 'g',
        limits: {},
        servedName: 'tiny',
      },
    }),
  }
}

/** A port with a worker behind it whose decider has that fleet and knows that headroom. */
async function open(fleet = fleetOf(), headroom: () => Ratio | undefined = () => undefined): Promise<number> {
  const decider = new Decider({
    ...{ gate: gate(), clock: systemClock, observer, traffic: new ToldTraffic(), token: 'secret', headroom },
    fleet,
    onNotice: nothing,
  })
  closing.push(() => decider.close())
  for (const replica of fleet.reports()) decider.tell({ kind: 'replicaChanged', replica })
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
  await until(() => decider.hub.seats.get(1)?.up === true, 'the worker to be let in')
  const server = createTrafficServer({ edge: worker.edge, observer, rng: Math.random })
  closing.push(() => server.close())
  return listenOnLoopback(server)
}

it('a worker reports the load that the decider knows to clients that ask', async () => {
  const port = await open(fleetOf(), () => 1.25)
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

it('a worker tells the breakers whether a request had made another replica fail', async () => {
  const engines = [await scriptedEngine(), await scriptedEngine()]
  for (const engine of engines) {
    engine.on('/v1/chat/completions', (exchange) => exchange.refuse(500))
    closing.push(() => engine.close())
  }
  const told: string[] = []
  const port = await open(
    fleetOf(
      engines.map(({ url }) => url),
      told,
    ),
  )
  const client = new RawClient(port).send({ body: { model: 'tiny', messages: [] } })
  await client.waitStatus(502)
  client.leave()
  await until(() => told.length === 2, 'both failures to be told')
  const [first, second] = engines.map(({ url }) => url)
  expect(told).toEqual([`${first} status`, `${second} status suspect`])
})
