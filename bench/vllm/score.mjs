/** Judges the requests of a run and sums them up in one row. */
import { meanOf, pairedDifference, quantile } from '../goodput/stats.mjs'
import { plainSlo } from './workload.mjs'

export const ttftMs = (seen) =>
  seen.firstAtMs === undefined ? undefined : seen.firstAtMs - seen.scheduledAtMs
/** Mean gap after the first token; the number of tokens is exact, since the answers' lengths are. */
export const tpotMs = (seen) =>
  seen.firstAtMs === undefined
    ? undefined
    : (seen.lastAtMs - seen.firstAtMs) / Math.max(1, seen.answerTokens - 1)

/** True for what was promised something: `null` stands for no promise, no word for the plain one. */
const isJudged = ({ slo }) => slo !== null

export function isGood(seen, tpotTargetMs) {
  const { ttftMs: baseMs, ttftPer1kTokensMs = 0, tpotMs: paceMs, e2eMs } = seen.slo ?? plainSlo(tpotTargetMs)
  const within = (value, target) => target === undefined || value <= target
  return (
    isJudged(seen) &&
    seen.outcome === 'finished' &&
    within(ttftMs(seen), baseMs && baseMs + (ttftPer1kTokensMs * seen.promptTokens) / 1000) &&
    within(tpotMs(seen), paceMs) &&
    within(seen.lastAtMs - seen.scheduledAtMs, e2eMs)
  )
}

/** Part of each class that was good, by name; empty without classes. */
function goodByClass(all, tpotTargetMs) {
  const names = new Set(all.filter(isJudged).flatMap(({ className }) => className ?? []))
  const ratioOf = (name) => {
    const own = all.filter(({ className }) => className === name)
    return own.filter((seen) => isGood(seen, tpotTargetMs)).length / own.length
  }
  return Object.fromEntries([...names].sort().map((name) => [name, ratioOf(name)]))
}

/** One row of the table: rates over the seconds in which requests arrived, latencies of finished ones in ms. */
export function scoreRun(all, seconds, tpotTargetMs) {
  const count = (outcome) => all.filter((seen) => seen.outcome === outcome).length
  const finished = all.filter((seen) => seen.outcome === 'finished')
  const good = all.filter((seen) => isGood(seen, tpotTargetMs))
  const refused = all.filter((seen) => seen.outcome === 'refused')
  const judged = all.filter(isJudged)
  return {
    offeredPerSec: all.length / seconds,
    goodPerSec: good.length / seconds,
    goodRatio: judged.length === 0 ? 0 : good.length / judged.length,
    goodByClass: goodByClass(all, tpotTargetMs),
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

/** A column for each class of the rows, with the part of it that was good. */
const classColumns = (rows) =>
  Object.keys(rows[0]?.goodByClass ?? {}).map((name) => [
    name,
    (row) => `${(100 * (row.goodByClass?.[name] ?? Number.NaN)).toFixed(0)} %`,
  ])

/** Cells in columns, each as wide as its widest. */
export function aligned(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  return lines.map((line) => line.map((cell, column) => cell.padStart(widths[column])).join('  ')).join('\n')
}

/** The rows as a table in plain text. */
export function formatTable(rows) {
  const columns = [...COLUMNS, ...classColumns(rows)]
  return aligned([
    columns.map(([title]) => title),
    ...rows.map((row) => columns.map(([, show]) => String(show(row)))),
  ])
}

export const shown = ({ mean, halfWidth }) =>
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
