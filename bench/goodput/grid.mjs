/** Tunes arms on a training seed and runs them over loads and seeds. */
import { armOf } from './arms.mjs'
import { essenceOf, partsOf } from './scenarios.mjs'
import { tune } from './tune.mjs'

/** Seeds of arrivals, lengths and step times. None of the three kinds meets another. */
const TRAINING_SEED = 101
const CAPACITY_SEED = 11
export const testSeeds = (count) => Array.from({ length: count }, (_, index) => index + 1)

const meanOfValues = (values) => values.reduce((sum, value) => sum + value, 0) / values.length

/** Runs last long enough for that many requests at 1x, within bounds in ms. */
function durationOf(ratePerSec, { requests, shortestMs, longestMs }) {
  return Math.round(Math.min(Math.max((requests / ratePerSec) * 1000, shortestMs), longestMs))
}

/** What the bare, healthy fleet carries of one workload. */
async function simpleCapacity(pool, scenario) {
  const { faults, ...healthy } = essenceOf(scenario)
  const capacity = await pool.run('capacity', { scenario: healthy, seed: CAPACITY_SEED })
  if (!(capacity.ratePerSec > 0)) throw new RangeError(`${scenario.id}: bare, no rate keeps 90 % good`)
  return capacity
}

/** The same of any scenario; of several workloads each has an equal part, of the time or of the fleet. */
async function capacityOf(pool, scenario) {
  const parts = partsOf(scenario)
  if (parts.length === 0) return simpleCapacity(pool, scenario)
  const each = await Promise.all(parts.map((part) => simpleCapacity(pool, part)))
  return {
    ratePerSec: meanOfValues(each.map(({ ratePerSec }) => ratePerSec)),
    saturatedPerSec: meanOfValues(each.map(({ saturatedPerSec }) => saturatedPerSec)),
    partRates: each.map(({ ratePerSec }) => ratePerSec),
  }
}

/** What every run of a scenario shares: its 1x and its length. */
export async function openScenario(pool, scenario, plan) {
  const { partRates, ...capacity } = await capacityOf(pool, scenario)
  const durationMs = scenario.durationMs ?? durationOf(capacity.ratePerSec, plan.duration)
  return { scenario, capacity, durationMs, ...(partRates === undefined ? {} : { partRates }) }
}

/** The spec of one run of an opened scenario, without an arm. A trace is replayed whole, at any load. */
export function runSpec({ scenario, capacity, durationMs, partRates }, load, seed) {
  const { traceRequests } = capacity
  const ratePerSec = load * capacity.ratePerSec
  return {
    scenario: essenceOf(scenario),
    ...(partRates === undefined ? {} : { partRates }),
    ratePerSec,
    durationMs: traceRequests === undefined ? durationMs : Math.round((1000 * traceRequests) / ratePerSec),
    seed,
  }
}

export function runCell(pool, opened, { arm, setting, load, seed, windows }) {
  return pool.run('cell', {
    ...runSpec(opened, load, seed),
    arm,
    setting,
    ...(windows === undefined ? {} : { windows }),
  })
}

/** Mean attainment of a setting over the training loads. */
export async function trainingScore(pool, opened, arm, setting, plan) {
  const cells = await Promise.all(
    plan.training.map((load) => runCell(pool, opened, { arm, setting, load, seed: TRAINING_SEED })),
  )
  return meanOfValues(cells.map(({ attained }) => attained))
}

/** The arm's best setting for that scenario: `{ setting, score, tried }`, the last being how many settings were. */
export async function tuneArm(pool, opened, arm, plan) {
  const scoreOf = (setting) => trainingScore(pool, opened, arm, setting, plan)
  const { axes, start } = armOf(arm)
  if (axes === undefined) return { setting: {}, tried: 0 }
  const strided = thinned(axes, plan.tuningStride ?? 1)
  const { setting, score, tried } = await tune({ axes: strided, start }, scoreOf, plan.tuningRounds)
  return { setting, score, tried: new Set(tried.map((one) => JSON.stringify(one.setting))).size }
}

/** Every `stride`-th value of the axes that have more than four. */
function thinned(axes, stride) {
  const entries = Object.entries(axes).map(([name, values]) => [
    name,
    values.length > 4 ? values.filter((_, index) => index % stride === 0) : values,
  ])
  return Object.fromEntries(entries)
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

/** The highest load at which the arm keeps `plan.carries.goodRatio` good, by bisection, in times of 1x. */
export async function carriedLoad(pool, opened, arm, setting, { carries }) {
  const { goodRatio, highest, halvings, seeds } = carries
  let low = 0
  let high = highest
  for (let halving = 0; halving < halvings; halving++) {
    const load = (low + high) / 2
    const cells = await Promise.all(
      testSeeds(seeds).map((seed) => runCell(pool, opened, { arm, setting, load, seed })),
    )
    if (meanOfValues(cells.map(({ attained }) => attained)) >= goodRatio) low = load
    else high = load
  }
  return low
}

/**
 * One scenario: each arm tuned (or set as in `settings`, by arm), then run. `{ scenario, capacity, durationMs, tuned,
 * rows }`.
 */
export async function runScenario(pool, scenario, arms, plan, settings) {
  const opened = await openScenario(pool, scenario, plan)
  const results = await Promise.all(
    arms.map(async (arm) => {
      const tuned = settings?.[arm] ?? (await tuneArm(pool, opened, arm, plan))
      const rows = await runArm(pool, opened, arm, tuned.setting, plan)
      return { arm, tuned, rows }
    }),
  )
  return {
    ...opened,
    tuned: Object.fromEntries(results.map(({ arm, tuned }) => [arm, tuned])),
    rows: results.flatMap(({ rows }) => rows),
  }
}
