/** One run of one arm: simulates it and keeps the figures that tables are made of. Pure: equal specs, equal results. */
import { findCapacity } from '../../dist/sim/capacity.js'
import { summarize } from '../../dist/sim/report.js'
import { simulate } from '../../dist/sim/run.js'
import { ARMS } from './arms.mjs'
import { CLASSES, DRAIN_MS, enginesOf, MIXES, requestsOf } from './scenarios.mjs'

/** That much of each run warms everything up and is not counted. */
export const WARM_RATIO = 1 / 6

/** What the bare fleet carries. A workload that changes is measured by its first part. */
export function capacityOf({ scenario, seed }) {
  return findCapacity({
    engines: enginesOf(scenario),
    classes: CLASSES,
    workload: { name: scenario.mix, phases: [{ classes: MIXES[scenario.mix.split('>')[0]] }] },
    seed,
  })
}

/** Runs `spec.arm` with `spec.setting` and returns the simulator's result. */
export function simulateArm(spec, requests) {
  const { scenario, seed, arm, setting = {} } = spec
  const { createScheduler, engine, settings, sim = {} } = ARMS[arm].make(setting, scenario, requests)
  return simulate({
    replicas: enginesOf(scenario, engine).map((options) => ({ engine: options })),
    requests,
    createScheduler,
    classes: CLASSES,
    seed,
    drainMs: DRAIN_MS,
    ...(settings === undefined ? {} : { settings }),
    ...sim,
  })
}

/** The figures of one cell of the grid. */
export function runCell(spec) {
  const { scenario, ratePerSec, durationMs, seed } = spec
  const result = simulateArm(spec, requestsOf(scenario, ratePerSec, durationMs, seed))
  const warmMs = durationMs * WARM_RATIO
  const { total, classes, ...report } = summarize(result, warmMs, durationMs)
  const waits = result.outcomes
    .filter(({ settlement: { outcome, offer } }) => outcome === 'shed' && offer.receivedAtMs >= warmMs)
    .map(({ settlement }) => settlement.e2eMs)
    .sort((a, b) => a - b)
  return {
    offered: total.offered,
    good: total.good,
    judged: total.good + total.bad,
    attained: total.attainmentRatio ?? 1,
    goodPerSec: report.goodPerSec,
    shed: total.shed,
    shedP50Ms: waits[Math.floor(waits.length * 0.5)],
    shedP90Ms: waits[Math.floor(waits.length * 0.9)],
    wasted: report.usedEngineMs === 0 ? 0 : report.wastedEngineMs / report.usedEngineMs,
    ttftP50Ms: total.ttft.p50Ms,
    ttftP99Ms: total.ttft.p99Ms,
    tpotP50Ms: total.tpot.p50Ms,
    tpotP99Ms: total.tpot.p99Ms,
    badByCause: report.badByCause,
    classes: Object.fromEntries(
      classes.map(({ className, offered, good, bad, shed }) => [className, { offered, good, bad, shed }]),
    ),
  }
}
