/** The benches' tables. */

const cell = (value, digits = 2) => (value === null || value === undefined ? '–' : value.toFixed(digits))

/** Prints rows of cells under their heads. */
export function table(head, rows) {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((text, column) => text.padEnd(widths[column])).join(' | ')} |`
  console.log([line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n'))
}

export function printTtft({ ratePerSec, rows }) {
  console.log(
    `\nAdded TTFT at ${ratePerSec} requests/s, ms (medians of interleaved rounds; wanted of Sluice: p50 < 1, p99 < 5)`,
  )
  table(
    ['', 'TTFT p50', 'p99', 'added p50', 'p99', 'answers', 'failures'],
    rows.map(({ name, ttftMs, addedP50Ms, addedP99Ms, failures }) => [
      name,
      cell(ttftMs.p50),
      cell(ttftMs.p99),
      name === 'bare' ? '' : cell(addedP50Ms),
      name === 'bare' ? '' : cell(addedP99Ms),
      String(ttftMs.count),
      Object.keys(failures).length === 0 ? '0' : JSON.stringify(failures),
    ]),
  )
}

export function printCpu({ peers, streams, tokens, rounds, intervalMs, passes }) {
  const base = peers.find(({ peer }) => peer === 'hono-undici')
  console.log(
    `\nRelay, ${streams} streams x ${rounds} x ${tokens} tokens at ${intervalMs} ms, medians of ${passes} interleaved passes, every byte compared (wanted: <= 1.25 x hono-undici a chunk)`,
  )
  table(
    [
      'peer',
      'CPU µs/chunk',
      'x hono-undici',
      'CPU µs/request',
      'chunks/s',
      'delay p50',
      'p99 ms',
      'TTFT p50',
      'p99 ms',
      'waited',
      'errors',
    ],
    peers.map((row) => [
      row.peer,
      cell(row.usPerChunk, 1),
      cell(row.usPerChunk === null ? null : row.usPerChunk / base.usPerChunk),
      cell(row.usPerRequest, 0),
      cell(row.chunksPerSec, 0),
      cell(row.delayP50Ms),
      cell(row.delayP99Ms),
      cell(row.ttftP50Ms),
      cell(row.ttftP99Ms),
      row.waitedRatio === null ? '–' : `${(row.waitedRatio * 100).toFixed(0)} %`,
      Object.keys(row.errors).length === 0 ? '0' : JSON.stringify(row.errors),
    ]),
  )
  console.log(
    'A peer that waited for its core more than about 30 % of its CPU time was starved: its row is weak.',
  )
}
