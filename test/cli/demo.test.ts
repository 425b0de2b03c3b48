/** A short demo of the built program: its summary adds up, and no process is left behind, however it ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import type { DemoReport } from '../../src/cli/demo-report.ts'
import { until, within } from '../support/deadline.ts'

const BINARY = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const LIMIT_MS = 60_000
/** Engines of both fleets and Sluice. */
const CHILDREN = 5

interface Demo {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  readonly seen: { out: string; err: string }
}

const started: Demo[] = []
afterEach(async () => {
  for (const { child, ended } of started.splice(0)) {
    child.kill('SIGKILL')
    await within(ended, 'the demo to end')
  }
})

function demo(...args: string[]): Demo {
  const child = spawn(process.execPath, [BINARY, 'demo', '--admin-port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const seen = { out: '', err: '' }
  child.stdout.on('data', (bytes: Buffer) => {
    seen.out += bytes.toString()
  })
  child.stderr.on('data', (bytes: Buffer) => {
    seen.err += bytes.toString()
  })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const run = { child, ended, seen }
  started.push(run)
  return run
}

/** Where the system tells, the children of a process. */
function childrenOf(pid: number | undefined): readonly number[] {
  const file = `/proc/${pid}/task/${pid}/children`
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ').filter(Boolean).map(Number) : []
}

function runs(pid: number): boolean {
  try {
    // A dead child of a dead parent may stay a zombie where nobody reaps it.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

describe('sluice demo', { timeout: 2 * LIMIT_MS }, () => {
  it('sums a short run up as JSON and leaves no process', async () => {
    const { child, ended, seen } = demo('--duration', '3s', '--capacity', '4', '--format', 'json')
    await until(() => seen.err.includes('console '), 'the demo to say where its console is', LIMIT_MS)
    expect(seen.err).toMatch(/^sluice demo: starting 4 simulated engines/)
    const children = childrenOf(child.pid)
    expect(children.length === 0 || children.length === CHILDREN).toBe(true)
    expect(await within(ended, 'the demo to end', LIMIT_MS)).toBe(0)
    const report = JSON.parse(seen.out) as DemoReport
    const { bare, sluice } = report.fleets
    expect(sluice.phases.map(({ name }) => name)).toEqual(['0.5x', '1x', '1.5x', '2x', '2.5x'])
    expect(sluice.all.offeredRequests).toBe(bare.all.offeredRequests)
    for (const { all } of [bare, sluice]) {
      expect(all.offeredRequests).toBeGreaterThan(3)
      expect(all.settledRequests).toBe(all.offeredRequests)
      expect(all.errors).toEqual({})
    }
    expect(sluice.all.completedRequests).toBeGreaterThan(0)
    await until(() => !children.some(runs), 'the children to be gone', LIMIT_MS)
  })

  it.each(['SIGINT', 'SIGKILL'] as const)('leaves no process when it gets %s', async (signal) => {
    const { child, ended, seen } = demo('--capacity', '4')
    await until(() => seen.out.includes('console '), 'the demo to say where its console is', LIMIT_MS)
    const children = childrenOf(child.pid)
    child.kill(signal)
    await within(ended, 'the demo to end', LIMIT_MS)
    if (signal === 'SIGINT') expect(seen.out).toContain('client loop lag')
    await until(() => !children.some(runs), 'the children to be gone', LIMIT_MS)
  })

  it('says at once which of its processes fails', async () => {
    const { child, ended, seen } = demo('--capacity', '4')
    await until(() => seen.out.includes('console '), 'the demo to say where its console is', LIMIT_MS)
    const [victim] = childrenOf(child.pid)
    if (victim === undefined) return
    process.kill(victim, 'SIGKILL')
    expect(await within(ended, 'the demo to end', LIMIT_MS)).toBe(1)
    expect(seen.err).toMatch(/a process of the demo failed: engine-1: it ended with SIGKILL/)
  })
})
