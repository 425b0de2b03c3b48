/** Where the requests of a run come from, at any rate. */
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import type { Arrivals } from './arrivals.ts'
import { meanLengths, workloadStream } from './workload.ts'
import type { Workload, WorkloadRequest } from './workload-types.ts'

export interface RequestSource {
  /** Mean prompt and answer of one request. */
  readonly meanTokens: { readonly prompt: Tokens; readonly output: Tokens }
  /** How long all of it lasts at that rate; absent: it never ends by itself. */
  readonly lengthMsAt?: (ratePerSec: number) => Ms
  /** The requests at that mean rate, in order; none begins after `durationMs`. Each call gives the same ones. */
  streamAt(ratePerSec: number, durationMs: Ms, seed: number): Iterable<WorkloadRequest>
}

/** Draws from a workload. */
export function workloadSource(
  workload: Workload,
  shape: { readonly arrivals?: Arrivals; readonly lengthRatio?: Ratio } = {},
): RequestSource {
  const { lengthRatio = 1 } = shape
  const mean = meanLengths(workload.phases.flatMap(({ classes }) => classes))
  return {
    meanTokens: { prompt: mean.prompt * lengthRatio, output: mean.output * lengthRatio },
    streamAt: (ratePerSec, durationMs, seed) =>
      workloadStream({ workload, ratePerSec, durationMs, seed, ...shape }),
  }
}
