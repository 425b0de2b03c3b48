/** The laws of a chaos run as pure functions of the evidence: each names what it looked at and all that breaks it. */
import { ERROR_TABLE, type ErrorCode } from '../../src/errors.ts'
import { GENERATION_PATHS } from '../support/generation-paths.ts'
import type { Holdings } from '../support/node-child.ts'
import { type ClientRecord, left, MANNERS, REJECTIONS, type Seen } from './clients.ts'
import type { Evidence, LogLine } from './evidence.ts'
import { type Fault, HARMLESS, takesWork } from './storm.ts'
import { toldClient, toldFaults, toldLine } from './story.ts'

export interface Law {
  readonly law: string
  /** Things looked at. */
  readonly looked: number
  readonly broken: readonly string[]
}

type Check = (evidence: Evidence) => Omit<Law, 'law'>

/** What clocks and pipes may be apart, and what a mended replica may still give out, in ms. */
const SLACK_MS = 1500
/** Handles, timers and listeners of what Sluice does by itself come and go; a leak of one in ten requests shows. */
const HANDLE_SLACK = 12
const TIMER_SLACK = 30
const LISTENER_SLACK = 200

const LAWS: Readonly<Record<string, Check>> = {
  'each request has one line in the log': (evidence) => {
    const lines = linesById(evidence)
    const all = [...evidence.clients, ...evidence.calmClients]
    const known = new Set(all.map(({ id }) => id))
    const broken = all.flatMap(({ id, manner }) => {
      const count = lines.get(id)?.length ?? 0
      const unjudged = manner === 'leaves in its upload' || REJECTIONS[manner] !== undefined
      if (unjudged) return count === 0 ? [] : [`${id} (${manner}) has ${count} lines`]
      if (count === 1 || (count === 0 && left({ manner }))) return []
      return [`${id} (${manner}) has ${count} lines`]
    })
    for (const id of lines.keys()) if (!known.has(id)) broken.push(`nobody sent ${id}`)
    return { looked: all.length, broken }
  },

  'clients saw what the log says': (evidence) => {
    const lines = linesById(evidence)
    const stayed = evidence.clients.filter(({ manner }) => manner === 'stays')
    const broken = stayed.flatMap((client) => {
      const [line] = lines.get(client.id) ?? []
      if (line === undefined || client.seen === undefined) return []
      return agrees(client.seen, line)
        ? []
        : [`${toldClient(evidence, client)}, but its line says ${toldLine(line)}`]
    })
    return { looked: stayed.length, broken }
  },

  'each refusal has a reason, the status of that reason, and advice': (evidence) => {
    const refused = evidence.clients.filter(({ seen }) => seen?.end === 'refused')
    const broken = refused
      .filter((client) => !isExplained(client))
      .map((client) => toldClient(evidence, client))
    return { looked: refused.length, broken }
  },

  'counters agree with the log, and rejections with what clients saw': (evidence) => {
    const counted = countBy(requestLines(evidence), ({ outcome = '' }) => outcome)
    const rejected = countBy(
      evidence.clients.flatMap(({ manner }) => REJECTIONS[manner] ?? []),
      (reason) => reason,
    )
    const broken = [
      ...differences('outcome', counted, evidence.outcomes),
      ...differences('rejection', rejected, evidence.rejections),
    ]
    return { looked: sum(evidence.outcomes) + sum(evidence.rejections), broken }
  },

  'nobody failed for the fault of one replica before its bytes had begun': (evidence) => {
    const failed = evidence.clients.filter(({ seen }) => seen !== undefined && isFailure(seen))
    const lines = linesById(evidence)
    const broken = failed
      .filter((client) => harmfulReplicas(evidence, client).size < 2)
      .filter((client) => !isSilence(evidence, client, lines.get(client.id)?.[0]))
      .map((client) => toldWhole(evidence, client, lines.get(client.id)?.[0]))
    return { looked: evidence.clients.length, broken }
  },

  'no stream broke but at a replica that was made to break it': (evidence) => {
    const lines = linesById(evidence)
    const torn = evidence.clients.filter(({ seen }) => seen?.end === 'broken')
    const broken = torn
      .filter((client) => {
        const replica = lines.get(client.id)?.[0]?.replica ?? ''
        return !harmfulReplicas(evidence, client).has(replica)
      })
      .map((client) => toldWhole(evidence, client, lines.get(client.id)?.[0]))
    return { looked: evidence.clients.length, broken }
  },

  'nothing is left: permits, books, waiters, bytes, sockets, work in engines': ({ leftovers }) => ({
    looked: Object.keys(leftovers).length,
    broken: Object.entries(leftovers)
      .filter(([, count]) => count !== 0)
      .map(([name, count]) => `${name} ${count < 0 ? 'can’t be known' : count}`),
  }),

  'no handle, timer or listener is left': ({ before, after }) => {
    const pairs: readonly (readonly [string, number, number, number])[] = [
      ['handles', handlesOf(before), handlesOf(after), HANDLE_SLACK],
      ['timers', before.timers, after.timers, TIMER_SLACK],
      ['listeners', before.listeners, after.listeners, LISTENER_SLACK],
    ]
    const broken = pairs
      .filter(([, was, is, slack]) => is - was > slack)
      .map(([name, was, is]) => `${name} grew from ${was} to ${is}`)
    return { looked: pairs.length, broken }
  },

  'every replica takes work again': ({ states }) => ({
    looked: Object.keys(states).length,
    broken: Object.entries(states)
      .filter(([, state]) => !takesWork(state))
      .map(([name, state]) => `${name} is ${state}`),
  }),

  'after the storm everybody is served': (evidence) => ({
    looked: evidence.calmClients.length,
    broken: evidence.calmClients
      .filter(({ seen }) => seen?.end !== 'completed')
      .map((client) => toldClient(evidence, client)),
  }),

  'bad files changed nothing, and good ones came into force': ({ reloads }) => ({
    looked: reloads.length,
    broken: reloads
      .filter(({ good, digestBefore, digestAfter, succeeded }) =>
        good ? digestAfter === digestBefore || !succeeded : digestAfter !== digestBefore || succeeded,
      )
      .map(({ file, how }) => `${file} (${how})`),
  }),

  'Sluice had no fault of its own, and ended well': ({ ownFaults, lines, stderr, exit }) => {
    const faulty = lines.filter(({ event }) => event === 'fault' || event.startsWith('unreadable'))
    const noise = stderr.split('\n').filter((line) => /error|warning|deprecat| {4}at /i.test(line))
    return {
      looked: lines.length,
      broken: [
        ...(ownFaults === 0 ? [] : [`${ownFaults} faults are counted`]),
        ...faulty.map((line) => JSON.stringify(line).slice(0, 300)),
        ...noise,
        ...(exit.code === 0 ? [] : [`it ended with ${exit.signal ?? exit.code}`]),
      ],
    }
  },

  'there was a storm': ({ pace, clients, faults, lines, pages, reloads }) => {
    const seen = new Set(clients.map(({ manner }) => manner))
    const asked = new Set(clients.map(({ path }) => path))
    const struck = new Set(faults.map(({ kind }) => kind))
    return {
      looked: clients.length + faults.length,
      broken: [
        ...MANNERS.filter((manner) => !seen.has(manner)).map((manner) => `no client ${manner}`),
        ...GENERATION_PATHS.filter((path) => !asked.has(path)).map((path) => `nobody asked ${path}`),
        ...pace.kinds.filter((kind) => !struck.has(kind)).map((kind) => `no replica was ${kind}`),
        ...(!pace.opensBreakers || lines.some(opensBreaker) ? [] : ['no breaker opened']),
        ...(pages > 0 ? [] : ['no page went wrong']),
        ...(reloads.some(({ good }) => good) ? [] : ['no good file was loaded']),
        ...(reloads.some(({ good }) => !good) ? [] : ['no bad file was tried']),
        ...(clients.some(({ seen: end }) => end?.status === 429) ? [] : ['nothing was shed']),
      ],
    }
  },
}

export function checkLaws(evidence: Evidence): readonly Law[] {
  return Object.entries(LAWS).map(([law, check]) => ({ law, ...check(evidence) }))
}

function requestLines({ lines }: Evidence): readonly LogLine[] {
  return lines.filter(({ event }) => event === 'request')
}

function linesById(evidence: Evidence): ReadonlyMap<string, readonly LogLine[]> {
  const byId = new Map<string, LogLine[]>()
  for (const line of requestLines(evidence)) {
    const id = line.request_id ?? ''
    byId.set(id, [...(byId.get(id) ?? []), line])
  }
  return byId
}

/** The outcomes that a line may have for what its client saw. */
function agrees({ end, reason, status, begun }: Seen, line: LogLine): boolean {
  switch (end) {
    case 'completed':
      return line.outcome === 'completed' && line.status === 200
    case 'broken':
      return line.outcome === 'truncated' || line.outcome === 'upstream_timeout'
    case 'refused':
      if (line.status !== status) return false
      return line.outcome === 'shed' ? line.reason === reason : line.outcome === reason
    case 'cut':
      return begun && line.outcome === 'truncated'
    default:
      return end satisfies never
  }
}

function isExplained({ manner, seen }: ClientRecord): boolean {
  if (seen?.reason === undefined) return false
  const expected = REJECTIONS[manner]
  if (expected !== undefined && seen.reason !== expected) return false
  if (seen.status === 200) return true
  const row = ERROR_TABLE[seen.reason as ErrorCode]
  if (row === undefined || row.status !== seen.status) return false
  const told = seen.retryAfterSec ?? 0
  return seen.shouldRetry === 'true' ? told >= 1 && told <= 60 : seen.shouldRetry === 'false' && told === 0
}

/** A good request that got neither an answer nor a refusal for want of room. */
function isFailure({ end, reason, begun }: Seen): boolean {
  if (end === 'cut' || (end === 'broken' && !begun)) return true
  return (
    end === 'refused' &&
    ['upstream_failed', 'upstream_timeout', 'no_replica', 'internal', 'draining'].includes(reason ?? '')
  )
}

/** A mute replica may be at work all the same, so what it has taken is not begun a second time elsewhere. */
function isSilence({ faults }: Evidence, client: ClientRecord, line: LogLine | undefined): boolean {
  if (client.seen?.reason !== 'upstream_timeout') return false
  return faults.some(
    ({ kind, replica, fromMs, mendedAtMs }) =>
      kind === 'mute' &&
      replica === line?.replica &&
      fromMs <= (client.toMs ?? Number.POSITIVE_INFINITY) &&
      mendedAtMs + SLACK_MS >= client.fromMs,
  )
}

/** Replicas that were made to fail requests while that client waited. */
function harmfulReplicas({ faults }: Evidence, client: ClientRecord): ReadonlySet<string> {
  const during = (fault: Fault) =>
    fault.fromMs <= (client.toMs ?? Number.POSITIVE_INFINITY) + SLACK_MS &&
    fault.mendedAtMs + SLACK_MS >= client.fromMs
  return new Set(
    faults.filter((fault) => !HARMLESS.has(fault.kind) && during(fault)).map(({ replica }) => replica),
  )
}

function handlesOf({ handles }: Holdings): number {
  return Object.entries(handles)
    .filter(([type]) => type !== 'Timeout')
    .reduce((total, [, count]) => total + count, 0)
}

function toldWhole(evidence: Evidence, client: ClientRecord, line: LogLine | undefined): string {
  return `${toldClient(evidence, client)}: ${toldLine(line)}; ${toldFaults(evidence, client)}`
}

function opensBreaker({ event, message = '' }: LogLine): boolean {
  return event === 'fleet' && message.includes('breaker open')
}

function countBy<T>(all: readonly T[], key: (one: T) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of all) counts[key(one)] = (counts[key(one)] ?? 0) + 1
  return counts
}

function differences(
  what: string,
  expected: Readonly<Record<string, number>>,
  counted: Readonly<Record<string, number>>,
): string[] {
  return [...new Set([...Object.keys(expected), ...Object.keys(counted)])]
    .filter((key) => (expected[key] ?? 0) !== (counted[key] ?? 0))
    .map((key) => `${what} ${key}: ${expected[key] ?? 0} expected, ${counted[key] ?? 0} counted`)
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}
