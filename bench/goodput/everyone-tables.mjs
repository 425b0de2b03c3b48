/** Everyone beside ours: rivals and ours without a part each, on one scenario, and what each part is worth by workload. */
import { armOf, OURS, shownSetting } from './arms.mjs'
import { armsOf, classShares, effortOf, foundBest, loadsOf, titleOf, valuesOf } from './grid-tables.mjs'
import { margin, percent, spread } from './layout.mjs'
import { meanOf, pairedDifference } from './stats.mjs'

/** An arm less ours at that load, seed by seed: below 0 it is worse. */
const behindOurs = (rows, arm, load) =>
  pairedDifference(valuesOf(rows, arm, load), valuesOf(rows, OURS, load))

/** Rounding makes differences of equal runs up to this. */
const ROUNDING_RATIO = 1e-9
/** A fall of that much is no noise, whatever the interval. */
const WORTH_RATIO = 0.003
const isClear = ({ mean, halfWidth }) => Math.abs(mean) > Math.max(halfWidth, ROUNDING_RATIO)

/**
 * Every arm of a scenario: ours, ours knowing more, rivals from the best down, then parts from the dearest down; last
 * what hindsight would have reached, where it was searched.
 */
export function everyoneTable(result, parts) {
  const { rows, tuned } = result
  const loads = loadsOf(rows)
  const topLoad = Math.max(...loads)
  const line = (arm) => [
    arm,
    armOf(arm).about,
    ...loads.flatMap((load) => [
      spread(meanOf(valuesOf(rows, arm, load))),
      arm === OURS ? '' : margin(behindOurs(rows, arm, load)),
    ]),
    percent(lowestClass(rows, arm, topLoad)),
    shownSetting(tuned[arm].setting),
    tuned[arm].tried || '',
  ]
  return {
    title: `Everyone on ${titleOf(result)}`,
    head: [
      '',
      'what it is',
      ...loads.flatMap((load) => [`${load}x, % good`, 'less ours']),
      `lowest class at ${topLoad}x`,
      'setting, tuned on another seed',
      'of so many tried',
    ],
    rows: [...inOrder(rows, topLoad, parts).map(line), ...hindsightRows(result, loads)],
    notes: partNotes(loads, (arm, load) => behindOurs(rows, arm, load), parts, `on ${result.scenario.id}`),
  }
}

/** On the seeds that were searched; less ours on the same seeds. */
function hindsightRows({ rows, schedules = [], bounds = [] }, loads) {
  const row = (name, about, cells, reached) => [
    name,
    about,
    ...loads.flatMap((load) => {
      const at = cells.filter((cell) => cell.load === load)
      if (at.length === 0) return ['', '']
      const ours = at.map(
        ({ seed }) =>
          valuesOf(
            rows.filter((one) => one.seed === seed),
            OURS,
            load,
          )[0],
      )
      const values = at.map(reached)
      return [spread(meanOf(values)), margin(pairedDifference(values, ours))]
    }),
    '',
    '',
    '',
  ]
  if (schedules.length === 0) return []
  return [
    row(
      '(hindsight)',
      `the best schedule found with everything known (${effortOf(schedules)})`,
      schedules,
      (cell) => foundBest(rows, cell),
    ),
    row('(bound)', 'certified: no schedule passes it', bounds, ({ bound }) => bound),
  ]
}

function inOrder(rows, load, parts) {
  const meanAt = (arm) => meanOf(valuesOf(rows, arm, load)).mean
  const arms = armsOf(rows).filter((arm) => arm !== OURS)
  const rivals = arms.filter((arm) => armOf(arm).kind === 'rival').sort((a, b) => meanAt(b) - meanAt(a))
  const without = arms.filter((arm) => parts.includes(arm)).sort((a, b) => meanAt(a) - meanAt(b))
  const knowing = arms.filter((arm) => !rivals.includes(arm) && !parts.includes(arm))
  return [OURS, ...knowing, ...rivals, ...without]
}

function lowestClass(rows, arm, load) {
  const own = rows.filter((row) => row.arm === arm && row.load === load)
  const judged = classShares(own).filter(({ isJudged }) => isJudged)
  return Math.min(...judged.map(({ share }) => share))
}

/** Which parts are worth nothing there, and which cost something: `differenceOf(arm, case)` is without less with. */
function partNotes(cases, differenceOf, parts, where) {
  const all = (arm) => cases.map((one) => differenceOf(arm, one)).filter(({ mean }) => !Number.isNaN(mean))
  const shown = parts.filter((arm) => all(arm).length > 0)
  if (shown.length === 0) return []
  const isWorse = (one) => one.mean < 0 && (isClear(one) || one.mean <= -WORTH_RATIO)
  const isBetter = (one) => one.mean > 0 && isClear(one)
  const told = (names) => (names.length === 0 ? 'none' : names.join(', '))
  const idle = told(shown.filter((arm) => !all(arm).some(isWorse)))
  const better = told(shown.filter((arm) => all(arm).some(isBetter)))
  const least = (100 * WORTH_RATIO).toFixed(1)
  return [
    `Parts without which nothing falls ${where}, neither clearly nor by ${least} points: ${idle}. Clearly better somewhere without: ${better}. Shares and floors are for tenants and classes that would get nothing, not for the sum.`,
  ]
}

/** Ours without a part each, less ours, by workload at one load; the part that is missed most in the mean first. */
export function ablationTable(results, parts, load) {
  const differenceOf = (arm, { rows }) => behindOurs(rows, arm, load)
  const meanOver = (arm) => {
    const bySeed = results.map(({ rows }) => [valuesOf(rows, arm, load), valuesOf(rows, OURS, load)])
    const seeds = bySeed[0][0].map((_, seed) => bySeed.map(([without, ours]) => without[seed] - ours[seed]))
    return meanOf(seeds.map((differences) => meanOf(differences).mean))
  }
  const rows = parts.map((arm) => ({
    mean: meanOver(arm).mean,
    line: [
      arm,
      armOf(arm).about,
      margin(meanOver(arm)),
      ...results.map((result) => margin(differenceOf(arm, result))),
    ],
  }))
  rows.sort((a, b) => a.mean - b.mean)
  const ours = results.map(({ rows: of }) => meanOf(valuesOf(of, OURS, load)))
  return {
    title: `Ours without a part each at ${load}x, less ours: points of % good, by workload`,
    head: ['', 'what it is', 'mean', ...results.map(({ scenario }) => scenario.id)],
    rows: [
      [OURS, '% good', percent(meanOf(ours.map(({ mean }) => mean)).mean), ...ours.map(spread)],
      ...rows.map(({ line }) => line),
    ],
    notes: partNotes(results, differenceOf, parts, 'on any workload'),
  }
}
