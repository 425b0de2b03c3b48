/** A Sluice that can't see its engines, or sees them late: it goes by its own books, and says what it does not know. */
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { play } from '../support/engine-script.ts'
import { type ScriptedEngine, type ScriptedExchange, vllmPage } from '../support/scripted-engine.ts'
import { type SluiceRig, startSluiceRig } from '../support/sluice-rig.ts'

let rig: SluiceRig
afterEach(() => rig.close())

const MODES = ['enforce', 'shadow', 'off'] as const
const yaml = (mode: string) => `mode: ${mode}\nauth: none\ndefault_class: agent\n`
const chats = (engine: ScriptedEngine) => engine.requests.filter(({ path }) => path.includes('/chat/')).length
const looks = (engine: ScriptedEngine) => engine.requests.filter(({ path }) => path === '/metrics').length

/** Sends a burst, answers it when all of it is at the engines, and returns how many each of them got. */
async function burst(count: number): Promise<readonly number[]> {
  const before = rig.engines.map(chats)
  const held: ScriptedExchange[] = []
  for (const engine of rig.engines)
    engine.on('/v1/chat/completions', (exchange) => {
      held.push(exchange)
      if (held.length === count) for (const each of held) each.head().tokens(2).finish().done()
    })
  const clients = Array.from({ length: count }, () => rig.chat())
  for (const client of clients) expect((await client.waitComplete()).status).toBe(200)
  for (const client of clients) client.leave()
  return rig.engines.map((engine, at) => chats(engine) - (before[at] ?? 0))
}

describe.each(MODES)('in mode %s', (mode) => {
  it('a burst is shared evenly, whatever one engine’s page said before it', async () => {
    rig = await startSluiceRig({ engines: 2, yaml: yaml(mode) })
    rig.engines[1]?.page(vllmPage({ running: 1 }))
    const { fleet } = rig.running.runtime
    await until(() => fleet.reports()[1]?.gauges?.runningRequests === 1, 'the page to be read')
    expect(await burst(8)).toEqual([4, 4])
  })

  it('engines whose pages hang serve as before, and are known to be unseen', async () => {
    rig = await startSluiceRig({ engines: 2, yaml: yaml(mode) })
    for (const engine of rig.engines) engine.on('/metrics', () => undefined)
    for (let turn = 0; turn < 3; turn += 1) {
      const shares = await burst(6)
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(6)
    }
    expect(rig.running.runtime.gate.counts).toMatchObject({ offered: 18, settled: 18, shed: 0 })
  })

  it('an engine whose page hangs has its half of a burst, as has one whose page comes', async () => {
    rig = await startSluiceRig({ engines: 2, yaml: yaml(mode) })
    const [blind, seen] = rig.engines
    if (blind === undefined || seen === undefined) throw new Error('no engines')
    blind.on('/metrics', () => undefined)
    const [unanswered, answered] = [looks(blind), looks(seen)]
    await until(() => looks(blind) > unanswered && looks(seen) > answered + 1, 'a look in vain')
    expect(await burst(8)).toEqual([4, 4])
    expect(rig.running.runtime.gate.counts).toMatchObject({ offered: 8, settled: 8, shed: 0 })
  })
})

it('lets no more in than an engine has slots, though its page lags by 18 s and shows none taken', async () => {
  const [slots, count] = [4, 50]
  const patient = '{ ttft: 60s, overload: wait, max_wait: 10m }'
  const classes = `classes: { patient: ${patient} }\ndefault_class: patient\n`
  rig = await startSluiceRig({ slots, yaml: `mode: enforce\nauth: none\n${classes}` })
  const { engine } = rig
  const { fleet, gate } = rig.running.runtime
  engine.page(({ open }) => vllmPage({ running: open }), { lagMs: 18_000 })
  const clients = Array.from({ length: count }, () => rig.chat())
  const running: ScriptedExchange[] = []
  for (let taken = 0; taken < count; taken += 1) {
    const exchange = await engine.nextRequest()
    running.push(exchange.head().token())
    if (running.length < slots) continue
    if (taken < slots) {
      await until(() => gate.state.waiting.requests === count - slots, 'all others to wait')
      const before = looks(engine)
      await until(() => looks(engine) > before + 1, 'the page to be read while every slot is taken')
      expect(fleet.reports()[0]?.gauges?.runningRequests).toBe(0)
    }
    running.shift()?.finish().done()
  }
  for (const exchange of running) exchange.finish().done()
  for (const client of clients) expect((await client.waitComplete()).status).toBe(200)
  for (const client of clients) client.leave()
  expect(engine.peakConcurrency).toBe(slots)
})

it('shows no KV figure for an engine that has none', async () => {
  rig = await startSluiceRig({ engines: 2 })
  rig.engines[0]?.page(vllmPage({ running: 2, kv: null }))
  const { fleet } = rig.running.runtime
  await until(() => fleet.reports()[0]?.gauges?.runningRequests === 2, 'the page to be read')
  await until(() => fleet.reports()[1]?.gauges !== undefined, 'the other page to be read')
  const [, second] = fleet.reports()
  const metrics = await (await fetch(`${rig.adminUrl}/metrics`)).text()
  const shown = metrics.split('\n').filter((line) => line.startsWith('sluice_kv_usage_ratio{'))
  expect(shown).toEqual([`sluice_kv_usage_ratio{replica="${second?.replicaId}"} 0`])
  const { replicas } = (await (await fetch(`${rig.adminUrl}/replicas`)).json()) as {
    replicas: { gauges: object }[]
  }
  expect(replicas[0]?.gauges).not.toHaveProperty('kv_usage_ratio')
  expect(replicas[1]?.gauges).toHaveProperty('kv_usage_ratio', 0)
})

it('is not ready for dead engines and does not list their models, but lives', async () => {
  rig = await startSluiceRig({ yaml: 'mode: enforce\nauth: none\ndefault_class: chat\n' })
  const get = async (url: string, path: string) => fetch(`${url}${path}`)
  const listed = async () =>
    ((await (await get(rig.url, '/v1/models')).json()) as { data: { id: string }[] }).data.map(({ id }) => id)
  expect((await get(rig.url, '/readyz')).status).toBe(200)
  expect(await listed()).toEqual(['tiny'])
  rig.engine.refuse()
  rig.engine.closeIdle()
  const { runtime } = rig.running
  await until(() => runtime.downModels().length === 1, 'the engine to be found dead', 10_000)
  for (const url of [rig.url, rig.adminUrl]) expect((await get(url, '/readyz')).status).toBe(503)
  expect(await listed()).toEqual([])
  expect((await get(rig.adminUrl, '/livez')).status).toBe(200)
  expect((await get(rig.url, '/health')).status).toBe(200)
  await rig.chat().waitStatus(503)
  await rig.engine.listen()
  await until(() => runtime.downModels().length === 0, 'the engine to be found alive', 10_000)
  expect((await get(rig.url, '/readyz')).status).toBe(200)
  expect(await listed()).toEqual(['tiny'])
})

it('keeps its series whatever names clients invent', async () => {
  const tenants = `auth: { header: x-tenant, trusted: [127.0.0.0/8] }\ntenants: [{ name: acme }]\n`
  rig = await startSluiceRig({ yaml: `mode: enforce\n${tenants}` })
  rig.engine.on('/v1/chat/completions', play({ frames: 1 }))
  const series = async () => {
    const page = await (await fetch(`${rig.adminUrl}/metrics`)).text()
    return new Set(
      page
        .split('\n')
        .filter((line) => !line.startsWith('#'))
        .map((line) => line.replace(/ \S+$/, '')),
    )
  }
  const served = await rig.chat({}, { 'x-tenant': 'acme' }).waitComplete()
  expect(served.status).toBe(200)
  const before = await series()
  const invent = (index: number) => [
    rig.chat({ model: `m-${index}` }, { 'x-tenant': 'acme' }),
    rig.chat(
      { user: `u-${index}` },
      {
        'x-tenant': 'acme',
        'x-slo-class': `c-${index}`,
        'x-product': `p-${index}`,
        'x-request-id': `r-${index}`,
      },
    ),
    rig.chat({}, { 'x-tenant': `t-${index}`, authorization: `Bearer k-${index}` }),
  ]
  for (let index = 0; index < 60; index += 1) {
    for (const client of invent(index)) {
      await client.waitComplete()
      client.leave()
    }
    await fetch(`${rig.url}/invented-${index}`)
  }
  const after = await series()
  expect([...after].filter((one) => !before.has(one)).filter((one) => !/reason="|le="/.test(one))).toEqual([])
  expect([...after].filter((one) => /-\d+"/.test(one.replaceAll('tiny-1', '')))).toEqual([])
  expect(rig.running.runtime.gate.counts.settled).toBe(61)
})

it('sends elsewhere what does not stream when its engine shows no sign of life', async () => {
  const timeouts = 'timeouts: { first_byte: 400ms, between_bytes: 400ms }\n'
  rig = await startSluiceRig({ engines: 2, yaml: `${yaml('enforce')}${timeouts}` })
  const client = rig.chat({ stream: false })
  const [first, second] = rig.engines
  await until(() => rig.engines.some((engine) => chats(engine) === 1), 'it to be sent')
  const other = first !== undefined && chats(first) === 1 ? second : first
  const again = await other?.nextRequest('a second attempt')
  again?.respondJson(200, { choices: [{ index: 0, message: { role: 'assistant', content: 'whole' } }] })
  await client.waitComplete()
  expect([client.status, client.headers['x-sluice-decision']]).toEqual([200, 'rerouted'])
  const page = await (await fetch(`${rig.adminUrl}/metrics`)).text()
  expect(page).toMatch(/^sluice_upstream_bounces_total\{reason="silent"\} 1$/m)
  expect(page).toMatch(/^sluice_upstream_bounces_total\{reason="reset"\} 0$/m)
})
