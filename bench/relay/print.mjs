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
    `\nAdded TTFT at ${ratePerSec} requests/s, ms (medians of interleaved rounds; wanted of Sluice: p50 < 1, p99 < 3)`,
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
  const direct = peers.find(({ peer }) => peer === 'direct')
  const bases = ['hono-undici', 'haproxy', 'vllm-router']
    .map((name) => peers.find(({ peer }) => peer === name))
    .filter((row) => row !== undefined)
  const times = (row, key) =>
    bases.map((base) => (row[key] === null || base[key] === null ? '–' : (row[key] / base[key]).toFixed(2)))
  const added = (row, key) => (row === direct ? null : row[key] - direct[key])
  console.log(
    `\nRelay, ${streams} streams x ${rounds} x ${tokens} tokens at ${intervalMs} ms, medians of ${passes} interleaved passes, every byte compared. x: times ${bases.map(({ peer }) => peer).join(', ')}. Delays and TTFT in ms; added: less that of direct`,
  )
  table(
    [
      'peer',
      'CPU µs/chunk',
      'x',
      'CPU µs/request 2 KiB',
      'x',
      '64 KiB',
      'x',
      'chunks/s',
      'delay p50',
      'p99',
      'added p50',
      'p99',
      'TTFT p50',
      'added p50',
      'p99',
      'waited',
      'errors',
    ],
    peers.map((row) => [
      row.peer,
      cell(row.usPerChunk, 1),
      times(row, 'usPerChunk').join(' '),
      cell(row.usPerRequest, 0),
      times(row, 'usPerRequest').join(' '),
      cell(row.usPerLargeRequest, 0),
      times(row, 'usPerLargeRequest').join(' '),
      cell(row.chunksPerSec, 0),
      cell(row.delayP50Ms),
      cell(row.delayP99Ms),
      cell(added(row, 'delayP50Ms')),
      cell(added(row, 'delayP99Ms')),
      cell(row.ttftP50Ms),
      cell(added(row, 'ttftP50Ms')),
      cell(added(row, 'ttftP99Ms')),
      row.waitedRatio === null ? '–' : `${(row.waitedRatio * 100).toFixed(0)} %`,
      Object.keys(row.errors).length === 0 ? '0' : JSON.stringify(row.errors),
    ]),
  )
  console.log(
    'A peer that waited for its core more than about 30 % of its CPU time was starved: its row is weak.',
  )
}

export function printMemory({ streams, rows }) {
  console.log(`\nMemory: the most in RAM of a fresh process with ${streams} streams open at once, MiB`)
  table(
    ['peer', 'before', 'peak', 'errors'],
    rows.map(({ peer, idleMib, peakMib, errors }) => [
      peer,
      cell(idleMib, 0),
      cell(peakMib, 0),
      Object.keys(errors).length === 0 ? '0' : JSON.stringify(errors),
    ]),
  )
}
