/** `workers: 2` of the built program: both serve, each may die, the decider may die, and nothing leaks. */
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import type { RawClient } from '../support/raw-client.ts'
import type { ScriptedExchange } from '../support/scripted-engine.ts'
import { CHAT, WorkersRig, type WorkersRigOptions } from './workers-rig.ts'

let rig: WorkersRig

async function open(options: WorkersRigOptions = {}): Promise<void> {
  rig = new WorkersRig()
  await rig.open(options)
}
afterEach(() => rig.close())

interface Stream {
  readonly client: RawClient
  readonly exchange: ScriptedExchange
}

/** Streams under way, each on a connection of its own, so that they alternate between the workers. */
async function streams(count: number): Promise<Stream[]> {
  const opened: Stream[] = []
  for (let index = 0; index < count; index++) {
    const client = rig.client().send({ body: CHAT })
    const exchange = await rig.nextExchange()
    exchange.head().role().token(' first')
    await client.waitText(' first')
    opened.push({ client, exchange })
  }
  return opened
}

async function finish({ client, exchange }: Stream): Promise<void> {
  exchange.tokens(3).finish().done()
  await client.waitComplete()
  expect(client.text).toContain('[DONE]')
}

describe('two workers', { timeout: 60_000 }, () => {
  it('share the load evenly and keep one account', async () => {
    await open()
    for (const stream of await streams(20)) await finish(stream)
    const split = await rig.metricSuits(
      'sluice_worker_requests_total',
      (samples) => [...samples.values()].reduce((sum, value) => sum + value, 0) === 20,
    )
    expect(Object.fromEntries(split)).toEqual({ 1: 10, 2: 10 })
    await until(() => rig.events('request').length === 20, 'a line for each request')
    const [line] = rig.events('request')
    expect(line).toMatchObject({ status: 200, outcome: 'completed', finish_reason: 'stop' })
    await rig.nothingHeld()
  })

  it('tell the same id of two clients apart', async () => {
    await open()
    const both = [rig.client(), rig.client()]
    const exchanges: ScriptedExchange[] = []
    for (const client of both) {
      client.send({ body: CHAT, headers: { 'x-request-id': 'mine' } })
      exchanges.push((await rig.nextExchange()).head().role().token(' first'))
    }
    for (const [index, client] of both.entries()) {
      await client.waitText(' first')
      const exchange = exchanges[index]
      if (exchange !== undefined) await finish({ client, exchange })
      expect(client.headers['x-request-id']).toBe('mine')
    }
    const ids = exchanges.map(({ request }) => request.headers['x-request-id'])
    expect(new Set(ids).size).toBe(2)
    await rig.nothingHeld()
  })

  it('are told of a reload', async () => {
    await open()
    await rig.write('limits: { body: 100B }\n')
    const answer = await rig.admin('/-/reload', { method: 'POST' })
    expect(answer.status).toBe(200)
    for (let turn = 0; turn < 2; turn++) {
      const big = { ...CHAT, user: 'x'.repeat(200) }
      const client = await rig.client().send({ body: big }).waitStatus(413)
      expect(client.text).toContain('too_large')
    }
  })
})

describe('a worker that is killed', { timeout: 60_000 }, () => {
  it('takes its own streams with it, no other, leaks no permit, and is started again', async () => {
    await open()
    const all = await streams(6)
    const pid = rig.pidOf('worker 1')
    process.kill(pid, 'SIGKILL')
    await until(() => all.filter(({ client }) => client.ended).length === 3, 'its three streams to be cut')
    const lost = await rig.logged('worker_lost')
    expect(lost).toMatchObject({ worker: 1, pid, ended_running: 3, ended_waiting: 0 })
    for (const stream of all.filter(({ client }) => !client.ended)) await finish(stream)
    for (const { exchange } of all) await exchange.waitClosed().catch(() => undefined)
    await rig.nothingHeld()
    await rig.metricSuits('sluice_worker_restarts_total', (samples) => samples.get('1') === 1)
    expect(rig.pidOf('worker 1')).not.toBe(pid)
    for (const stream of await streams(4)) await finish(stream)
    await until(() => rig.events('request').length === 10, 'a line for each request')
    const outcomes = rig.events('request').map((line) => line.outcome)
    expect(outcomes.filter((outcome) => outcome === 'truncated')).toHaveLength(3)
    expect(outcomes.filter((outcome) => outcome === 'completed')).toHaveLength(7)
    expect(rig.events('fault')).toEqual([])
  })
})

describe('a decider that is killed', { timeout: 60_000 }, () => {
  it('leaves streams and new requests unharmed, and its successor counts them', async () => {
    await open({ engines: 2 })
    const running = await streams(4)
    process.kill(rig.pidOf('decider'), 'SIGKILL')
    await rig.logged('decider_lost', 2)
    const meanwhile = await streams(2)
    for (const stream of [...running, ...meanwhile]) await finish(stream)
    await rig.metricSuits('sluice_worker_up', (samples) => samples.get('1') === 1 && samples.get('2') === 1)
    for (const stream of await streams(2)) await finish(stream)
    await until(() => rig.events('request').length === 8, 'a line for each request', 10_000)
    expect(rig.events('request').map((line) => line.outcome)).toEqual(Array(8).fill('completed'))
    await rig.nothingHeld()
    expect(rig.events('fault')).toEqual([])
  })

  it('is missed when it only hangs, and comes back to books that are right', async () => {
    await open()
    const running = await streams(2)
    const pid = rig.pidOf('decider')
    process.kill(pid, 'SIGSTOP')
    const meanwhile = await streams(2)
    await rig.logged('decider_lost', 2)
    for (const stream of [...running, ...meanwhile]) await finish(stream)
    process.kill(pid, 'SIGCONT')
    await rig.logged('worker_joined', 4)
    for (const stream of await streams(2)) await finish(stream)
    await until(() => rig.events('request').length === 6, 'a line for each request', 10_000)
    expect(rig.events('request').map((line) => line.outcome)).toEqual(Array(6).fill('completed'))
    const alone = await rig.metricSuits(
      'sluice_worker_failopen_requests_total',
      (samples) => [...samples.values()].reduce((sum, value) => sum + value, 0) === 2,
    )
    expect(alone.size).toBe(2)
    await rig.nothingHeld()
  })
})

describe('a SIGTERM with workers', { timeout: 60_000 }, () => {
  it('lets streams finish, refuses what is new, and ends every child with 0', async () => {
    await open()
    const running = await streams(4)
    const children = ['decider', 'worker 1', 'worker 2'].map((name) => rig.pidOf(name))
    rig.signal('SIGTERM')
    await rig.logged('draining')
    const refused = await rig.client().send({ body: CHAT }).waitStatus(503)
    expect(refused.text).toContain('draining')
    for (const stream of running) await finish(stream)
    expect(await rig.ended()).toBe(0)
    expect(rig.events('request').filter((line) => line.outcome === 'completed')).toHaveLength(4)
    for (const pid of children) expect(() => process.kill(pid, 0)).toThrow()
  })
})
