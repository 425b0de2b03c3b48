/** One setting over many workloads: ours, which has none, beside each rival at its best per workload and overall. */
import { armOf } from './arms.mjs'
import { runArm, trainingScore } from './grid.mjs'
import { foundBest } from './grid-tables.mjs'
import { tune } from './tune.mjs'

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length

/**
 * The arm's single best setting over all workloads: the one with the best mean of its training score over that of the
 * arm's own best setting for each workload. Begins with each workload's own, then walks the axes `plan.overallRounds`
 * times. `results` are those of runScenario.
 */
async function tuneOverall(pool, results, arm, plan) {
  const scoreOf = async (setting) => {
    const ratios = results.map(async (result) => {
      const score = await trainingScore(pool, result, arm, setting, plan)
      return score / result.tuned[arm].score
    })
    return mean(await Promise.all(ratios))
  }
  const starts = new Map(results.map(({ tuned }) => [JSON.stringify(tuned[arm].setting), tuned[arm].setting]))
  const scored = await Promise.all(
    [...starts.values()].map(async (setting) => ({ setting, score: await scoreOf(setting) })),
  )
  const best = scored.reduce((one, other) => (other.score > one.score ? other : one))
  const { axes } = armOf(arm)
  return (await tune({ axes, start: best.setting }, scoreOf, plan.overallRounds)).setting
}

/** Rows of that arm at its single best setting over all workloads: `{ setting, rows }`; none to tune, none to choose. */
export async function runOverall(pool, results, arm, plan) {
  if (armOf(arm).axes === undefined) {
    return { setting: {}, rows: results.flatMap(({ rows }) => rows.filter((row) => row.arm === arm)) }
  }
  const setting = await tuneOverall(pool, results, arm, plan)
  const rows = await Promise.all(results.map((opened) => runArm(pool, opened, arm, setting, plan)))
  return { setting, rows: rows.flat() }
}

/** Mean attainment over those loads, seed by seed. */
export function scoresOf(rows, arm, scenario, loads) {
  const own = rows.filter((row) => row.arm === arm && row.scenario === scenario && loads.includes(row.load))
  const seeds = [...new Set(own.map(({ seed }) => seed))].sort((a, b) => a - b)
  return seeds.map((seed) => mean(own.filter((row) => row.seed === seed).map(({ attained }) => attained)))
}

/** By workload: ours, the best rival tuned for it, the ratio of the two by seed, and what hindsight reached. */
export function besideBest(results, ours, rivals, loads) {
  return results.map((result) => {
    const { scenario, rows, tuned } = result
    const own = scoresOf(rows, ours, scenario.id, loads)
    const scored = rivals.map((arm) => ({ arm, scores: scoresOf(rows, arm, scenario.id, loads) }))
    const best = scored.reduce((one, other) => (mean(other.scores) > mean(one.scores) ? other : one))
    return {
      workload: scenario.id,
      own,
      best: { ...best, setting: tuned[best.arm].setting },
      ratios: own.map((value, index) => value / best.scores[index]),
      hindsight: hindsightOf(result, best.arm, loads),
    }
  })
}

/**
 * What the best schedule found reached, on the seeds that were searched, and the certified bound there; both also over
 * what that rival reached on them. Undefined without a search.
 */
function hindsightOf({ scenario, rows, schedules = [], bounds = [] }, rival, loads) {
  const seeds = [...new Set(schedules.map(({ seed }) => seed))]
  if (seeds.length === 0) return undefined
  const over = (cells, of) => mean(cells.filter(({ load }) => loads.includes(load)).map(of))
  const attained = over(schedules, (cell) => foundBest(rows, cell))
  const bound = over(bounds, (cell) => cell.bound)
  const searched = rows.filter(({ seed }) => seeds.includes(seed))
  const reached = mean(scoresOf(searched, rival, scenario.id, loads))
  return { attained, bound, ratio: attained / reached, mostRatio: bound / reached, schedules }
}

/** Worst and mean over workloads of an arm's score over the best rival's of each: `{ worst, mean, at }`. */
export function overWorkloads(rows, arm, beside, loads) {
  const ratios = beside.map(({ workload, best }) => ({
    workload,
    ratio: mean(scoresOf(rows, arm, workload, loads)) / mean(best.scores),
  }))
  const worst = ratios.reduce((one, other) => (other.ratio < one.ratio ? other : one))
  return { worst: worst.ratio, at: worst.workload, mean: mean(ratios.map(({ ratio }) => ratio)) }
}
