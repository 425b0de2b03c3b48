/** Tables as values, `{ title, head, rows, notes }`, written as plain text or as Markdown. */

/** Columns flush right, the first one flush left; title above, notes below. */
export function asText({ title, head, rows, notes = [] }) {
  const lines = [head, ...rows].map((line) => line.map((cell) => String(cell ?? '')))
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const pad = (cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))
  const body = lines.map((line) => line.map(pad).join('  ').trimEnd())
  return [title, ...body, ...notes].join('\n')
}

export function asMarkdown({ title, head, rows, notes = [] }) {
  const line = (cells) => `| ${cells.map((cell) => String(cell ?? '').replaceAll('|', '\\|')).join(' | ')} |`
  const rule = `|${head.map((_, column) => (column === 0 ? '---|' : '---:|')).join('')}`
  return [
    `**${title}**`,
    '',
    line(head),
    rule,
    ...rows.map(line),
    ...notes.flatMap((note) => ['', note]),
  ].join('\n')
}

export const percent = (ratio) =>
  ratio === undefined || Number.isNaN(ratio) ? '–' : (100 * ratio).toFixed(1)

/** A mean with its interval, in per cent. */
export const spread = ({ mean, halfWidth }) =>
  Number.isNaN(halfWidth) ? percent(mean) : `${percent(mean)} ±${percent(halfWidth)}`

/** The same with its sign. */
export const margin = (difference) => `${difference.mean >= 0 ? '+' : ''}${spread(difference)}`

export const milliseconds = (ms) => (ms === undefined || Number.isNaN(ms) ? '–' : ms.toFixed(0))
