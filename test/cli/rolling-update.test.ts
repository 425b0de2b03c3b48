/** A rolling update of the built program: SIGTERM under load, streams that finish, and a clean exit. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until, within } from '../support/deadline.ts'
import { RawClient } from '../support/raw-client.ts'
import {
  type ScriptedEngine,
  type ScriptedExchange,
  scriptedEngine,
  vllmPage,
} from '../support/scripted-engine.ts'

const BINARY = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const CHAT = { model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hello' }] }

let engine: ScriptedEngine
let folder: string
let child: ChildProcess
let ended: Promise<number | null>
let log: string
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
  child = spawn(process.execPath, [BINARY, 'serve', '-c', path], { stdio: ['ignore', 'pipe', 'pipe'] })
  log = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (bytes: Buffer) => {
      log += bytes.toString()
    })
  ended = once(child, 'close').then(([code]) => code as number | null)
  const told = /traffic {2}http:\/\/127\.0\.0\.1:(\d+)/
  await until(() => told.test(log), 'Sluice to serve', 15_000)
  port = Number(told.exec(log)?.[1])
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-rolling-'))
  engine = await scriptedEngine({ metrics: vllmPage() })
})
afterEach(async () => {
  child.kill('SIGKILL')
  await within(ended, 'Sluice to end')
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
    child.kill('SIGTERM')
    await until(() => log.includes('draining'), 'the drain to begin')
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
    expect(await within(ended, 'Sluice to end', 10_000)).toBe(0)
    expect(engine.requests.filter(({ path }) => path.includes('/chat/'))).toHaveLength(10)
  })

  it('ends streams at the limit of the drain with a word, and still ends with 0', async () => {
    await serve('300ms')
    const [clients, exchanges] = await streams(2)
    child.kill('SIGTERM')
    for (const client of clients) {
      await client.waitEnded('the stream to be ended', 10_000)
      expect(client.text).toContain('"draining"')
      expect(client.text).not.toContain('[DONE]')
    }
    for (const exchange of exchanges) await exchange.waitClosed()
    expect(await within(ended, 'Sluice to end', 10_000)).toBe(0)
  })
})
