/** `sluice load` reads its flags, reports what it measured and says what is wrong. */
import { afterEach, describe, expect, it } from 'vitest'
import { shownMs } from '../../src/admin/words.ts'
import { loadCommand } from '../../src/cli/load.ts'
import { classesFrom, mixArgument, phasesOf } from '../../src/cli/load-options.ts'
import { shownCounts, shownShare } from '../../src/cli/load-report.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { answer, closeServers, scripted } from '../load/scripted-server.ts'

afterEach(closeServers)

function fakeTerminal(stdin = '') {
  const seen = { out: '', err: '', code: undefined as number | undefined }
  const terminal: Terminal = {
    out: (text) => {
      seen.out += text
    },
    err: (text) => {
      seen.err += text
    },
    readStdin: async () => stdin,
    env: {},
    colors: false,
    exitWith: (code) => {
      seen.code = code
    },
  }
  return { terminal, seen }
}

async function load(...args: string[]) {
  const { terminal, seen } = fakeTerminal()
  const command = loadCommand(terminal)
    .exitOverride()
    .configureOutput({ writeErr: (text) => terminal.err(text) })
  await command.parseAsync(args, { from: 'user' })
  return seen
}

describe('sluice load', () => {
  it('reports goodput by phase and class as JSON', async () => {
    const server = await scripted(answer)
    const { out, err, code } = await load(
      server.url,
      '--rate',
      '50,100',
      '--duration',
      '200ms',
      '--format',
      'json',
    )
    const report = JSON.parse(out) as { phases: { name: string }[]; all: Record<string, unknown> }
    expect(report.phases.map(({ name }) => name)).toEqual(['50/s', '100/s'])
    expect(report.all).toMatchObject({
      offeredRequests: server.requests.length,
      completedRequests: server.requests.length,
    })
    expect(err).toContain(`load: m at ${server.url}`)
    expect(code).toBe(0)
  })

  it('prints tables otherwise, with the reasons of refusals', async () => {
    const server = await scripted((res) =>
      res.writeHead(429, { 'x-sluice-reason': 'waiting_full', 'retry-after': '3' }).end(),
    )
    const { out, code } = await load(server.url, '--rate', '100', '--duration', '100ms', '--mix', 'chat')
    expect(out).toMatch(/chat +│/)
    expect(out).toMatch(/shed: waiting_full \d+; told to come back in 3\.00 s/)
    expect(code).toBe(1)
  })

  it.each([
    [['--rate', '1', '--load', '1'], 'give either --rate'],
    [['--load', '1'], '--capacity'],
    [['--rate', 'fast'], 'must be a number above 0'],
    [['--rate', '1', '--mix', 'chatt'], '"chatt" is none of chat, voice'],
    [['--rate', '1', '--duration', '5'], '5s'],
  ])('refuses %j with advice', async (flags, advice) => {
    const { terminal, seen } = fakeTerminal()
    const command = loadCommand(terminal)
      .exitOverride()
      .configureOutput({ writeErr: (text) => terminal.err(text) })
    await expect(command.parseAsync(['http://127.0.0.1:1', ...flags], { from: 'user' })).rejects.toThrow()
    expect(seen.err).toContain(advice)
  })

  it('says so when nothing answers at the address', async () => {
    const server = await scripted(answer)
    await closeServers()
    await expect(load(server.url, '--rate', '1')).rejects.toThrow(
      /does not answer \(ECONNREFUSED\); is the address right/,
    )
  })
})

describe('its options', () => {
  it('splits the duration among the loads and keeps equal ones apart', () => {
    expect(phasesOf({ load: [0.5, 2, 2], capacity: 10, duration: 9000 })).toEqual([
      { name: '0.5x', durationMs: 3000, ratePerSec: 5 },
      { name: '2x', durationMs: 3000, ratePerSec: 20 },
      { name: '2x (3)', durationMs: 3000, ratePerSec: 20 },
    ])
  })

  it('takes a mix in the proportion given', () => {
    expect(mixArgument('chat=3,agent').map(({ name, share }) => [name, share])).toEqual([
      ['chat', 3],
      ['agent', 1],
    ])
  })

  it('takes promises from a configuration and names what is wrong in it', async () => {
    const file =
      'models: [{ name: m, replicas: ["http://127.0.0.1:1"] }]\nauth: none\nclasses: { chat: { ttft: 7s } }\n'
    expect((await classesFrom('-', fakeTerminal(file).terminal)).chat).toMatchObject({ ttftMs: 7000 })
    await expect(classesFrom('-', fakeTerminal('nonsense: 1\n').terminal)).rejects.toThrow(/nonsense/)
    await expect(classesFrom('/nowhere.yaml', fakeTerminal().terminal)).rejects.toThrow(/nowhere/)
  })
})

describe('figures for people', () => {
  it('have the unit that reads best', () => {
    expect([shownMs(2.34), shownMs(38.2), shownMs(1234), shownMs(-14_146.7), shownMs(undefined)]).toEqual([
      '2.3 ms',
      '38 ms',
      '1.23 s',
      '-14.1 s',
      '–',
    ])
    expect([shownShare(0.4321), shownShare(1), shownShare(undefined)]).toEqual(['43.2 %', '100 %', '–'])
    expect(shownCounts({ a: 1, b: 3 })).toBe('b 3, a 1')
  })
})
