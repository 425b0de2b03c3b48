/** A rolling update of the built program: SIGTERM under load, streams that finish, and a clean exit. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until, within } from '../support/deadline.ts'
import { NodeChild, sluiceArgs } from '../support/node-child.ts'
import { RawClient } from '../support/raw-client.ts'
import {
  type ScriptedEngine,
  type ScriptedExchange,
  scriptedEngine,
  vllmPage,
} from '../support/scripted-engine.ts'

const CHAT = { model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hello' }] }

let engine: ScriptedEngine
let folder: string
let sluice: NodeChild
let port: number

async function serve(drain: string): Promise<void> {
  const text = [
    'listen: 127.0.0.1:0',
    'admin: { listen: "127.0.0.1:0" }',
    'mode: enforce',
    'auth: none',
    'default_class: agent',
    `models: [{ name: tiny, replicas: [${engine.url}] }]`,
    `timeouts: { drain: ${drain} }`,
  ].join('\n')
  const path = join(folder, 'sluice.yaml')
  await writeFile(path, text)
  sluice = new NodeChild({ args: sluiceArgs('serve', '-c', path), name: 'sluice', folder })
  const [, told] = await sluice.said(/traffic {2}http:\/\/127\.0\.0\.1:(\d+)/)
  port = Number(told)
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-rolling-'))
  engine = await scriptedEngine({ metrics: vllmPage() })
})
afterEach(async () => {
  sluice.kill('SIGKILL')
  await within(sluice.exited, 'Sluice to end')
  await engine.close()
  await rm(folder, { recursive: true })
})

async function streams(count: number): Promise<[RawClient[], ScriptedExchange[]]> {
  const clients: RawClient[] = []
  const exchanges: ScriptedExchange[] = []
  for (let index = 0; index < count; index += 1) {
    clients.push(new RawClient(port).send({ body: CHAT }))
    const exchange = await engine.nextRequest()
    exchanges.push(exchange.head().role().token(' first'))
  }
  for (const client of clients) await client.waitText(' first')
  return [clients, exchanges]
}

describe('a SIGTERM', { timeout: 60_000 }, () => {
  it('lets streams finish, refuses what is new on open connections, and ends with 0', async () => {
    await serve('30s')
    const [clients, exchanges] = await streams(10)
    // A client that keeps its connection for the next request.
    const kept = new RawClient(port).send({ method: 'GET', path: '/health' })
    await kept.waitStatus(200)
    sluice.kill('SIGTERM')
    await until(() => sluice.out.includes('draining'), 'the drain to begin')
    const before = kept.receivedBytes
    kept.send({ body: CHAT })
    await until(() => kept.received.includes('draining', before), 'the refusal')
    const refusal = kept.received.toString('latin1', before)
    expect(refusal).toMatch(/^HTTP\/1\.1 503 /)
    expect(refusal.toLowerCase()).toContain('connection: close')
    await kept.waitEnded('the kept connection to be closed')
    const fresh = await new RawClient(port).send({ body: CHAT }).waitStatus(503)
    expect(fresh.headers.connection).toBe('close')
    expect((await new RawClient(port).send({ method: 'GET', path: '/readyz' }).waitStatus(503)).status).toBe(
      503,
    )
    for (const exchange of exchanges) exchange.tokens(3).finish().done()
    for (const client of clients) {
      await client.waitComplete()
      expect(client.text).toContain('[DONE]')
    }
    expect(await within(sluice.exited, 'Sluice to end', 10_000)).toEqual({ code: 0, signal: null })
    expect(engine.requests.filter(({ path }) => path.includes('/chat/'))).toHaveLength(10)
  })

  it('ends streams at the limit of the drain with a word, and still ends with 0', async () => {
    await serve('300ms')
    const [clients, exchanges] = await streams(2)
    sluice.kill('SIGTERM')
    for (const client of clients) {
      await client.waitEnded('the stream to be ended', 10_000)
      expect(client.text).toContain('"draining"')
      expect(client.text).not.toContain('[DONE]')
    }
    for (const exchange of exchanges) await exchange.waitClosed()
    expect(await within(sluice.exited, 'Sluice to end', 10_000)).toEqual({ code: 0, signal: null })
  })
})
