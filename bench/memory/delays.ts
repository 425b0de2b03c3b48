/** How long it took from each client's leaving to its end, on one clock, as a figure. */
import { nearestRank } from '../../src/sim/nearest-rank.ts'
import type { Figure } from './figures.ts'

/** When each of them did something, by the request's id. */
export type Instants = readonly (readonly [id: string, atMs: number])[]

/** Wanted of the 99th percentile in every phase, in ms. */
const P99_LIMIT_MS = 100

/** Throws when of one of the `leavers` it is not known when it left or ended: the worst delays would be those left out. */
export function delayFigure(what: string, leavers: number, left: Instants, ended: Instants): Figure {
  const endedAtMs = new Map(ended)
  const delays = left.flatMap(([id, leftAtMs]) => {
    const atMs = endedAtMs.get(id)
    return atMs === undefined ? [] : [Math.max(0, atMs - leftAtMs)]
  })
  if (delays.length !== leavers || left.length !== leavers) {
    throw new Error(
      `a client that leaves ${what}: ${left.length} left and ${delays.length} of them were seen to end, of ${leavers}`,
    )
  }
  const sorted = Float64Array.from(delays).sort()
  const at = (ratio: number) => nearestRank(sorted, ratio) ?? Number.NaN
  const note = `p50 ${at(0.5).toFixed(1)}, most ${at(1).toFixed(1)}, ${delays.length} clients`
  const name = `a client that leaves ${what}, ${leavers} at once: p99`
  return { what: name, value: at(0.99), unit: 'ms', limit: P99_LIMIT_MS, note }
}
