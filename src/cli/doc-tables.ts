/** Tables for docs out of the one place where each fact stands: keys out of the schema, errors out of their table. */
import { type KeyRow, keyRows } from '../config/json-schema.ts'
import { ERROR_TABLE, type ErrorRow } from '../errors.ts'
import { ruleGroups } from '../exports/prometheus.ts'
import { DEFAULT_RULE_OPTIONS, isAlert, runbookAnchor } from '../exports/rule.ts'

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
  soon: 'after `retry-after`, a second or two',
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

/** Every alert with what it says, the severest first. */
export function alertTable(): string {
  const alerts = ruleGroups(DEFAULT_RULE_OPTIONS).flatMap(({ rules }) => rules.filter(isAlert))
  const lines = [...alerts]
    .sort((a, b) => a.labels.severity.localeCompare(b.labels.severity))
    .map(({ alert, labels, annotations, for: holds }) => [
      `[${alert}](runbook.md#${runbookAnchor(alert)})`,
      labels.severity,
      holds ?? 'at once',
      plainText(annotations.description),
    ])
  return markdownTable(['alert', 'severity', 'after', 'says'], lines)
}

/** An annotation with the names of labels in place of their values. */
function plainText(template: string): string {
  const text = template.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, 'the $1')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** A Markdown table that ends with a line break; bars in cells are escaped. */
function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('')
}
