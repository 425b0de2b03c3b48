/** The grid as tables: arms over loads, classes, losses. Every row is shown, whoever wins it. */
import { armOf, BARE, OURS, shownSetting } from './arms.mjs'
import { margin, milliseconds, percent, spread } from './layout.mjs'
import { describe } from './scenarios.mjs'
import { jainIndex, meanOf, pairedDifference } from './stats.mjs'

export const valuesOf = (rows, arm, load, field = 'attained') =>
  rows
    .filter((row) => row.arm === arm && row.load === load)
    .sort((a, b) => a.seed - b.seed)
    .map((row) => row[field])

export const loadsOf = (rows) => [...new Set(rows.map(({ load }) => load))].sort((a, b) => a - b)
export const armsOf = (rows) => [...new Set(rows.map(({ arm }) => arm))]

const isRival = (arm) => armOf(arm).kind === 'rival'

/** The rival with the best mean at that load. */
export function bestRival(rows, load) {
  const scored = armsOf(rows)
    .filter(isRival)
    .map((arm) => ({ arm, mean: meanOf(valuesOf(rows, arm, load)).mean }))
  return scored.length === 0
    ? undefined
    : scored.reduce((one, other) => (other.mean > one.mean ? other : one))
}

/** Ours less that arm at that load, seed by seed. */
function leadOver(rows, arm, load) {
  const ours = valuesOf(rows, OURS, load)
  const theirs = valuesOf(rows, arm, load)
  return ours.length === 0 || theirs.length === 0 ? undefined : pairedDifference(ours, theirs)
}

/** What a scenario is, at which rate, for how long and how often. */
export function titleOf({ scenario, capacity, durationMs, rows }) {
  const seeds = new Set(rows.map(({ seed }) => seed)).size
  const { traceRequests } = capacity
  const length =
    traceRequests === undefined ? `${durationMs / 1000} s` : `${traceRequests.toFixed(0)} requests`
  const rate = `1x = ${capacity.ratePerSec.toFixed(1)}/s (saturated: ${capacity.saturatedPerSec.toFixed(1)}/s)`
  return `${scenario.id}: ${scenario.replicas} x ${scenario.profile}, ${describe(scenario)}; ${rate}; ${length}, ${seeds} seeds`
}

/** Attainment by arm and load with the interval, and ours against the best rival of each load. */
export function scenarioTable(result) {
  const { tuned, rows, carried = {} } = result
  const loads = loadsOf(rows)
  const cells = (of) => loads.map((load) => of(load) ?? '')
  const attainedBy = (arm) => cells((load) => spread(meanOf(valuesOf(rows, arm, load))))
  const lead = (load) => {
    const rival = bestRival(rows, load)
    const difference = rival === undefined ? undefined : leadOver(rows, rival.arm, load)
    return difference === undefined ? undefined : margin(difference)
  }
  const shown = [
    ...armsOf(rows).map((arm) => [
      arm,
      ...attainedBy(arm),
      carried[arm] === undefined ? '' : `${carried[arm].toFixed(2)}x`,
      shownSetting(tuned[arm].setting),
    ]),
    ['ours - best rival', ...cells(lead), '', ''],
    ['best rival', ...cells((load) => bestRival(rows, load)?.arm), '', ''],
    ...hindsightRows(result, cells),
  ]
  return {
    title: titleOf(result),
    head: [
      'good of offered, %',
      ...loads.map((load) => `${load}x`),
      '90 % good up to',
      'setting, tuned on another seed',
    ],
    rows: shown,
  }
}

function hindsightRows({ rows, bounds = [], schedules = [] }, cells) {
  const at = (list, load) => list.filter((one) => one.load === load)
  const lines = []
  if (schedules.length > 0) {
    const best = (load) => at(schedules, load).map((one) => foundBest(rows, one))
    lines.push([
      `best schedule found in hindsight (${effortOf(schedules)})`,
      ...cells((load) => (best(load).length === 0 ? undefined : spread(meanOf(best(load))))),
      '',
      '',
    ])
    lines.push(['ours, % of it', ...cells((load) => ratioToBest(rows, schedules, load)), '', ''])
  }
  if (bounds.length > 0) {
    const bound = (load) => meanOf(at(bounds, load).map((one) => one.bound)).mean
    lines.push([
      'certified bound of any schedule (U2)',
      ...cells((load) => (at(bounds, load).length === 0 ? undefined : percent(bound(load)))),
      '',
      '',
    ])
  }
  return lines
}

/** How hard was looked in these cells, e.g. `5 starts, 7 to 9 moves`. */
export function effortOf(schedules) {
  const told = ['starts', 'moves'].map((what) => {
    const counts = schedules.map((one) => one[what])
    const [least, most] = [Math.min(...counts), Math.max(...counts)]
    return `${least === most ? '' : `${least} to `}${most} ${what}`
  })
  return told.join(', ')
}

/** What any run of that cell reached, the search or an arm. */
export function foundBest(rows, { load, seed, attained }) {
  const reached = rows.filter((row) => row.load === load && row.seed === seed).map((row) => row.attained)
  return Math.max(attained, ...reached)
}

export function ratioToBest(rows, schedules, load) {
  const found = schedules.filter((one) => one.load === load)
  if (found.length === 0) return undefined
  const ratios = found.map((one) => {
    const own = rows.find((row) => row.arm === OURS && row.load === load && row.seed === one.seed)
    return own === undefined ? Number.NaN : own.attained / foundBest(rows, one)
  })
  return spread(meanOf(ratios))
}

/** Where a rival, or the bare fleet, is better than ours by the mean; the worst first. */
export function lossesTable(results) {
  const losses = results.flatMap(({ scenario, rows }) =>
    loadsOf(rows).flatMap((load) => {
      const rival = bestRival(rows, load)
      const lead = rival === undefined ? undefined : leadOver(rows, rival.arm, load)
      if (lead === undefined || !(lead.mean < 0)) return []
      const [ours, theirs] = [OURS, rival.arm].map((arm) => spread(meanOf(valuesOf(rows, arm, load))))
      const clear = lead.mean + lead.halfWidth < 0 ? 'yes' : 'within the interval'
      return [{ lead, line: [scenario.id, `${load}x`, ours, theirs, rival.arm, margin(lead), clear] }]
    }),
  )
  losses.sort((a, b) => a.lead.mean - b.lead.mean)
  const cells = results.reduce((sum, { rows }) => sum + loadsOf(rows).length, 0)
  return {
    title: `Losses: ${losses.length} of ${cells} cells, the worst first`,
    head: ['scenario', 'load', 'ours, % good', 'best rival', 'which', 'difference', 'clear'],
    rows: losses.map(({ line }) => line),
  }
}

/** By class at one load: good of judged; of classes without targets how many were served. And what it cost. */
export function classTable({ scenario, rows }, load) {
  const names = classNames(rows)
  const lines = armsOf(rows).flatMap((arm) => {
    const own = rows.filter((row) => row.arm === arm && row.load === load)
    if (own.length === 0) return []
    const shares = classShares(own, names)
    const judged = shares.filter(({ isJudged }) => isJudged).map(({ share }) => share)
    const mean = (field) => meanOf(own.map((row) => row[field] ?? Number.NaN)).mean
    return [
      [
        arm,
        ...shares.map(({ share, isJudged }) => (isJudged ? percent(share) : `(${percent(share)} served)`)),
        percent(Math.min(...judged)),
        jainIndex(judged).toFixed(3),
        percent(mean('wasted')),
        milliseconds(mean('shedP50Ms')),
        milliseconds(mean('shedP90Ms')),
        percent(mean('shedP90OfTarget')),
      ],
    ]
  })
  return {
    title: `${scenario.id} at ${load}x by class`,
    head: [
      'good of judged, %',
      ...names,
      'lowest class',
      'Jain index',
      'engine time wasted, %',
      'shed p50, ms',
      'p90, ms',
      'p90, % of TTFT target',
    ],
    rows: lines,
  }
}

const classNames = (rows) => [...new Set(rows.flatMap((row) => Object.keys(row.classes)))].sort()

/** By class the share of these rows' requests that were good, or, where nothing is judged, served. */
export const classShares = (own, names = classNames(own)) => names.map((name) => classShare(own, name))

function classShare(own, name) {
  const sum = (field) => own.reduce((total, row) => total + (row.classes[name]?.[field] ?? 0), 0)
  const judged = sum('judged')
  if (judged > 0) return { share: sum('good') / judged, isJudged: true }
  return { share: 1 - sum('shed') / Math.max(1, sum('offered')), isJudged: false }
}

/** The core in short, for a page: bare, best rival, ours, the best schedule found and the bound. */
export function shortTable(results, loads) {
  const lines = results.flatMap((result) => {
    const { scenario, rows, schedules = [], bounds = [] } = result
    const shown = loads.filter((load) => loadsOf(rows).includes(load))
    const attained = (arm, load) => percent(meanOf(valuesOf(rows, arm, load)).mean)
    const cells = (of) => loads.map((load) => (shown.includes(load) ? (of(load) ?? '') : ''))
    const best = (load) => {
      const rival = bestRival(rows, load)
      return rival === undefined ? undefined : `${percent(rival.mean)} (${rival.arm})`
    }
    const bound = (load) => {
      const own = bounds.filter((one) => one.load === load).map((one) => one.bound)
      return own.length === 0 ? undefined : percent(meanOf(own).mean)
    }
    return [
      [`**${scenario.id}**, bare`, ...cells((load) => attained(BARE, load))],
      ['best tuned rival of that load', ...cells(best)],
      ['Sluice', ...cells((load) => `**${attained(OURS, load)}**`)],
      [
        'Sluice, % of the best schedule found in hindsight',
        ...cells((load) => ratioToBest(rows, schedules, load)),
      ],
      ['certified bound of any schedule', ...cells(bound)],
    ]
  })
  return {
    title: 'Good of offered requests in %, by load in times of what the bare fleet carries with 90 % good',
    head: ['', ...loads.map((load) => `${load}x`)],
    rows: lines,
  }
}
