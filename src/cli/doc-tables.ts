/** Tables for docs out of the one place where each fact stands: keys out of the schema, errors out of their table. */
import { type KeyRow, keyRows } from '../config/json-schema.ts'
import { ERROR_TABLE, type ErrorRow } from '../errors.ts'

/** All keys: one table of the top level, then one per key that holds others. */
export function keyTables(): string {
  const rows = keyRows()
  const top = rows.filter(({ path }) => !path.includes('.') && !path.includes('['))
  const sections = top.flatMap((row) => {
    const inner = rows.filter(
      ({ path }) => path.startsWith(`${row.path}.`) || path.startsWith(`${row.path}[]`),
    )
    return inner.length === 0 ? [] : [`### \`${row.path}\`\n\n${row.description}\n\n${keyTable(inner)}`]
  })
  return [`### Top level\n\n${keyTable(top)}`, ...sections].join('\n')
}

function keyTable(rows: readonly KeyRow[]): string {
  const lines = rows.map((row) => [
    `\`${row.path}\``,
    row.kind,
    row.required ? '**required**' : row.defaultText ? code(row.defaultText) : '',
    row.description,
  ])
  return markdownTable(['key', 'kind', 'default', 'meaning'], lines)
}

const code = (text: string): string => (text === 'see below' ? text : `\`${text}\``)

const RETRY_TEXT: Readonly<Record<ErrorRow['retry'], string>> = {
  computed: 'after `retry-after`, computed',
  soon: 'at once or after a second',
  never: 'no',
}

/** Every reason for a refusal, by status. */
export function errorTable(): string {
  const rows: [string, ErrorRow][] = Object.entries(ERROR_TABLE)
  const lines = rows
    .sort(([, a], [, b]) => a.status - b.status)
    .map(([reason, row]) => [
      `\`${reason}\``,
      String(row.status),
      RETRY_TEXT[row.retry],
      `\`${row.type}\``,
      row.meaning,
    ])
  return markdownTable(['reason', 'status', 'retry', 'type', 'meaning'], lines)
}

/** A Markdown table that ends with a line break; bars in cells are escaped. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('')
}
