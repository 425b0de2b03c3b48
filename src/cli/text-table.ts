/** Lays rows out in columns for a terminal of a given width; columns that don't fit are left out, the least important first. */
import type pc from 'picocolors'

export type Painter = ReturnType<typeof pc.createColors>

/** How a cell stands: it is coloured by that, and says the same in words. */
export type CellTone = 'plain' | 'soft' | 'warn' | 'bad'

export interface Cell {
  readonly text: string
  readonly tone?: CellTone
}

export interface Column<Row> {
  readonly head: string
  readonly align?: 'right'
  /** Kept longer than columns with a lower one when room is short. */
  readonly importance: number
  /** Takes what room is left, and is cut to it. */
  readonly stretches?: true
  readonly cell: (row: Row) => string | Cell
  /** What rows are sorted by; a column without it can't be. */
  readonly sortBy?: (row: Row) => number | string
}

const GAP = '  '
/** A stretching column is not worth having below this. */
const LEAST_STRETCHED = 40

/** The head and a line for each row, none longer than `width`. */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
  paint: Painter,
  sortedBy?: Column<Row>,
): readonly string[] {
  const cells = rows.map((row) => new Map(columns.map((column) => [column, cellOf(column, row)])))
  const widthOf = (column: Column<Row>) =>
    Math.max(column.head.length, ...cells.map((line) => line.get(column)?.text.length ?? 0))
  const shown = fitting(columns, widthOf, width)
  const used = shown.reduce((sum, column) => sum + (column.stretches ? 0 : widthOf(column)) + GAP.length, 0)
  const room = (column: Column<Row>) =>
    Math.min(width, column.stretches ? width - used + GAP.length : widthOf(column))
  const head = shown.map((column) => {
    const text = padded(column.head, room(column), column.align)
    return column === sortedBy ? paint.underline(text) : text
  })
  return [
    paint.dim(head.join(GAP).trimEnd()),
    ...cells.map((line) =>
      shown
        .map((column) => {
          const { text, tone } = line.get(column) ?? { text: '' }
          return toned(padded(text, room(column), column.align), tone, paint)
        })
        .join(GAP)
        .trimEnd(),
    ),
  ]
}

/** Rows by a column, the highest number or the first word first. */
export function sortedRows<Row>(
  rows: readonly Row[],
  column: Column<Row> | undefined,
  reversed: boolean,
): readonly Row[] {
  const sortBy = column?.sortBy
  const sorted = sortBy === undefined ? [...rows] : [...rows].sort((a, b) => compare(sortBy(a), sortBy(b)))
  return reversed ? sorted.reverse() : sorted
}

/** Text from outside on one line, without anything that a terminal obeys. */
export function harmless(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ')
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return b - a
  return String(a) < String(b) ? -1 : 1
}

function cellOf<Row>(column: Column<Row>, row: Row): Cell {
  const cell = column.cell(row)
  const { text, ...rest } = typeof cell === 'string' ? { text: cell } : cell
  return { text: harmless(text), ...rest }
}

/** As many columns as fit, dropping from the least important. */
function fitting<Row>(
  columns: readonly Column<Row>[],
  widthOf: (column: Column<Row>) => number,
  width: number,
): readonly Column<Row>[] {
  const least = (column: Column<Row>) =>
    column.stretches ? Math.min(LEAST_STRETCHED, widthOf(column)) : widthOf(column)
  let shown = [...columns]
  const total = () => shown.reduce((sum, column) => sum + least(column) + GAP.length, -GAP.length)
  while (shown.length > 1 && total() > width) {
    const dropped = shown.reduce((low, column) => (column.importance < low.importance ? column : low))
    shown = shown.filter((column) => column !== dropped)
  }
  return shown
}

function padded(text: string, width: number, align: 'right' | undefined): string {
  const cut = text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
  return align === 'right' ? cut.padStart(width) : cut.padEnd(width)
}

function toned(text: string, tone: CellTone | undefined, paint: Painter): string {
  if (tone === 'bad') return paint.red(text)
  if (tone === 'warn') return paint.yellow(text)
  return tone === 'soft' ? paint.dim(text) : text
}
