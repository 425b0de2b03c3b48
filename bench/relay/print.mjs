/** The benches' tables. */
import { costsBeside } from './ratios.mjs'

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

export function printCpu(measured) {
  const { peers, streams, tokens, rounds, intervalMs, passes } = measured
  const direct = peers.find(({ peer }) => peer === 'direct')
  const added = (row, key) => (row === direct ? null : row[key] - direct[key])
  console.log(
    `\nRelay, ${streams} streams x ${rounds} x ${tokens} tokens at ${intervalMs} ms, medians of ${passes} interleaved passes, every byte compared. Delays and TTFT in ms; added: less that of direct`,
  )
  table(
    [
      'peer',
      'CPU µs/chunk',
      'CPU µs/request 2 KiB',
      '64 KiB',
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
      cell(row.usPerRequest, 0),
      cell(row.usPerLargeRequest, 0),
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
  if (peers.some(({ peer }) => peer === 'sluice')) printRatios(measured)
}

function printRatios({ rows, passes }) {
  const costs = costsBeside('sluice', rows)
  const spread = ({ typical, least, most }, digits) =>
    `${cell(typical, digits)} (${cell(least, digits)} to ${cell(most, digits)})`
  console.log(
    `\nCPU of Sluice, and how many times that of others: by medians of ${passes} passes (least to most of a pass)`,
  )
  table(
    ['work', 'µs', ...costs[0].ratios.map(({ peer }) => `x ${peer}`)],
    costs.map(({ work, us, ratios }) => [work, spread(us, 1), ...ratios.map((ratio) => spread(ratio, 2))]),
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
