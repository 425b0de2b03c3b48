/** `top` and `explain` against an admin port that listens. */
import { createServer } from 'node:http'
import type { Command } from 'commander'
import { afterEach, describe, expect, it } from 'vitest'
import { closeServer } from '../../src/cli/listen.ts'
import { topCommand } from '../../src/cli/top.ts'
import type { Key, Tty } from '../../src/cli/tty.ts'
import { setUp } from '../admin/admin-rig.ts'
import { offerOf, settlementOf } from '../slo/facts.ts'
import { serveAdmin } from '../support/admin-stage.ts'
import { until, within } from '../support/deadline.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { batch, chat, decisionOf, good } from '../telemetry/rig.ts'
import { run } from './fake-terminal.ts'

const TOKEN = 'the-admin-token'
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function listening(token?: string) {
  const made = setUp({ token: () => token })
  const { url, close } = await serveAdmin(made.ports)
  closing.push(close)
  const offer = offerOf(chat, { requestId: 'abc', maxOutputTokens: 64 })
  made.observer.onDecision(decisionOf(offer, { atMs: 320, waitedMs: 320 }))
  const end = { ttftMs: 400, tpotMs: 30, promptTokens: 210 }
  made.observer.onSettled({ ...settlementOf({ offer, ...end }), replicaId: 'r1', predictedTtftMs: 380 })
  return { ...made, url, close }
}

/** A terminal in memory: keys go in, drawings come out. */
function fakeTty(columns = 140, rows = 40) {
  const drawn: string[] = []
  let onKey: ((key: Key) => void) | undefined
  let onChange: (() => void) | undefined
  const size = { columns, rows }
  const tty: Tty = {
    get columns() {
      return size.columns
    },
    get rows() {
      return size.rows
    },
    open(keys, changes) {
      onKey = keys
      onChange = changes
    },
    draw: (lines) => void drawn.push(lines.join('\n')),
    close() {
      onKey = undefined
    },
  }
  return {
    tty,
    drawn,
    press: (...names: string[]) => {
      for (const name of names) onKey?.({ name, sequence: name })
    },
    resize(toColumns: number, toRows: number) {
      Object.assign(size, { columns: toColumns, rows: toRows })
      onChange?.()
    },
    get open() {
      return onKey !== undefined
    },
  }
}

describe('sluice top', () => {
  it('prints once where the output is no terminal', async () => {
    const { url } = await listening()
    const { out, code } = await run(['top', '--url', url])
    expect(code).toBe(0)
    expect(out).toMatch(/^sluice 0\.1\.0 {2}enforce/)
    expect(out).toMatch(/^chat +too few/m)
    expect(out).toContain('Held 320 ms, then sent to r1')
  })

  it('prints as often as it is told, as text or as one JSON object a line', async () => {
    const { url } = await listening()
    const { out } = await run(['top', '--url', url, '--count', '3', '--every', '1ms', '--format', 'json'])
    const lines = out.trimEnd().split('\n')
    expect(lines).toHaveLength(3)
    expect(JSON.parse(lines[2] ?? '')).toMatchObject({
      config_digest: 'abc',
      replicas: [{ name: 'r1', in_flight_requests: 3 }],
    })
    const text = await run(['top', '--url', url, '--count', '2', '--every', '1ms', '--filter', 'zzz'])
    expect(text.out.match(/^sluice /gm)).toHaveLength(2)
    expect(text.out).toContain('says “zzz”')
  })

  it('shows decisions only with the token', async () => {
    const { url } = await listening(TOKEN)
    expect((await run(['top', '--url', url])).out).toContain('set SLUICE_ADMIN_TOKEN')
    expect((await run(['top', '--url', url, '--token', TOKEN])).out).toContain('then sent to r1')
  })

  it('says what to do when nobody answers, or something else does', async () => {
    const { url, close } = await listening()
    await close()
    const nobody = await run(['top', '--url', url])
    expect(nobody.code).toBe(1)
    expect(nobody.err).toMatch(/no answer from .*ECONNREFUSED.*is that the admin port/)
    const other = createServer((_request, response) => response.end('<html>'))
    closing.push(() => closeServer(other))
    const port = await listenOnLoopback(other)
    expect((await run(['top', '--url', `http://127.0.0.1:${port}`])).err).toContain(
      'not the admin port of this version',
    )
  })

  it('draws on a terminal, obeys keys and sizes, outlives a lost connection, and gives the screen back', async () => {
    const { url, close } = await listening()
    const screen = fakeTty()
    const last = () => screen.drawn.at(-1) ?? ''
    const terminal = { out() {}, err() {}, readStdin: async () => '', env: {}, colors: false, exitWith() {} }
    const command = topCommand(terminal, screen.tty) as Command
    const ended = command.parseAsync(['--url', url, '--every', '5ms'], { from: 'user' })
    await until(() => last().includes('q quit'), 'the first drawing')
    screen.press('?')
    expect(last()).toContain('sort it by the next column')
    screen.press('?', 'tab')
    expect(last()).toContain('replicas: tab next')
    screen.resize(50, 10)
    expect(last().split('\n').length).toBeLessThanOrEqual(10)
    expect(
      Math.max(
        ...last()
          .split('\n')
          .map((line) => line.length),
      ),
    ).toBeLessThanOrEqual(50)
    void close()
    await until(() => last().includes('OLD: no answer'), 'the loss to be shown')
    screen.press('q')
    await within(ended, 'top to end')
    expect(screen.open).toBe(false)
  })
})

describe('sluice explain', () => {
  it('tells the story with the numbers behind it', async () => {
    const { url } = await listening()
    const { out, code } = await run(['explain', 'abc', '--url', url])
    expect(code).toBe(0)
    expect(out).toBe(`abc  chat on m, tenant t, product p
promised    TTFT 450 ms, TPOT 55 ms for 99 % of requests; refused when it can’t be kept

   0.0 ms  received    by route chat: 210 prompt tokens (estimated 200), at most 64 out, streamed
   320 ms  decided     Held 320 ms, then sent to r1: first token predicted after 210 ms; the promise is 450 ms.
   400 ms  first token predicted after 380 ms: it came 20 ms later
   3.00 s  ended       Kept its promise: first token after 400 ms, then 30 ms a token, 3.00 s in all. 50 tokens out, completed.

What it saw of each replica
REPLICA    TTFT  WITH MARGIN  UNCACHED  BACKLOG  RUNNING  KV PEAK  STALL  STEP  GATE
r1       210 ms            –       200       90        4        –      –     –  open

decided under configuration abc
`)
  })

  it('says how long a request without a promise waits', async () => {
    const { url, observer } = await listening()
    observer.onDecision(decisionOf(offerOf(batch, { requestId: 'any-time' })))
    const { out } = await run(['explain', 'any-time', '--url', url])
    expect(out).toMatch(/^promised +nothing; waits up to 1\.00 s for room$/m)
  })

  it('gives the records themselves as JSON', async () => {
    const { url } = await listening()
    const { out } = await run(['explain', 'abc', '--url', url, '--format', 'json'])
    expect(JSON.parse(out)).toMatchObject({
      request_id: 'abc',
      settlement: { e2e_ms: 3000, verdict: { kind: 'good' } },
    })
  })

  it('tells what runs still, what was refused and what left while it waited', async () => {
    const { url, observer } = await listening()
    const of = (requestId: string) => offerOf(chat, { requestId })
    observer.onDecision(decisionOf(of('runs')))
    const verdict = { kind: 'shed', reason: 'no_replica', retryAfterMs: 5000 } as const
    observer.onDecision(decisionOf(of('refused'), { verdict, candidates: [] }))
    observer.onSettled(
      settlementOf({ offer: of('refused'), outcome: 'shed', shedReason: 'no_replica', attempts: 0 }),
    )
    observer.onSettled(settlementOf({ offer: of('left'), outcome: 'cancelled', attempts: 0, e2eMs: 900 }))
    const story = async (id: string) => (await run(['explain', id, '--url', url])).out
    expect(await story('runs')).toMatch(/\n +runs\n/)
    expect(await story('refused')).toMatch(
      /decided +Refused: no replica of m takes work\. Room is expected in 5\.00 s\./,
    )
    expect(await story('refused')).toMatch(/ended +shed, bad\n/)
    expect(await story('left')).toMatch(/900 ms +undecided +Its client left after 900 ms of waiting\./)
  })

  it('ends with 1 and says where to look when nothing is held, or when the token is missing', async () => {
    const { url } = await listening()
    const unknown = await run(['explain', 'nobody', '--url', url])
    expect([unknown.code, unknown.out]).toEqual([1, ''])
    expect(unknown.err).toContain('the log has a line')
    const guarded = await listening(TOKEN)
    const refused = await run(['explain', 'abc', '--url', guarded.url])
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('set SLUICE_ADMIN_TOKEN')
    expect((await run(['explain', 'abc', '--url', guarded.url, '--token', TOKEN])).code).toBe(0)
  })

  it('survives whatever text a client gave as its id', async () => {
    const { url, observer } = await listening()
    const requestId = 'a\u001b[31m b&c=1'
    observer.onSettled({ ...good({ requestId }), requestId })
    const { out } = await run(['explain', requestId, '--url', url])
    expect(out).not.toContain('\u001b')
    expect(out).toContain('Kept its promise')
  })
})
