/** Tells what happened to the whole (reloads, replicas, SLO states) in a sentence each. */
import type { Ms } from '../../core/units.ts'
import type { JournalEntry } from '../../telemetry/journal.ts'

export type EventKind = 'configuration' | 'replica' | 'promise' | 'life'

export interface EventFigures {
  /** On the clock of the records. */
  readonly atMs: Ms
  readonly kind: EventKind
  /** Whether it is something to look after. */
  readonly trouble: boolean
  readonly text: string
}

const RELOAD_FAILED =
  'Reload refused: the file has problems, named in the log. The old configuration goes on.'

/** What changed is told in full up to here. */
const CHANGES_TOLD = 3

/** Entries that have a sentence; the others are the log's alone. */
export function eventFigures(entries: readonly JournalEntry[]): readonly EventFigures[] {
  return entries.flatMap((entry) => {
    const told = sentenceOf(entry)
    return told === undefined ? [] : [{ atMs: entry.atMs, ...told }]
  })
}

function sentenceOf({ event, fields }: JournalEntry): Omit<EventFigures, 'atMs'> | undefined {
  const text = (name: string) => String(fields[name] ?? '')
  switch (event) {
    case 'config_loaded':
      return {
        kind: 'configuration',
        trouble: false,
        text: loaded(text('digest'), text('mode'), fields.changes),
      }
    case 'reload_failed':
      return { kind: 'configuration', trouble: true, text: RELOAD_FAILED }
    case 'replica_state':
      return replicaChanged(text('replica'), fields.from === undefined ? undefined : text('from'), text('to'))
    case 'slo_state':
      return promiseChanged(text('class'), text('model'), text('to'), text('raised_by'))
    case 'draining':
      return { kind: 'life', trouble: false, text: 'Shutting down: nothing new is taken.' }
    default:
      return undefined
  }
}

function loaded(digest: string, mode: string, changes: unknown): string {
  const lines = Array.isArray(changes) ? changes.map(String) : []
  if (lines.length === 0) return `Configuration ${digest} in force, mode ${mode}.`
  const more = lines.length - CHANGES_TOLD
  const told = lines.slice(0, CHANGES_TOLD).join('; ')
  return `Configuration ${digest} in force: ${told}${more > 0 ? `; and ${more} more` : ''}.`
}

function replicaChanged(replica: string, from: string | undefined, to: string): Omit<EventFigures, 'atMs'> {
  const trouble = to === 'down' || to === 'suspect'
  const text = from === undefined ? `${replica} joined, ${to}.` : `${replica} is ${to}, after ${from}.`
  return { kind: 'replica', trouble, text }
}

function promiseChanged(
  className: string,
  model: string,
  to: string,
  raisedBy: string,
): Omit<EventFigures, 'atMs'> {
  const on = `${className} on ${model}`
  const trouble = to === 'critical' || to === 'burning'
  const by = raisedBy === '' ? '' : ` (${raisedBy})`
  const text = trouble
    ? `${on} is ${to}${by}.`
    : to === 'ok'
      ? `${on} keeps its promise.`
      : `${on} has too little traffic to judge.`
  return { kind: 'promise', trouble, text }
}
