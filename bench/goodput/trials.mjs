/** Trials of our own scheduler: straight into overload with nothing learnt, and with something broken. */
import { OURS } from './arms.mjs'
import { openScenario, runCell, testSeeds } from './grid.mjs'
import { describe } from './scenarios.mjs'

const FIRST_MS = 10_000

const ratioOf = ({ good, judged }) => (judged === 0 ? 1 : good / judged)

/**
 * Straight into overload: attainment of what arrives in the first 10 s, from then to half the time, and in the second
 * half, which is the steady value. A workload that shifts is watched from its shift. One row an arm and seed.
 */
export async function coldStart(pool, scenario, plan) {
  const { load, watchedMs, seeds, arms } = plan.cold
  const opened = await openScenario(pool, scenario, plan)
  const shiftsAtMs = scenario.shift === undefined ? 0 : watchedMs
  const durationMs = shiftsAtMs + watchedMs
  const middleMs = shiftsAtMs + watchedMs / 2
  const windows = [
    [shiftsAtMs, shiftsAtMs + FIRST_MS],
    [shiftsAtMs + FIRST_MS, middleMs],
    [middleMs, durationMs],
  ]
  const runs = arms.flatMap((arm) =>
    testSeeds(seeds).map((seed) => ({ arm, setting: {}, load, seed, windows })),
  )
  return Promise.all(
    runs.map(async (cell) => {
      const { windows: counted } = await runCell(pool, { ...opened, durationMs }, cell)
      const [first, then, steady] = counted.map(ratioOf)
      return { scenario: scenario.id, arm: cell.arm, seed: cell.seed, first, then, steady }
    }),
  )
}

/**
 * Goodput once something is broken over that of a healthy fleet as large as what is left, at the same rate; between
 * two whole numbers of replicas it is taken in proportion. One row a seed.
 */
export async function faultTrial(pool, scenario, plan) {
  const { load, seeds } = plan.faults
  const opened = await openScenario(pool, scenario, plan)
  const { durationMs } = opened
  const { faults, leftRatio, replicas, ...same } = scenario
  const arm = faults.some(({ kind }) => kind === 'estimatorBias') ? 'sluice-prior' : OURS
  const fromMs = Math.max(...faults.map(({ fromRatio = 0 }) => fromRatio)) * durationMs
  const windows = [[fromMs, durationMs]]
  const goodOf = async (fleet, seed) => {
    const cell = { arm, setting: {}, load, seed, windows }
    return (await runCell(pool, { ...opened, scenario: { ...same, ...fleet } }, cell)).windows[0].good
  }
  const left = leftRatio * replicas
  return Promise.all(
    testSeeds(seeds).map(async (seed) => {
      const [broken, more, fewer] = await Promise.all([
        goodOf({ replicas, faults }, seed),
        goodOf({ replicas: Math.ceil(left) }, seed),
        goodOf({ replicas: Math.floor(left) }, seed),
      ])
      const share = left - Math.floor(left)
      const expected = share * more + (1 - share) * fewer
      return { scenario: scenario.id, workload: describe(scenario), arm, seed, ratio: broken / expected }
    }),
  )
}
