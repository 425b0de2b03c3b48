/** What is gathered when the storm is over: what clients saw, what Sluice wrote and counts, and what is left anywhere. */
import { eventually } from '../support/deadline.ts'
import type { Exit, Holdings } from '../support/node-child.ts'
import { sumOf } from '../support/page-sums.ts'
import type { ClientRecord } from './clients.ts'
import type { Stage } from './stage.ts'
import { type Fault, type Pace, type Reload, takesWork } from './storm.ts'

/** A line of Sluice's log; a request's has the fields of src/telemetry/request-line.ts. */
export interface LogLine {
  readonly level: string
  readonly event: string
  /** What a line of the fleet says. */
  readonly message?: string
  readonly request_id?: string
  readonly outcome?: string
  readonly reason?: string
  readonly status?: number
  readonly replica?: string
  readonly attempts?: number
}

/** What is left when nobody asks for anything any more; all of it should be 0, and is -1 where it can't be known. */
export type Leftovers = Readonly<Record<string, number>>

export interface Evidence {
  /** When the storm began, by the wall clock in Unix ms. */
  readonly startedAtMs: number
  /** What it had to show. */
  readonly pace: Pick<Pace, 'kinds' | 'opensBreakers'>
  /** Requests that the engines alone served a second, and that were offered. */
  readonly capacityPerSec: number
  readonly offeredPerSec: number
  readonly clients: readonly ClientRecord[]
  /** Those that came when the storm was over. */
  readonly calmClients: readonly ClientRecord[]
  readonly lines: readonly LogLine[]
  readonly faults: readonly Fault[]
  readonly pages: number
  readonly reloads: readonly Reload[]
  /** Ends of requests as /metrics counts them. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly rejections: Readonly<Record<string, number>>
  readonly ownFaults: number
  readonly leftovers: Leftovers
  readonly before: Holdings
  readonly after: Holdings
  readonly states: Readonly<Record<string, string>>
  readonly stderr: string
  readonly exit: Exit
}

/** Idle sockets are kept for 4 s, and each replica has two that watch it at most. */
const SOCKETS_OF_A_WATCH = 2
const SETTLE_LIMIT_MS = 12_000
const UNKNOWN = -1

const NOTHING = [
  'sluice_in_flight_requests',
  'sluice_prefill_backlog_tokens',
  'sluice_waiting_requests',
  'sluice_waiting_tokens',
  'sluice_waiting_bytes',
  'sluice_buffered_bytes',
  'sluice_client_connections',
] as const

/** Looks until nothing is left, and tells what is when the time is over. */
export async function leftoversOf(stage: Stage): Promise<Leftovers> {
  let left: Record<string, number> = {}
  await eventually('nothing to be left', SETTLE_LIMIT_MS, async () => {
    const page = await stage.metrics()
    left = Object.fromEntries(NOTHING.map((name) => [name, shownOn(page, name)]))
    const sockets = shownOn(page, 'sluice_upstream_connections')
    const spare = Math.max(0, sockets - stage.replicas.length * SOCKETS_OF_A_WATCH)
    left.sluice_upstream_connections = sockets < 0 ? UNKNOWN : spare
    for (const replica of stage.replicas)
      left[`requests in ${replica.name}`] = await replica.open().catch(() => UNKNOWN)
    return Object.values(left).every((count) => count === 0)
  }).catch(() => undefined)
  return left
}

function shownOn(page: string, name: string): number {
  return page.includes(`\n${name}`) ? sumOf(page, name) : UNKNOWN
}

/** Looks until every replica takes work, and tells their states. */
export async function recoveredStates(
  stage: Stage,
  limitMs: number,
): Promise<Readonly<Record<string, string>>> {
  let states: Readonly<Record<string, string>> = {}
  await eventually('every replica to be back', limitMs, async () => {
    states = await stage.states()
    const all = Object.values(states)
    return all.length === stage.replicas.length && all.every(takesWork)
  }).catch(() => undefined)
  return states
}

/** The log as it was written; what is no JSON is kept as a line of its own, which no law forgives. */
export function readLog(text: string): readonly LogLine[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      try {
        return JSON.parse(line) as LogLine
      } catch {
        return { level: 'error', event: `unreadable: ${line.slice(0, 80)}` }
      }
    })
}
