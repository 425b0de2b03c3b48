/** `sluice replay`: what it makes of a log, and what it says when it can make nothing of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import type { ReplayReport } from '../../src/cli/replay-report.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { simulatedLog } from '../replay/simulated-log.ts'
import { run } from './fake-terminal.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-replay-'))
afterAll(() => rmSync(folder, { recursive: true }))

function written(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

function configWith(
  change: { mode?: string; model?: string; more?: string; replicas?: number } = {},
): string {
  const { mode = 'enforce', model = 'model', more = '', replicas = 2 } = change
  const urls = Array.from({ length: replicas }, (_, at) => `http://10.0.0.${at + 1}:8000`).join(', ')
  return `mode: ${mode}\nauth: none\nmodels:\n  - { name: ${model}, engine_args: { max_num_seqs: 16, max_num_batched_tokens: 512, kv_capacity_tokens: 24576 }, replicas: [${urls}] }\n${more}`
}

// Under twice what the two engines can carry: with Sluice before them, and bare.
const lines = simulatedLog(13, 40_000, { createScheduler: () => createSluice() })
const bare = simulatedLog(13, 40_000)
const log = written('sluice.log', `${lines.join('\n')}\n`)
const same = written('same.yaml', configWith())

async function replayed(...args: readonly string[]): Promise<ReplayReport> {
  const { out, err, code } = await run(['replay', ...args, '--format', 'json'])
  if (code !== 0) throw new Error(err)
  return JSON.parse(out) as ReplayReport
}

const attained = (report: ReplayReport, which: 'logged' | 'was' | 'now') =>
  report.replay.total[which]?.attainmentRatio ?? Number.NaN

// Simulating takes a second of CPU here; a busy machine may take many to give it.
describe('sluice replay', { timeout: 60_000 }, () => {
  it('gives about what was logged under the configuration that was in force', async () => {
    const report = await replayed(log, '-c', same, '--was', same)
    expect(report.replay.engines[0]?.source).toBe('log')
    expect(report.replay.requests).toBe(lines.length)
    expect(Math.abs(attained(report, 'now') - attained(report, 'logged'))).toBeLessThan(0.05)
    for (const { class: className, logged, now } of report.replay.groups) {
      expect(now.offered).toBe(logged.offered)
      if (logged.attainmentRatio === undefined) expect(now.attainmentRatio).toBeUndefined()
      else expect(Math.abs((now.attainmentRatio ?? 0) - logged.attainmentRatio), className).toBeLessThan(0.15)
    }
    expect(report.replay.changes).toEqual([])
    expect(attained(report, 'was')).toBe(attained(report, 'now'))
  })

  it('shows what enforcing would do to a bare fleet, and what more replicas would', async () => {
    const plain = written('bare.log', bare.join('\n'))
    const shadow = written('shadow.yaml', configWith({ mode: 'shadow' }))
    const report = await replayed(plain, '-c', shadow, '--was', shadow, '--mode', 'enforce')
    expect(report.replay.was?.mode).toBe('shadow')
    expect(attained(report, 'now')).toBeGreaterThan(attained(report, 'was') + 0.1)
    expect(report.replay.changes[0]).toMatchObject({ from: 'bad', to: 'good' })
    expect(report.replay.total.now.shedByReason).not.toEqual({})
    const more = await replayed(plain, '-c', shadow, '--mode', 'enforce', '--replicas', '6')
    expect(attained(more, 'now')).toBeGreaterThan(attained(report, 'now') + 0.03)
  })

  it('takes the same log packed, in parts, from standard input and in any order for the same', async () => {
    const whole = (await replayed(log, '-c', same)).replay
    const packed = gzipSync([...lines].reverse().join('\r\n'))
    expect((await replayed(written('sluice.log.gz', packed), '-c', same)).replay).toEqual(whole)
    const [first, second] = [lines.slice(0, 90), lines.slice(90)].map((part, at) =>
      written(`part-${at}.log`, part.join('\n')),
    )
    expect((await replayed(second ?? '', first ?? '', '-c', same)).replay).toEqual(whole)
    const { out } = await run(['replay', '-', '-c', same, '--format', 'json'], { stdin: packed })
    expect((JSON.parse(out) as ReplayReport).replay).toEqual(whole)
  })

  it('judges what was logged by the new promises too, where they change a verdict', async () => {
    const classes =
      'default_class: chat\nclasses:\n  chat: { ttft: 5s, tpot: 200ms, objective: 99% }\n  voice: { ttft: 1ms, objective: 99% }\n'
    const { replay } = await replayed(log, '-c', written('lax.yaml', configWith({ more: classes })))
    const group = (name: string) => replay.groups.find((each) => each.class === name)
    const { logged, loggedByNewPromises } = group('voice') ?? {}
    expect(logged?.good).toBeGreaterThan(0)
    expect(loggedByNewPromises?.good).toBe(0)
    expect(group('agent')).toBeUndefined()
    const { out } = await run(['replay', log, '-c', join(folder, 'lax.yaml')])
    expect(out).toContain('by the new promises')
  })

  it('says where its engines come from, what it left out and what it could not check', async () => {
    const noisy = [...lines, 'greetings', lines[0]?.replace('"v":1', '"v":9'), lines[1]].join('\n')
    const { out } = await run(['replay', written('noisy.log', noisy), '-c', same])
    expect(out).toMatch(/engines of model: measured in the log \(\d+ answers\): a decode step 2\d\.\d ms/)
    expect(out).toContain('2 lines could not be read:')
    expect(out).toContain(`noisy.log:${lines.length + 1}: no JSON`)
    expect(out).toContain('1 lines came twice and count once')
    expect(out).toContain('give the file that was in force as --was')
    const named = await run(['replay', log, '-c', same, '--profile', 'model=demo/slow'])
    expect(named.out).toContain('engines of model: demo/slow, as --profile says')
  })

  it('keeps what could be read of a packed log that is cut off', async () => {
    const cut = written('cut.log.gz', gzipSync(lines.join('\n')).subarray(0, -400))
    const { out, code } = await run(['replay', cut, '-c', same])
    expect(code).toBe(0)
    expect(out).toMatch(/cut\.log\.gz is cut off after line \d+/)
  })

  it('says that a log was written under another configuration than --was', async () => {
    const { out } = await run(['replay', log, '-c', same, '--was', same])
    expect(out).toMatch(/the log was decided under simulated; .*same\.yaml is [0-9a-f]{12}/)
  })

  it.each([
    ['no such file', ['/no/such.log', '-c', same], '/no/such.log: there is no such file'],
    ['no request', [written('none.log', 'hello\n'), '-c', same], 'none.log:1: no JSON'],
    ['a span beside it', [log, '-c', same, '--from', '2027-01-01'], 'they came from 2026-01-31T12:00:00'],
    [
      'too little to measure',
      [written('short.log', lines.slice(0, 5).join('\n')), '-c', same],
      'name a --profile',
    ],
    [
      'another model',
      [log, '-c', written('other.yaml', configWith({ model: 'other' }))],
      'the log is of model, and the file has only other',
    ],
    ['a broken configuration', [log, '-c', written('broken.yaml', 'models: 3\n')], 'no valid configuration'],
  ])('ends with 1 for %s, and says what to do', async (_, args, advice) => {
    const { err, code } = await run(['replay', ...args])
    expect(code).toBe(1)
    expect(err).toContain(advice)
  })

  it.each([
    [['--from', 'noon'], '2026-01-31T12:00:00Z'],
    [['--profile', 'demo/fast'], 'the nearest are'],
    [['--replicas', 'model=none'], 'whole number'],
    [['--mode', 'brave'], 'enforce, shadow, off'],
  ])('ends with 2 for %j', async (args, advice) => {
    const { err, code } = await run(['replay', log, '-c', same, ...args])
    expect(code).toBe(2)
    expect(err).toContain(advice)
  })
})
