/** The weight on its way to load balancers: the agent's line, and a real HAProxy that obeys it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAgentServer } from '../../src/admin/weight.ts'
import { UpstreamWeight } from '../../src/slo/upstream-weight.ts'
import { until, within } from '../support/deadline.ts'
import { listenOnLoopback } from '../support/loopback.ts'

const EXAMPLE = new URL('../../config/haproxy/haproxy.cfg', import.meta.url)

function haproxyBinary(): string | undefined {
  for (const name of ['haproxy', '/usr/sbin/haproxy']) {
    try {
      execFileSync(name, ['-v'], { stdio: 'ignore' })
      return name
    } catch {}
  }
  return undefined
}

const HAPROXY = haproxyBinary()

let weight: UpstreamWeight
let agent: Server
const portOf = (server: Server) => (server.address() as AddressInfo).port

beforeEach(async () => {
  weight = new UpstreamWeight(0)
  agent = createAgentServer(weight)
  await listenOnLoopback(agent)
})
afterEach(async () => {
  agent.close()
  await within(once(agent, 'close'), 'the agent to close')
})

describe('the agent', () => {
  it('tells one line to whoever connects, and ends', async () => {
    const ask = (sent: string) => {
      const socket = connect(portOf(agent), '127.0.0.1')
      socket.end(sent)
      return within(text(socket), 'the line')
    }
    expect(await ask('')).toBe('100%\n')
    weight.update(0.5, 300_000)
    expect(await ask('hello\n')).toBe('50%\n')
  })
})

describe.skipIf(HAPROXY === undefined)('a real HAProxy (skipped: not installed)', () => {
  let folder: string
  let haproxy: ChildProcess
  let backend: Server

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-haproxy-'))
    backend = createServer((socket) => {
      // HAProxy hangs up on a check as soon as it has read enough.
      socket.on('error', () => {})
      socket.end('HTTP/1.0 200 OK\r\n\r\n')
    })
    await listenOnLoopback(backend)
    const example = await readFile(EXAMPLE, 'utf8')
    const config = example
      .replace('/run/haproxy/admin.sock', join(folder, 'admin.sock'))
      .replace('bind :8000', `bind unix@${join(folder, 'front.sock')}`)
      .replaceAll(/10\.0\.\d\.1:8080/g, `127.0.0.1:${portOf(backend)}`)
      .replaceAll('port 9090', `port ${portOf(backend)}`)
      .replaceAll('agent-port 9091', `agent-port ${portOf(agent)}`)
      .replace('agent-inter 5s', 'agent-inter 50ms')
    await writeFile(join(folder, 'haproxy.cfg'), config)
    haproxy = spawn(HAPROXY ?? '', ['-db', '-f', join(folder, 'haproxy.cfg')], { stdio: 'ignore' })
  })
  afterEach(async () => {
    haproxy.kill('SIGKILL')
    await within(once(haproxy, 'close'), 'HAProxy to end')
    backend.close()
    await rm(folder, { recursive: true })
  })

  /** Weights and states of both servers, as HAProxy has them. */
  async function servers(): Promise<string> {
    const socket = connect(join(folder, 'admin.sock'))
    socket.end('show stat\n')
    const csv = await text(socket).catch(() => '')
    const [head = '', ...rows] = csv.split('\n')
    const names = head.replace('# ', '').split(',')
    const field = (row: string, name: string) => row.split(',')[names.indexOf(name)] ?? ''
    return rows
      .filter((row) => /^sluices,[ab],/.test(row))
      .map((row) => `${field(row, 'svname')} ${field(row, 'status')} ${field(row, 'weight')}`)
      .join('; ')
  }

  async function reaches(wanted: string): Promise<void> {
    let seen = ''
    let asking = false
    await until(
      () => {
        if (!asking) {
          asking = true
          void servers().then((now) => {
            seen = now
            asking = false
          })
        }
        return seen === wanted
      },
      `HAProxy to say ${wanted}`,
      15_000,
    )
  }

  it('reads the example, follows the weight down and up, and keeps the server', async () => {
    await reaches('a UP 100; b UP 100')
    weight.update(0.5, 300_000)
    await reaches('a UP 50; b UP 50')
    for (let nowMs = 600_000; nowMs < 3_600_000; nowMs += 300_000) weight.update(0, nowMs)
    await reaches('a UP 10; b UP 10')
    for (let nowMs = 3_900_000; nowMs < 7_200_000; nowMs += 300_000) weight.update(undefined, nowMs)
    await reaches('a UP 100; b UP 100')
  })
})
