/** Judges the requests of a run and sums them up in one row. */
import { meanOf, pairedDifference } from '../goodput/stats.mjs'

/** TTFT counts from the scheduled arrival; the target grows with the prompt. All in ms. */
export const TTFT_BASE_MS = 800
export const TTFT_PER_1K_TOKENS_MS = 2000

export const ttftMs = (seen) =>
  seen.firstAtMs === undefined ? undefined : seen.firstAtMs - seen.scheduledAtMs
/** Mean gap after the first token; the number of tokens is exact, since the answers' lengths are. */
export const tpotMs = (seen) =>
  seen.firstAtMs === undefined
    ? undefined
    : (seen.lastAtMs - seen.firstAtMs) / Math.max(1, seen.answerTokens - 1)

export function isGood(seen, tpotTargetMs) {
  const targetMs = TTFT_BASE_MS + (TTFT_PER_1K_TOKENS_MS * seen.promptTokens) / 1000
  return seen.outcome === 'finished' && ttftMs(seen) <= targetMs && tpotMs(seen) <= tpotTargetMs
}

function quantile(values, share) {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b)
  return sorted.length === 0
    ? undefined
    : sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}

/** One row of the table: rates over the seconds in which requests arrived, latencies of finished ones in ms. */
export function scoreRun(all, seconds, tpotTargetMs) {
  const count = (outcome) => all.filter((seen) => seen.outcome === outcome).length
  const finished = all.filter((seen) => seen.outcome === 'finished')
  const good = all.filter((seen) => isGood(seen, tpotTargetMs))
  const refused = all.filter((seen) => seen.outcome === 'refused')
  return {
    offeredPerSec: all.length / seconds,
    goodPerSec: good.length / seconds,
    goodRatio: all.length === 0 ? 0 : good.length / all.length,
    finishedPerSec: finished.length / seconds,
    goodPromptTokensPerSec: good.reduce((sum, seen) => sum + seen.promptTokens, 0) / seconds,
    refused: refused.length,
    broken: count('broken'),
    unfinished: count('unfinished'),
    ttftP50Ms: quantile(finished.map(ttftMs), 0.5),
    ttftP90Ms: quantile(finished.map(ttftMs), 0.9),
    tpotP50Ms: quantile(finished.map(tpotMs), 0.5),
    tpotP90Ms: quantile(finished.map(tpotMs), 0.9),
    refusalP50Ms: quantile(
      refused.map((seen) => seen.endedAtMs - seen.scheduledAtMs),
      0.5,
    ),
  }
}

const COLUMNS = [
  ['load', (row) => `${row.load}x`],
  ['setting', (row) => row.arm],
  ['offered/s', (row) => row.offeredPerSec.toFixed(1)],
  ['good/s', (row) => row.goodPerSec.toFixed(1)],
  ['good', (row) => `${(100 * row.goodRatio).toFixed(0)} %`],
  ['finished/s', (row) => row.finishedPerSec.toFixed(1)],
  ['refused', (row) => row.refused],
  ['broken', (row) => row.broken],
  ['left', (row) => row.unfinished],
  ['TTFT p50 s', (row) => ((row.ttftP50Ms ?? Number.NaN) / 1000).toFixed(2)],
  ['p90', (row) => ((row.ttftP90Ms ?? Number.NaN) / 1000).toFixed(2)],
  ['TPOT p50 ms', (row) => (row.tpotP50Ms ?? Number.NaN).toFixed(0)],
  ['p90', (row) => (row.tpotP90Ms ?? Number.NaN).toFixed(0)],
  ['refusal p50 ms', (row) => (row.refusalP50Ms ?? Number.NaN).toFixed(0)],
]

/** Cells in columns, each as wide as its widest. */
function aligned(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  return lines.map((line) => line.map((cell, column) => cell.padStart(widths[column])).join('  ')).join('\n')
}

/** The rows as a table in plain text. */
export function formatTable(rows) {
  return aligned([
    COLUMNS.map(([title]) => title),
    ...rows.map((row) => COLUMNS.map(([, show]) => String(show(row)))),
  ])
}

const shown = ({ mean, halfWidth }) =>
  `${mean.toFixed(1)}${Number.isNaN(halfWidth) ? '' : ` ±${halfWidth.toFixed(1)}`}`

/** Good requests a second of each setting over the rounds, and its difference to `ours` on the same arrivals. */
export function formatMeans(rows, ours = 'sluice') {
  const of = (load, arm) =>
    rows.filter((row) => row.load === load && row.arm === arm).map((row) => row.goodPerSec)
  const lines = [['load', 'setting', 'good/s', `${ours} is ahead by`]]
  for (const load of new Set(rows.map((row) => row.load))) {
    const own = of(load, ours)
    for (const arm of new Set(rows.map((row) => row.arm))) {
      const values = of(load, arm)
      const ahead = arm === ours || own.length === 0 ? '' : shown(pairedDifference(own, values))
      lines.push([`${load}x`, arm, shown(meanOf(values)), ahead])
    }
  }
  return aligned(lines)
}
