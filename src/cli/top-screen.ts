/** Draws `top`: the numbers of an overview in as many lines and columns as the terminal has. */
import pc from 'picocolors'
import type { Overview } from '../admin/overview/overview.ts'
import {
  counted,
  NOTHING,
  shownAttainment,
  shownClock,
  shownCount,
  shownRate,
  shownSpan,
} from '../admin/words.ts'
import { type Column, harmless, type Painter, sortedRows, tableLines } from './text-table.ts'
import { decisionColumns, PROMISE_COLUMNS, promiseRows, REPLICA_COLUMNS } from './top-columns.ts'
import { KEYS_HELP, SECTIONS, type SectionName, type TopView } from './top-view.ts'

export interface Room {
  readonly columns: number
  readonly rows: number
}

/** A section with its kind of row hidden, so that all of them can be laid out alike. */
interface Section {
  readonly name: SectionName
  readonly rows: number
  /** How many columns can be sorted by. */
  readonly sortable: number
  /** Its head and so many rows from `first` on. */
  readonly lines: (first: number, rows: number, width: number, paint: Painter) => readonly string[]
}

/** A section out of focus keeps as many rows when room is short. */
const LEAST_ROWS = 3
const HEAD_LINES = 3

/** The whole screen, exactly `room.rows` lines at most. `trouble`: why the numbers are old, if they are. */
export function topLines(
  overview: Overview,
  view: TopView,
  room: Room,
  colors: boolean,
  trouble?: string,
): readonly string[] {
  const paint = pc.createColors(colors)
  const cut = (line: string) => (line.length <= room.columns ? line : `${line.slice(0, room.columns - 1)}…`)
  const head = headLines(overview).map(cut)
  const top = [paint.bold(head[0] ?? ''), toneOf(overview, paint)(head[1] ?? ''), head[2] ?? '']
  const foot = footLine(view, room.columns, paint, trouble)
  if (view.helping) return [...top, '', ...helpLines(room.columns, paint), '', foot].slice(0, room.rows)
  const sections = sectionsOf(overview, view)
  const free = room.rows - HEAD_LINES - 1 - 2 * sections.length
  const shares = shareRows(sections, Math.max(0, free), view.focus)
  const body = sections.flatMap((section, index) => {
    const rows = shares[index] ?? 0
    if (rows === 0 && section.name !== view.focus) return []
    const most = Math.max(0, section.rows - rows)
    const first = section.name === view.focus ? Math.min(view.scrolled, most) : 0
    return ['', ...section.lines(first, rows, room.columns, paint)]
  })
  return [...top, ...body.slice(0, room.rows - HEAD_LINES - 1), foot]
}

/** All of it for a pipe: no colours, no cuts but the width's. */
export function topText(overview: Overview, view: TopView, width: number): string {
  const paint = pc.createColors(false)
  const sections = sectionsOf(overview, view).flatMap((section) => [
    '',
    ...section.lines(0, section.rows, width, paint),
  ])
  return `${[...headLines(overview), ...sections].join('\n')}\n`
}

/** How many columns of a section can be sorted by. */
export function sortableColumns(overview: Overview, view: TopView): number {
  return sectionsOf(overview, view).find(({ name }) => name === view.focus)?.sortable ?? 0
}

function sectionsOf(overview: Overview, view: TopView): readonly Section[] {
  const { replicas, decisions } = overview
  return [
    section('promises', PROMISE_COLUMNS, promiseRows(overview), view, 'no request yet'),
    section('replicas', REPLICA_COLUMNS, replicas, view, 'no replica'),
    section(
      'decisions',
      decisionColumns(overview),
      decisions ?? [],
      view,
      decisions === null ? 'guarded: set SLUICE_ADMIN_TOKEN to see decisions' : 'none yet',
    ),
  ]
}

function section<Row>(
  name: SectionName,
  columns: readonly Column<Row>[],
  all: readonly Row[],
  { sorting, filter }: TopView,
  empty: string,
): Section {
  const sortable = columns.filter(({ sortBy }) => sortBy !== undefined)
  const { column, reversed } = sorting[name]
  const sortedBy = column === undefined ? undefined : sortable[column]
  const rows = sortedRows(
    all.filter((row) => says(columns, row, filter)),
    sortedBy,
    reversed,
  )
  return {
    name,
    rows: Math.max(1, rows.length),
    sortable: sortable.length,
    lines(first, count, width, paint) {
      const shown = rows.slice(first, first + count)
      if (rows.length > 0) return tableLines(columns, shown, width, paint, sortedBy)
      const why = all.length > 0 ? `none of ${all.length} says “${harmless(filter)}”` : empty
      return [paint.dim(name.toUpperCase()), why.slice(0, width)].slice(0, count + 1)
    },
  }
}

/** True when any cell of the row has the text, whatever its case. */
function says<Row>(columns: readonly Column<Row>[], row: Row, filter: string): boolean {
  if (filter === '') return true
  const wanted = filter.toLowerCase()
  return columns.some(({ cell }) => {
    const shown = cell(row)
    return (typeof shown === 'string' ? shown : shown.text).toLowerCase().includes(wanted)
  })
}

/** The section in focus gets all that it needs once each other has a few; then they grow in order. */
function shareRows(sections: readonly Section[], free: number, focus: SectionName): readonly number[] {
  const shares = sections.map(() => 0)
  let left = free
  const grow = (index: number, upTo: number) => {
    const more = Math.max(0, Math.min(upTo - (shares[index] ?? 0), left))
    shares[index] = (shares[index] ?? 0) + more
    left -= more
  }
  const focused = SECTIONS.indexOf(focus)
  grow(focused, Math.min(LEAST_ROWS, sections[focused]?.rows ?? 0))
  sections.forEach(({ rows }, index) => {
    grow(index, Math.min(LEAST_ROWS, rows))
  })
  grow(focused, sections[focused]?.rows ?? 0)
  sections.forEach(({ rows }, index) => {
    grow(index, rows)
  })
  return shares
}

function headLines(overview: Overview): readonly string[] {
  const { mode, configDigest, version, upMs, atMs, unixOriginMs, headline, total, waiting, replicas } =
    overview
  const live = replicas.filter(({ state }) => state === 'live' || state === 'ramping').length
  const inFlight = replicas.reduce((sum, { inFlightRequests }) => sum + inFlightRequests, 0)
  return [
    `sluice ${version}  ${mode}  configuration ${configDigest}  up ${shownSpan(upMs)}  ${shownClock(atMs + unixOriginMs)} UTC`,
    headline,
    [
      `5 min: attained ${shownAttainment(total.attainmentRatio)}`,
      `good ${shownRate(total.goodPerSec)}/s of ${shownRate(total.judgedPerSec)}/s`,
      `not served ${total.unservedRatio === undefined ? NOTHING : shownAttainment(total.unservedRatio)}`,
      `waiting ${shownCount(waiting.requests)} (${shownCount(waiting.tokens)} tokens)`,
      `${live} of ${counted(replicas.length, 'replica')} live`,
      `${shownCount(inFlight)} in flight`,
    ].join(' · '),
  ]
}

function toneOf({ promises, ready }: Overview, paint: Painter): (text: string) => string {
  if (!ready || promises.some(({ state }) => state === 'critical')) return paint.red
  return promises.some(({ state }) => state === 'burning') ? paint.yellow : paint.green
}

function footLine(view: TopView, width: number, paint: Painter, trouble: string | undefined): string {
  if (view.typing) return `filter: ${harmless(view.filter)}_`.slice(0, width)
  const facts = [
    ...(trouble === undefined ? [] : [`OLD: ${harmless(trouble)}`]),
    ...(view.paused ? ['PAUSED'] : []),
    ...(view.filter === '' ? [] : [`filter “${harmless(view.filter)}”`]),
    `${view.focus}: tab next · s sort · r reverse · / filter · space pause · ? keys · q quit`,
  ]
  const line = facts.join(' · ').slice(0, width)
  return trouble === undefined ? paint.dim(line) : paint.red(line)
}

function helpLines(width: number, paint: Painter): readonly string[] {
  return KEYS_HELP.map(([key, does]) => {
    const line = `  ${key.padEnd(10)}${does}`.slice(0, width)
    return `${paint.bold(line.slice(0, 12))}${line.slice(12)}`
  })
}
