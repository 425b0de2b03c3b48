/** What a viewer of `top` has chosen, and how keys change it. Plain values. */
import type { Key } from './tty.ts'

export const SECTIONS = ['promises', 'replicas', 'decisions'] as const
export type SectionName = (typeof SECTIONS)[number]

export interface Sorting {
  /** Number of the column among those that can be sorted by; undefined: as it comes, the most troubled first. */
  readonly column: number | undefined
  readonly reversed: boolean
}

export interface TopView {
  /** The section that keys go to. */
  readonly focus: SectionName
  readonly sorting: Readonly<Record<SectionName, Sorting>>
  /** First row shown of the section in focus. */
  readonly scrolled: number
  readonly filter: string
  /** The filter is being typed. */
  readonly typing: boolean
  readonly paused: boolean
  readonly helping: boolean
  readonly ended: boolean
}

const AS_IT_COMES: Sorting = { column: undefined, reversed: false }

export const FIRST_VIEW: TopView = {
  focus: 'promises',
  sorting: { promises: AS_IT_COMES, replicas: AS_IT_COMES, decisions: AS_IT_COMES },
  scrolled: 0,
  filter: '',
  typing: false,
  paused: false,
  helping: false,
  ended: false,
}

export const KEYS_HELP: readonly (readonly [key: string, does: string])[] = [
  ['tab', 'the next section'],
  ['s', 'sort it by the next column; after the last as it comes'],
  ['r', 'the other way round'],
  ['/', 'filter by text; enter keeps it, escape takes it away'],
  ['up, down', 'scroll'],
  ['space', 'pause, go on'],
  ['q', 'quit'],
]

/** The view after a key. `columns`: how many columns of the section in focus can be sorted by. */
export function press(view: TopView, key: Key, columns: number): TopView {
  if (key.ctrl === true && key.name === 'c') return { ...view, ended: true }
  if (view.typing) return typed(view, key)
  const sorting = view.sorting[view.focus]
  switch (key.name ?? key.sequence) {
    case 'q':
      return { ...view, ended: true }
    case 'tab':
      return { ...view, focus: after(view.focus), scrolled: 0 }
    case 's':
      return sorted(view, { column: nextColumn(sorting.column, columns), reversed: false })
    case 'r':
      return sorted(view, { ...sorting, reversed: !sorting.reversed })
    case '/':
      return { ...view, typing: true, helping: false }
    case 'escape':
      return { ...view, filter: '', helping: false }
    case 'space':
    case 'p':
      return { ...view, paused: !view.paused }
    case 'down':
    case 'j':
      return { ...view, scrolled: view.scrolled + 1 }
    case 'up':
    case 'k':
      return { ...view, scrolled: Math.max(0, view.scrolled - 1) }
    case '?':
    case 'h':
      return { ...view, helping: !view.helping }
    default:
      return view
  }
}

function typed(view: TopView, { name, sequence = '' }: Key): TopView {
  if (name === 'return' || name === 'enter') return { ...view, typing: false }
  if (name === 'escape') return { ...view, typing: false, filter: '' }
  if (name === 'backspace') return { ...view, filter: view.filter.slice(0, -1) }
  const printable = sequence.length === 1 && !/\p{Cc}/u.test(sequence)
  return printable ? { ...view, filter: view.filter + sequence, scrolled: 0 } : view
}

function after(section: SectionName): SectionName {
  return SECTIONS[(SECTIONS.indexOf(section) + 1) % SECTIONS.length] ?? section
}

function nextColumn(column: number | undefined, columns: number): number | undefined {
  const next = column === undefined ? 0 : column + 1
  return next < columns ? next : undefined
}

function sorted(view: TopView, sorting: Sorting): TopView {
  return { ...view, scrolled: 0, sorting: { ...view.sorting, [view.focus]: sorting } }
}
