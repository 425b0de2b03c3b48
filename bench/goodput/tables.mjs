/** The results as tables in plain text. Every row is printed, whoever wins it. */
import { ARMS, BARE, OURS, shownSetting } from './arms.mjs'
import { meanOf, pairedDifference } from './stats.mjs'

const percent = (ratio) => (100 * ratio).toFixed(1)

/** Cells as lines with columns flush right, the first one flush left. */
export function aligned(lines) {
  const widths = lines[0].map((_, column) =>
    Math.max(...lines.map((line) => String(line[column] ?? '').length)),
  )
  return lines
    .map((line) =>
      widths
        .map((width, column) => {
          const cell = String(line[column] ?? '')
          return column === 0 ? cell.padEnd(width) : cell.padStart(width)
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export const valuesOf = (rows, arm, load, field = 'attained') =>
  rows
    .filter((row) => row.arm === arm && row.load === load)
    .sort((a, b) => a.seed - b.seed)
    .map((row) => row[field])

const loadsOf = (rows) => [...new Set(rows.map(({ load }) => load))].sort((a, b) => a - b)
const armsOf = (rows) => [...new Set(rows.map(({ arm }) => arm))]

/** The rival with the best mean at that load. */
export function bestRival(rows, load) {
  let best
  for (const arm of armsOf(rows)) {
    if (ARMS[arm].kind === 'ours' && arm !== 'scorpio') continue
    const { mean } = meanOf(valuesOf(rows, arm, load))
    if (best === undefined || mean > best.mean) best = { arm, mean }
  }
  return best
}

/** Attainment by arm and load with the interval, and ours against the best rival of each load. */
export function scenarioTable({ scenario, capacity, durationMs, tuned, rows }) {
  const loads = loadsOf(rows)
  const seeds = new Set(rows.map(({ seed }) => seed)).size
  const lines = [['good of offered, %', ...loads.map((load) => `${load}x`), 'setting, tuned on another seed']]
  for (const arm of armsOf(rows)) {
    const cells = loads.map((load) => {
      const { mean, halfWidth } = meanOf(valuesOf(rows, arm, load))
      return `${percent(mean)} ±${percent(halfWidth)}`
    })
    lines.push([arm, ...cells, shownSetting(tuned[arm].setting)])
  }
  const margins = loads.map((load) => marginOf(rows, load))
  lines.push(['ours - best rival', ...margins.map((margin) => margin?.text ?? ''), ''])
  const rate = `1x = ${capacity.ratePerSec.toFixed(1)}/s, saturated ${capacity.saturatedPerSec.toFixed(1)}/s`
  const title = `${scenario.id}: ${scenario.replicas} x ${scenario.profile}, ${scenario.mix}, ${scenario.arrivals}; ${rate}; ${durationMs / 1000} s, ${seeds} seeds`
  return `${title}\n${aligned(lines)}`
}

/** Ours less the best rival at that load, seed by seed. */
export function marginOf(rows, load) {
  const rival = bestRival(rows, load)
  const ours = valuesOf(rows, OURS, load)
  if (rival === undefined || ours.length === 0) return undefined
  const { mean, halfWidth } = pairedDifference(ours, valuesOf(rows, rival.arm, load))
  const sign = mean >= 0 ? '+' : ''
  return { rival: rival.arm, mean, halfWidth, text: `${sign}${percent(mean)} ±${percent(halfWidth)}` }
}

/** By class at one load: good of offered, and of those offered how many were refused. */
export function classTable({ rows }, load, arms) {
  const names = Object.keys(rows[0].classes)
  const lines = [['good of judged by class, %', ...names, 'wasted %', 'shed p50 ms', 'p90']]
  for (const arm of arms) {
    const own = rows.filter((row) => row.arm === arm && row.load === load)
    if (own.length === 0) continue
    const shares = names.map((name) => {
      const sum = (field) => own.reduce((total, row) => total + (row.classes[name]?.[field] ?? 0), 0)
      const judged = sum('good') + sum('bad')
      return judged === 0
        ? `(${percent(1 - sum('shed') / Math.max(1, sum('offered')))} kept)`
        : percent(sum('good') / judged)
    })
    const mean = (field) => meanOf(own.map((row) => row[field] ?? Number.NaN)).mean
    const ms = (field) => (Number.isNaN(mean(field)) ? '-' : mean(field).toFixed(0))
    lines.push([arm, ...shares, percent(mean('wasted')), ms('shedP50Ms'), ms('shedP90Ms')])
  }
  return `at ${load}x\n${aligned(lines)}`
}

export { BARE }
