/** What is booked as in flight is what is open, at every moment and after every kind of end. */
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'
import type { RawClient } from '../support/raw-client.ts'
import type { ScriptedExchange } from '../support/scripted-exchange.ts'

let rig: Rig
afterEach(() => rig.close())

const booked = () => [...rig.gate.state.replicas.values()].map((ledger) => ledger.inFlightRequests)
const open = () => rig.engines.map((engine) => engine.openExchanges)

/** Sends what `send` sends, and returns the exchange at whichever engine it reached. */
async function arrival(
  send: () => RawClient,
): Promise<{ readonly client: RawClient; readonly exchange: ScriptedExchange; readonly at: number }> {
  const before = rig.engines.map((engine) => engine.requests.length)
  const client = send()
  const reached = () => rig.engines.findIndex((engine, at) => engine.requests.length > (before[at] ?? 0))
  await until(() => reached() >= 0, 'a request at any engine')
  const at = reached()
  const engine = rig.engines[at]
  if (engine === undefined) throw new Error('no engine')
  return { client, exchange: await engine.nextRequest(), at }
}

describe('a request in flight', () => {
  it('weighs until its stream ends, not until its headers or its first token have come', async () => {
    rig = await startRig({ engines: 2 })
    const first = await arrival(() => rig.chat())
    first.exchange.head().token(' one')
    await first.client.waitText(' one')
    for (let turn = 0; turn < 4; turn += 1) {
      const { client, exchange, at } = await arrival(() => rig.chat())
      expect(at).not.toBe(first.at)
      exchange.head().token().done()
      await client.waitComplete()
      await rig.settled(turn + 1)
    }
    first.exchange.done()
    await first.client.waitComplete()
  })

  it('is booked exactly while it is open, however requests end, and shares stay even', async () => {
    rig = await startRig({ engines: 2, gate: { rerouteBudgetRatio: 0 } })
    const running: { readonly client: RawClient; readonly exchange: ScriptedExchange }[] = []
    for (let turn = 0; turn < 120; turn += 1) {
      running.push(await arrival(() => rig.chat({ stream: turn % 3 !== 0 })))
      if (turn % 2 === 0) {
        const [victim] = running.splice((turn * 7) % running.length, 1)
        if (victim !== undefined) endSomehow(victim.client, victim.exchange, turn % 7)
      }
      await until(
        () => booked().join() === open().join(),
        `books (${booked()}) to be what is open (${open()})`,
      )
    }
    const counts = booked()
    expect(Math.abs((counts[0] ?? 0) - (counts[1] ?? 0))).toBeLessThan(12)
    for (const { client } of running) client.leave()
    await until(() => booked().join() === '0,0' && open().join() === '0,0', 'everything to be given back')
  })

  it('does not weigh on an engine that was started anew', async () => {
    rig = await startRig({ engines: 2, gate: { rerouteBudgetRatio: 0 } })
    for (let turn = 0; turn < 6; turn += 1) (await arrival(() => rig.chat())).exchange.head().token()
    await rig.engine.close()
    await until(() => booked()[0] === 0, 'what ran on the dead engine to be given back')
    await rig.engine.listen()
    for (let turn = 0; turn < 6; turn += 1) await arrival(() => rig.chat())
    expect(booked()).toEqual([5, 4])
  })
})

function endSomehow(client: RawClient, exchange: ScriptedExchange, how: number): void {
  if (how === 0) client.leave()
  else if (how === 1) client.vanish()
  else if (how === 2) exchange.head().token().done()
  else if (how === 3) exchange.reset()
  else if (how === 4) exchange.refuse(500)
  else if (how === 5) exchange.refuse(503)
  else exchange.head().tokens(2).fin()
}

describe('a long life', () => {
  it('piles up no listeners, settles many large streams without counting their text, and answers between them', async () => {
    rig = await startRig()
    const warnings: unknown[] = []
    const note = (warning: unknown) => warnings.push(warning)
    process.on('warning', note)
    const line = rig.client()
    for (let turn = 1; turn <= 60; turn += 1) {
      line.send({ body: { model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hello' }] } })
      ;(await rig.engine.nextRequest()).head().token().done()
      await rig.settled(turn)
    }
    const streams = 30
    const clients = Array.from({ length: streams }, () => rig.chat())
    for (const _ of clients) {
      const exchange = await rig.engine.nextRequest()
      exchange.head()
      for (let sent = 0; sent < 16; sent += 1) exchange.huge(64 * 1024)
    }
    await until(
      () => clients.every(({ receivedBytes }) => receivedBytes > 1024 * 1024),
      'every stream to flow',
    )
    const before = process.cpuUsage()
    for (const [cut, client] of clients.entries()) {
      client.leave()
      // Asked as the stream is cut: the loop must come to it before the next one is.
      await rig.client().send({ method: 'GET', path: '/health' }).waitStatus(200)
      await rig.settled(60 + cut + 1)
    }
    const { user, system } = process.cpuUsage(before)
    process.off('warning', note)
    expect(warnings).toEqual([])
    // 30 MiB of one letter would keep a tokeniser busy for minutes.
    expect((user + system) / 1000).toBeLessThan(1000)
  })

  it('does not count the text of a prompt either: one letter, a million times', async () => {
    rig = await startRig({ settings: { limits: { bodyBytes: 8 * 1024 * 1024 } } })
    const client = rig.chat({ messages: [{ role: 'user', content: 'a'.repeat(1024 * 1024) }] })
    const before = process.cpuUsage()
    ;(await rig.engine.nextRequest()).head().token().done()
    await client.waitComplete()
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1000).toBeLessThan(1000)
  })
})
