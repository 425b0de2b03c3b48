/** Tells what a client met in a chaos run, and when, so that a broken law is explained by its own words. */
import type { ClientRecord } from './clients.ts'
import type { Evidence, LogLine } from './evidence.ts'

/** Breakers look back that far, so an older fault has no part in what a client met. */
const FAULTS_BEFORE_MS = 10_000

/** What it asked, from when to when, and what it saw. Seconds count from the begin of the storm. */
export function toldClient({ startedAtMs }: Evidence, client: ClientRecord): string {
  const { id, manner, path, fromMs, toMs, seen } = client
  return `${id} (${manner}, ${path}) ${span(startedAtMs, fromMs, toMs)} saw ${JSON.stringify(seen)}`
}

export function toldLine(line: LogLine | undefined): string {
  if (line === undefined) return 'no line'
  const { outcome, reason, status, replica, attempts } = line
  return JSON.stringify({ outcome, reason, status, replica, attempts })
}

/** The faults of all replicas while it was there and for a while before. */
export function toldFaults({ startedAtMs, faults }: Evidence, { fromMs, toMs }: ClientRecord): string {
  const [firstMs, lastMs] = [fromMs - FAULTS_BEFORE_MS, toMs ?? Number.POSITIVE_INFINITY]
  const near = faults.filter((fault) => fault.fromMs <= lastMs && fault.mendedAtMs >= firstMs)
  const told = near.map(({ kind, replica, fromMs: brokenAtMs, mendedAtMs }) => {
    return `${replica} ${kind} ${span(startedAtMs, brokenAtMs, mendedAtMs)}`
  })
  return `faults: ${told.length === 0 ? 'none' : told.join(', ')}`
}

function span(startedAtMs: number, fromMs: number, toMs = Number.POSITIVE_INFINITY): string {
  const sec = (atMs: number) => (Number.isFinite(atMs) ? ((atMs - startedAtMs) / 1000).toFixed(2) : 'never')
  return `from ${sec(fromMs)} to ${sec(toMs)} s`
}
