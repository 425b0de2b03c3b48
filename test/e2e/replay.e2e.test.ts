/** The log of the built program before emulated engines, replayed: nothing of it is lost, and its engines are measured. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ReplayReport } from '../../src/cli/replay-report.ts'
import { type RunningEngine, startEngine } from '../../src/emulator/start.ts'
import { run } from '../cli/fake-terminal.ts'
import { until, within } from '../support/deadline.ts'

const BINARY = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const REQUESTS = 80
const AT_ONCE = 2

let folder: string
let engine: RunningEngine

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-replay-'))
  engine = await startEngine({ profile: 'demo/slow', port: 0, speed: 10 })
})
afterEach(async () => {
  await engine.close()
  await rm(folder, { recursive: true })
})

async function chat(url: string, number: number): Promise<void> {
  const content = `${number} ${'word '.repeat(20 + (number % 7) * 30)}`
  const body = { model: 'model', stream: true, max_tokens: 24, messages: [{ role: 'user', content }] }
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, ignore_eos: true }),
  })
  await answer.text()
}

/** Serves `REQUESTS` requests and returns what was written to standard output. */
async function logOf(file: string): Promise<string> {
  const child = spawn(process.execPath, [BINARY, 'serve', '-c', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  const log = text(child.stdout)
  const closed = once(child, 'close')
  let told = ''
  child.stderr.on('data', (bytes: Buffer) => {
    told += bytes.toString()
  })
  try {
    const traffic = /traffic {2}(http:\/\/127\.0\.0\.1:\d+)/
    await until(() => traffic.test(told), 'Sluice to serve', 15_000)
    const url = traffic.exec(told)?.[1] ?? ''
    let next = 0
    const client = async () => {
      while (next < REQUESTS) await chat(url, next++)
    }
    await within(Promise.all(Array.from({ length: AT_ONCE }, client)), 'the answers', 60_000)
    child.kill('SIGTERM')
    await within(closed, 'Sluice to end', 15_000)
  } finally {
    child.kill('SIGKILL')
  }
  return await log
}

describe('a log of the built program', { timeout: 120_000 }, () => {
  it('is replayed whole, on engines that are measured in it', async () => {
    const file = join(folder, 'sluice.yaml')
    const log = join(folder, 'sluice.log')
    await writeFile(
      file,
      `listen: 127.0.0.1:0\nadmin: { listen: "127.0.0.1:0" }\nmode: shadow\nauth: none\ndefault_class: chat\nmodels: [{ name: model, profile: demo/slow, replicas: [${engine.url}] }]\n`,
    )
    await writeFile(log, await logOf(file))
    const { out, err, code } = await run(['replay', log, '-c', file, '--was', file, '--format', 'json'])
    expect(err).not.toContain('sluice:')
    expect(code).toBe(0)
    const { replay, logged } = JSON.parse(out) as ReplayReport
    expect(replay.requests).toBe(REQUESTS)
    expect(logged.badLines).toBe(0)
    expect(logged.configDigests).toEqual([replay.was?.digest])
    expect(replay.engines).toMatchObject([{ source: 'log', assumed: {} }])
    expect(replay.total.now.offered).toBe(replay.counted)
  })
})
