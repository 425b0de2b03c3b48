/** Robustness, cold start, faults and tenants as tables. */
import { BARE, OURS, shownSetting } from './arms.mjs'
import { armsOf, effortOf, loadsOf, valuesOf } from './grid-tables.mjs'
import { margin, percent, spread } from './layout.mjs'
import { overWorkloads, scoresOf } from './robustness.mjs'
import { jainIndex, meanOf, pairedDifference } from './stats.mjs'

/**
 * One untouched configuration of ours beside the best rival of each workload at its best setting for it; `guarded` is
 * the same beside rivals that borrow our predictions.
 */
export function besideTable(beside, loads, guarded) {
  return {
    title: `Robustness: one untouched Sluice beside the best rival of each workload, mean over ${loads.map((load) => `${load}x`).join(', ')}`,
    head: [
      'workload',
      'Sluice, % good',
      'best rival',
      'ratio',
      'hindsight, % good',
      'its ratio',
      'bound, % good',
      'which rival',
      'its setting for this workload',
      ...(guarded === undefined
        ? []
        : ['guard over our predictions, % good', 'Sluice in times of it', 'its setting']),
    ],
    rows: beside.map(({ workload, own, best, ratios: of, hindsight }, at) => [
      workload,
      spread(meanOf(own)),
      spread(meanOf(best.scores)),
      ratioText(meanOf(of)),
      ...(hindsight === undefined
        ? ['', '', '']
        : [percent(hindsight.attained), hindsight.ratio.toFixed(3), percent(hindsight.bound)]),
      best.arm,
      shownSetting(best.setting),
      ...(guarded === undefined ? [] : guardCells(guarded[at])),
    ]),
    notes: [...ratioNotes(beside, guarded), ...headroomNote(beside)],
  }
}

const guardCells = ({ best, ratios }) => [
  spread(meanOf(best.scores)),
  ratioText(meanOf(ratios)),
  shownSetting(best.setting),
]

const WANTED = 'Wanted: 0.98 and 1.1.'

/** Worst and mean ratio, beside the rivals that exist in the field and beside whoever is best, borrowers and all. */
function ratioNotes(beside, guarded) {
  const meansOf = (list) => list.map(({ ratios }) => meanOf(ratios).mean)
  const told = (means) =>
    `worst ratio ${Math.min(...means).toFixed(3)}, mean ${meanOf(means).mean.toFixed(3)}`
  const field = meansOf(beside)
  if (guarded === undefined) return [`Beside the best rival: ${told(field)}. ${WANTED}`]
  const guard = meansOf(guarded)
  const either = field.map((mean, at) => Math.min(mean, guard[at]))
  return [
    `Beside the best rival that predicts by itself or not at all: ${told(field)}. Beside the guard that borrows our predictions: ${told(guard)}. Beside the better of the two: ${told(either)}. ${WANTED}`,
  ]
}

/** What the ratios could be. */
function headroomNote(beside) {
  const searched = beside.flatMap(({ hindsight }) => hindsight ?? [])
  if (searched.length === 0) return []
  const mean = (field) => meanOf(searched.map((one) => one[field])).mean.toFixed(3)
  const effort = effortOf(searched.flatMap(({ schedules }) => schedules))
  return [
    `Hindsight: the best schedule found with everything known (${effort} a cell), on as many seeds as were searched. The mean ratio would be ${mean('ratio')} with it, and ${mean('mostRatio')} at the certified bound, which no schedule passes.`,
  ]
}

const ratioText = ({ mean, halfWidth }) =>
  Number.isNaN(halfWidth) ? mean.toFixed(3) : `${mean.toFixed(3)} ±${halfWidth.toFixed(3)}`

/**
 * Each arm in times of the best rival of each workload: tuned for each, and with one setting for all; and how far ours
 * is ahead of that, in points of % good, mean over workloads by seed.
 */
export function overallTable(results, overall, beside, loads) {
  const tunedRows = results.flatMap(({ rows }) => rows)
  const cells = ({ worst, mean, at }) => [worst.toFixed(2), at, mean.toFixed(2)]
  const ours = cells(overWorkloads(tunedRows, OURS, beside, loads))
  const rivals = Object.entries(overall).map(([arm, { setting, rows }]) => {
    const tuned = overWorkloads(tunedRows, arm, beside, loads)
    const single = overWorkloads(rows, arm, beside, loads)
    const ahead = margin(
      pairedDifference(
        workloadMeans(results, tunedRows, OURS, loads),
        workloadMeans(results, rows, arm, loads),
      ),
    )
    return { mean: single.mean, line: [arm, ...cells(tuned), ...cells(single), ahead, shownSetting(setting)] }
  })
  rivals.sort((a, b) => b.mean - a.mean)
  return {
    title: 'Robustness: in times of the best rival tuned for each workload (1 = as good as that)',
    head: [
      '',
      'tuned for each: worst',
      'where',
      'mean',
      'one setting for all: worst',
      'where',
      'mean',
      'Sluice ahead of that, points',
      'that setting',
    ],
    rows: [['Sluice', ...ours, ...ours, '', 'untouched'], ...rivals.map(({ line }) => line)],
  }
}

/** Mean score over the workloads, seed by seed. */
function workloadMeans(results, rows, arm, loads) {
  const scores = results.map(({ scenario }) => scoresOf(rows, arm, scenario.id, loads))
  return (scores[0] ?? []).map((_, seed) => meanOf(scores.map((of) => of[seed])).mean)
}

/** Attainment by workload of one setting for all. */
export function overallByWorkload(results, overall, loads) {
  const tunedRows = results.flatMap(({ rows }) => rows)
  const ids = results.map(({ scenario }) => scenario.id)
  const line = (name, rows, arm) => [
    name,
    ...ids.map((id) => percent(meanOf(scoresOf(rows, arm, id, loads)).mean)),
  ]
  return {
    title: 'Robustness: % good by workload, each rival with its one setting for all',
    head: ['', ...ids],
    rows: [
      line('Sluice', tunedRows, OURS),
      line(`${BARE} (bare)`, tunedRows, BARE),
      ...Object.entries(overall).map(([arm, { rows }]) => line(arm, rows, arm)),
    ],
  }
}

/** The first seconds in overload, in times of the steady value; `trials` are the rows of one workload each. */
export function coldTable(trials, { load }) {
  const lineOf = (rows) => {
    const [first, then, steady] = ['first', 'then', 'steady'].map((field) => {
      return meanOf(rows.map((row) => row[field])).mean
    })
    const ratios = [first / steady, then / steady].map((ratio) => ratio.toFixed(2))
    return [rows[0].scenario, rows[0].arm, ...[first, then, steady].map(percent), ...ratios]
  }
  return {
    title: `Cold start: nothing learnt, no profile, straight into ${load}x (where a workload shifts: from its shift)`,
    head: ['workload', 'arm', 'first 10 s, % good', 'then', 'steady', 'first/steady', 'then/steady'],
    rows: trials.flatMap((rows) => armsOf(rows).map((arm) => lineOf(rows.filter((row) => row.arm === arm)))),
    notes: [
      'Wanted: first/steady at least 0.70, then/steady at least 0.95.',
      'Engines that tell nothing: no limit is told, prompt tokens are guessed with a deviation of a fifth, the way there takes 2 ms.',
    ],
  }
}

export function faultTable(trials, { load }) {
  return {
    title: `Faults at ${load}x of the healthy fleet: goodput in times of a healthy fleet as large as what is left`,
    head: ['fault', 'workload', 'arm', 'ratio'],
    rows: trials.map((rows) => [
      rows[0].scenario,
      rows[0].workload,
      rows[0].arm,
      ratioText(meanOf(rows.map(({ ratio }) => ratio))),
    ]),
    notes: [
      'Wanted: at least 0.90. Exactly 1: not one request more or less was good; metrics pages only correct what the ledger knows.',
    ],
  }
}

/** Tenants with requests of unequal cost: what part of them was good, and what tokens each got. */
export function tenantTable({ scenario, rows }, load) {
  const names = Object.keys(rows[0].tenants).sort()
  return {
    title: `${scenario.id}: equal shares and unequal requests at ${load}x, asking ${(scenario.asking ?? [1]).join(' : ')}`,
    head: ['good of judged, %', ...names, 'all', 'Jain index', 'of tokens'],
    rows: armsOf(rows).map((arm) => {
      const own = rows.filter((row) => row.arm === arm && row.load === load)
      const sum = (name, field) => own.reduce((total, row) => total + row.tenants[name][field], 0)
      const shares = names.map((name) => sum(name, 'good') / sum(name, 'judged'))
      const tokens = names.map((name) => sum(name, 'tokens'))
      const all = spread(meanOf(own.map(({ attained }) => attained)))
      return [arm, ...shares.map(percent), all, jainIndex(shares).toFixed(3), jainIndex(tokens).toFixed(3)]
    }),
    notes: [
      'Wanted: a Jain index of at least 0.95 where all ask for as much; all good of who asks for less than its share.',
      'Tokens: a prompt token counts 1, an output token 2.',
    ],
  }
}

/** That arm beside the better of some rivals at each load of each workload. */
export function untrustedTable(results, arm, rivals) {
  const rows = results.flatMap(({ scenario, rows: of, tuned }) =>
    loadsOf(of).map((load) => {
      const means = armsOf(of).map((name) => meanOf(valuesOf(of, name, load)))
      const scored = rivals.map((rival) => ({ rival, values: valuesOf(of, rival, load) }))
      const best = scored.reduce((one, other) =>
        meanOf(other.values).mean > meanOf(one.values).mean ? other : one,
      )
      const lead = margin(pairedDifference(valuesOf(of, arm, load), best.values))
      return [
        scenario.workload,
        `${load}x`,
        ...means.map(spread),
        lead,
        shownSetting(tuned[best.rival].setting),
      ]
    }),
  )
  return {
    title: `While no prediction is believed: ${arm} beside limits that go by what is seen, each tuned`,
    head: [
      'good of offered, %',
      'load',
      ...armsOf(results[0]?.rows ?? []),
      'difference to the better',
      'its setting',
    ],
    rows,
  }
}
