/** The laws of the chaos run can be broken: each is broken here once, and nothing else with it. */
import { describe, expect, it } from 'vitest'
import { GENERATION_PATHS, type GenerationPath } from '../support/generation-paths.ts'
import type { Holdings } from '../support/node-child.ts'
import { sumOf, sumsBy } from '../support/page-sums.ts'
import { type ClientRecord, MANNERS, type Manner, REJECTIONS, type Seen } from './clients.ts'
import { type Evidence, type LogLine, readLog } from './evidence.ts'
import { checkLaws } from './laws.ts'
import type { Fault, Reload } from './storm.ts'

const HELD: Holdings = {
  processes: 1,
  cpuSec: 1,
  rssBytes: 1e8,
  heapBytes: 1e7,
  externalBytes: 1e6,
  handles: { TCPServerWrap: 2, TCPSocketWrap: 4, Timeout: 1 },
  listeners: 400,
  mapEntries: 500,
  setEntries: 300,
  timers: 20,
}
const SERVED: Seen = { end: 'completed', status: 200, begun: true }
const SHED: Seen = {
  end: 'refused',
  status: 429,
  begun: false,
  reason: 'slo_unreachable',
  shouldRetry: 'true',
  retryAfterSec: 3,
}

const CHAT = '/v1/chat/completions'

function client(id: string, manner: Manner, seen?: Seen, path: GenerationPath = CHAT): ClientRecord {
  const fromMs = 1000
  return { id, manner, path, fromMs, toMs: fromMs + 500, ...(seen === undefined ? {} : { seen }) }
}

function line(id: string, rest: Partial<LogLine> = {}): LogLine {
  return {
    level: 'info',
    event: 'request',
    request_id: id,
    outcome: 'completed',
    status: 200,
    replica: 'tiny-1',
    ...rest,
  }
}

const BREAKER_OPEN: LogLine = {
  level: 'warn',
  event: 'fleet',
  replica: 'tiny-1',
  message: 'replica is down (breaker open), metrics ok',
}

function rejected(manner: Manner): ClientRecord {
  const reason = REJECTIONS[manner] ?? ''
  const status = { model_not_found: 404, malformed: 400, too_large: 413 }[reason] ?? 0
  return client(`r-${reason}`, manner, { end: 'refused', status, begun: false, reason, shouldRetry: 'false' })
}

function fault(kind: Fault['kind'], replica: string, fromMs = 0): Fault {
  return { kind, replica, fromMs, mendedAtMs: fromMs + 3000 }
}

function reload(good: boolean): Reload {
  return {
    file: good ? 'good' : 'bad',
    good,
    how: 'watch',
    digestBefore: 'a',
    digestAfter: good ? 'b' : 'a',
    succeeded: good,
  }
}

/** A run in which all is well. */
function evidence(change: Partial<Evidence> = {}): Evidence {
  const leavers = MANNERS.slice(1, 5).map((manner, at) => {
    return client(`l${at}`, manner, undefined, GENERATION_PATHS[at])
  })
  return {
    startedAtMs: 500,
    pace: { kinds: ['killed', 'slow', 'mute'], opensBreakers: true },
    capacityPerSec: 10,
    offeredPerSec: 15,
    clients: [
      client('served', 'stays', SERVED),
      client('shed', 'stays', SHED),
      ...leavers,
      ...MANNERS.slice(5).map(rejected),
    ],
    calmClients: [client('calm', 'stays', SERVED)],
    lines: [
      line('served'),
      line('shed', { outcome: 'shed', reason: 'slo_unreachable', status: 429 }),
      line('calm'),
      BREAKER_OPEN,
    ],
    faults: [
      fault('killed', 'tiny-1', 20_000),
      fault('slow', 'tiny-2', 30_000),
      fault('mute', 'tiny-2', 40_000),
    ],
    pages: 2,
    reloads: [reload(true), reload(false)],
    outcomes: { completed: 2, shed: 1 },
    rejections: { model_not_found: 1, malformed: 1, too_large: 1 },
    ownFaults: 0,
    leftovers: { sluice_waiting_requests: 0 },
    before: HELD,
    after: HELD,
    states: { 'tiny-1': 'live', 'tiny-2': 'ramping' },
    stderr: 'sluice 0.1.0',
    exit: { code: 0, signal: null },
    ...change,
  }
}

function brokenIn(change: Partial<Evidence>): readonly string[] {
  return checkLaws(evidence(change))
    .filter(({ broken }) => broken.length > 0)
    .map(({ law }) => law)
}

/** A client more, with its line and its count. */
function with1(
  more: ClientRecord,
  its: LogLine | undefined,
  faults: readonly Fault[] = [],
): Partial<Evidence> {
  const base = evidence()
  const outcome = its?.outcome ?? ''
  return {
    clients: [...base.clients, more],
    lines: its === undefined ? base.lines : [...base.lines, its],
    faults: [...base.faults, ...faults],
    outcomes:
      its === undefined ? base.outcomes : { ...base.outcomes, [outcome]: (base.outcomes[outcome] ?? 0) + 1 },
  }
}

const FAILED: Seen = { ...SHED, status: 502, reason: 'upstream_failed' }
const TORN: Seen = { end: 'broken', status: 200, begun: true }
const failedLine = line('x', { outcome: 'upstream_failed', status: 502 })
const tornLine = line('x', { outcome: 'truncated', replica: 'tiny-2' })
/** One while that client is there, and one long before. */
const AROUND = [fault('killed', 'tiny-1', 1200), fault('erring', 'tiny-2', -20_000)]

describe('the laws of a chaos run', () => {
  it('are kept where all is well, also when two replicas failed a request and one broke a stream', () => {
    expect(brokenIn({})).toEqual([])
    const two = [fault('killed', 'tiny-1'), fault('erring', 'tiny-2')]
    expect(brokenIn(with1(client('x', 'stays', FAILED), failedLine, two))).toEqual([])
    const silence = client('x', 'stays', { ...FAILED, status: 504, reason: 'upstream_timeout' })
    const silentLine = line('x', { outcome: 'upstream_timeout', status: 504, replica: 'tiny-2' })
    const shouldNot = {
      ...silence,
      seen: { ...silence.seen, shouldRetry: 'false', retryAfterSec: 0 } as Seen,
    }
    expect(brokenIn(with1(shouldNot, silentLine, [fault('mute', 'tiny-2')]))).toEqual([])
    const one = [fault('truncating', 'tiny-2')]
    expect(brokenIn(with1(client('x', 'stays', TORN), tornLine, one))).toEqual([])
  })

  it('ask a run for no more than its pace has', () => {
    const pace = { kinds: ['slow'], opensBreakers: false } as const
    const lines = evidence().lines.filter((one) => one !== BREAKER_OPEN)
    expect(brokenIn({ pace, lines, faults: [fault('slow', 'tiny-1')] })).toEqual([])
  })

  it.each([
    ['nobody failed', with1(client('x', 'stays', FAILED), failedLine, AROUND)],
    ['no stream broke', with1(client('x', 'stays', TORN), tornLine, AROUND)],
  ])('tell when %s was broken, and what was at fault around it', (name, change) => {
    const law = checkLaws(evidence(change)).find((one) => one.law.startsWith(name))
    expect(law?.broken).toEqual([
      expect.stringMatching(
        /^x \(stays, \/v1\/chat\/completions\) from 0\.50 to 1\.00 s saw {.*}: {.*"replica":"tiny-.*}; faults: tiny-1 killed from 0\.70 to 3\.70 s$/,
      ),
    ])
  })

  it.each<[string, Partial<Evidence>]>([
    ['one line in the log', with1(client('x', 'stays', SERVED), undefined)],
    [
      'one line in the log',
      { lines: [...evidence().lines, line('nobody')], outcomes: { completed: 3, shed: 1 } },
    ],
    ['saw what the log says', with1(client('x', 'stays', SERVED), line('x', { outcome: 'truncated' }))],
    ['has a reason', with1(client('x', 'stays', { ...SHED, retryAfterSec: 0 }), shedLine())],
    ['has a reason', with1(client('x', 'stays', { ...SHED, status: 503 }), shedLine({ status: 503 }))],
    ['counters agree', { outcomes: { completed: 3, shed: 1 } }],
    ['counters agree', { rejections: { malformed: 2, model_not_found: 1, too_large: 1 } }],
    ['nobody failed', with1(client('x', 'stays', FAILED), failedLine, [fault('killed', 'tiny-1')])],
    ['no stream broke', with1(client('x', 'stays', TORN), tornLine, [fault('truncating', 'tiny-1')])],
    ['no stream broke', with1(client('x', 'stays', TORN), tornLine, [fault('lying', 'tiny-2')])],
    ['nothing is left', { leftovers: { sluice_waiting_requests: 1 } }],
    ['nothing is left', { leftovers: { 'requests in tiny-1': -1 } }],
    ['no handle', { after: { ...HELD, handles: { TCPSocketWrap: 40 } } }],
    ['no handle', { after: { ...HELD, listeners: 900 } }],
    ['takes work again', { states: { 'tiny-1': 'live', 'tiny-2': 'down' } }],
    ['after the storm', { calmClients: [client('calm', 'stays', { ...SERVED, end: 'broken' })] }],
    ['bad files', { reloads: [reload(true), { ...reload(false), digestAfter: 'c' }] }],
    ['bad files', { reloads: [{ ...reload(true), succeeded: false }, reload(false)] }],
    ['no fault of its own', { ownFaults: 1 }],
    ['no fault of its own', { stderr: 'MaxListenersExceededWarning: leak' }],
    ['no fault of its own', { exit: { code: null, signal: 'SIGKILL' } }],
    ['there was a storm', { pages: 0 }],
    ['there was a storm', { faults: evidence().faults.slice(0, 2) }],
    ['there was a storm', { clients: evidence().clients.map((one) => ({ ...one, path: CHAT })) }],
    ['there was a storm', { lines: evidence().lines.filter((one) => one !== BREAKER_OPEN) }],
  ])('say that %s is broken, and only that', (law, change) => {
    expect(brokenIn(change)).toEqual([expect.stringContaining(law)])
  })
})

function shedLine(rest: Partial<LogLine> = {}): LogLine {
  return line('x', { outcome: 'shed', reason: 'slo_unreachable', status: 429, ...rest })
}

describe('the evidence', () => {
  it('sums a page by label and as a whole', () => {
    const page =
      'a_total{model="m",outcome="x"} 2\na_total{model="n",outcome="x"} 1\na_total{outcome="y"} 0\nb 4\n'
    expect(sumsBy(page, 'a_total', 'outcome')).toEqual({ x: 3 })
    expect([sumOf(page, 'a_total'), sumOf(page, 'b')]).toEqual([3, 4])
  })

  it('keeps what is no line of a log', () => {
    expect(readLog('{"event":"request"}\nboom\n').map(({ event }) => event)).toEqual([
      'request',
      'unreadable: boom',
    ])
  })
})
