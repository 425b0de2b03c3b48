/** Tunes arms on a training seed and runs them over loads and seeds. */
import { ARMS } from './arms.mjs'
import { tune } from './tune.mjs'

/** Seeds of arrivals, lengths and step times. None of the three kinds meets another. */
export const TRAINING_SEED = 101
const CAPACITY_SEED = 11
export const testSeeds = (count) => Array.from({ length: count }, (_, index) => index + 1)

/** Runs of a scenario last long enough for that many requests at 1x, within bounds in ms. */
export function durationOf(capacity, { requests, shortestMs, longestMs }) {
  return Math.round(Math.min(Math.max((requests / capacity.ratePerSec) * 1000, shortestMs), longestMs))
}

export function capacityOf(pool, scenario) {
  return pool.run('capacity', { scenario, seed: CAPACITY_SEED })
}

/** What every run of a scenario shares: its 1x and its length. */
export async function openScenario(pool, scenario, plan) {
  const capacity = await capacityOf(pool, scenario)
  if (!(capacity.ratePerSec > 0)) throw new RangeError(`${scenario.id}: bare, no rate keeps 90 % good`)
  return { scenario, capacity, durationMs: durationOf(capacity, plan.duration) }
}

export function runCell(pool, { scenario, capacity, durationMs }, { arm, setting, load, seed }) {
  const ratePerSec = load * capacity.ratePerSec
  return pool.run('cell', { scenario, ratePerSec, durationMs, seed, arm, setting })
}

/** The setting with the best mean attainment over the training loads. */
export async function tuneArm(pool, opened, arm, plan) {
  const scoreOf = async (setting) => {
    const cells = await Promise.all(
      plan.training.map((load) => runCell(pool, opened, { arm, setting, load, seed: TRAINING_SEED })),
    )
    return cells.reduce((sum, { attained }) => sum + attained, 0) / cells.length
  }
  if (ARMS[arm].axes === undefined) return { setting: {}, tried: 0 }
  const { setting, score, tried } = await tune(ARMS[arm], scoreOf, plan.tuningRounds)
  return { setting, score, tried: tried.length }
}

/** All loads and seeds of one arm with one setting: rows of figures. */
export async function runArm(pool, opened, arm, setting, { loads, seeds }) {
  const cells = loads.flatMap((load) => testSeeds(seeds).map((seed) => ({ arm, setting, load, seed })))
  return Promise.all(
    cells.map(async (cell) => ({
      scenario: opened.scenario.id,
      ...cell,
      ...(await runCell(pool, opened, cell)),
    })),
  )
}

/** One scenario: each arm tuned, then run. `{ scenario, capacity, durationMs, tuned, rows }`. */
export async function runScenario(pool, scenario, arms, plan) {
  const opened = await openScenario(pool, scenario, plan)
  const results = await Promise.all(
    arms.map(async (arm) => {
      const tuned = await tuneArm(pool, opened, arm, plan)
      return { arm, tuned, rows: await runArm(pool, opened, arm, tuned.setting, plan) }
    }),
  )
  return {
    ...opened,
    tuned: Object.fromEntries(results.map(({ arm, tuned }) => [arm, tuned])),
    rows: results.flatMap(({ rows }) => rows),
  }
}
