/** How far simulated values are from measured ones. */
import { quantile } from '../goodput/stats.mjs'

/** Pairs of [measured, simulated] summed up; errors are |simulated / measured - 1|. */
function summarizeErrors(pairs) {
  const ratios = pairs.map(([measured, simulated]) => simulated / measured)
  const errors = ratios.map((ratio) => Math.abs(ratio - 1))
  return {
    count: pairs.length,
    measuredP50: quantile(
      pairs.map(([measured]) => measured),
      0.5,
    ),
    simulatedP50: quantile(
      pairs.map(([, simulated]) => simulated),
      0.5,
    ),
    medianErrorRatio: quantile(errors, 0.5),
    p90ErrorRatio: quantile(errors, 0.9),
    /** Above 1: the model is too slow. */
    medianRatio: quantile(ratios, 0.5),
  }
}

/** Gathers pairs under names. */
export class Groups {
  #pairs = new Map()

  add(name, measured, simulated) {
    if (!Number.isFinite(measured) || !Number.isFinite(simulated)) return
    const pairs = this.#pairs.get(name) ?? []
    this.#pairs.set(name, pairs)
    pairs.push([measured, simulated])
  }

  summary() {
    return [...this.#pairs].map(([name, pairs]) => ({ name, ...summarizeErrors(pairs) }))
  }
}
