/** Finds what a bare fleet can carry, so that loads can be named in multiples of it. */
import type { SloClass } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { createRoundRobin } from '../policies/rivals/round-robin.ts'
import type { EngineOptions } from './engine-types.ts'
import { steadyRate } from './rates.ts'
import { summarize } from './report.ts'
import { simulate } from './run.ts'
import { stepMs } from './step-time.ts'
import { generateWorkload, meanLengths } from './workload.ts'
import type { WorkloadClass } from './workload-types.ts'

export interface CapacityOptions {
  readonly engines: readonly EngineOptions[]
  readonly seed?: number
  /** Arrivals of each trial last that long, its first quarter uncounted; default: long enough for 3000 of them. */
  readonly durationMs?: Ms
  readonly classes?: Readonly<Record<string, SloClass>>
  readonly workload?: readonly WorkloadClass[]
  readonly lengthRatio?: Ratio
  readonly gapCv?: number
  /** The share of judged requests that must be good, default 0.9. */
  readonly goodRatio?: Ratio
}

export interface Capacity {
  /** Highest rate at which the bare fleet (round-robin, unbounded queues) keeps `goodRatio` of requests good. */
  readonly ratePerSec: number
  /** Requests that it completes a second when its queues never empty. */
  readonly saturatedPerSec: number
}

/** Halvings of the interval below the saturated rate: the answer is within 1.6 % of that rate. */
const HALVINGS = 6
/** Workloads of different seeds tried at each rate, since one may be lucky near the cliff. */
const SEEDS_PER_RATE = 2
const TRIAL_REQUESTS = 3000
const SHORTEST_TRIAL_MS: Ms = 40_000
const LONGEST_TRIAL_MS: Ms = 600_000
/** What is still unanswered that long after a trial's last arrival counts as left by its client. */
const TRIAL_DRAIN_MS: Ms = 20_000

/** Deterministic for equal options; simulates about nine minutes of traffic. */
export function findCapacity(options: CapacityOptions): Capacity {
  const goodRatio = options.goodRatio ?? 0.9
  const saturatedPerSec = saturatedRate(options)
  const longEnoughMs = (TRIAL_REQUESTS / Math.max(saturatedPerSec, 1e-3)) * 1000
  const durationMs =
    options.durationMs ?? Math.min(Math.max(longEnoughMs, SHORTEST_TRIAL_MS), LONGEST_TRIAL_MS)
  let low = 0
  let high = saturatedPerSec
  for (let halving = 0; halving < HALVINGS; halving++) {
    const middle = (low + high) / 2
    if (attainmentAt(options, middle, durationMs) >= goodRatio) low = middle
    else high = middle
  }
  return { ratePerSec: low, saturatedPerSec }
}

/** Share of judged requests that are good at that rate, over all seeds. */
function attainmentAt(options: CapacityOptions, ratePerSec: number, durationMs: Ms): Ratio {
  let good = 0
  let bad = 0
  for (let attempt = 0; attempt < SEEDS_PER_RATE; attempt++) {
    const seed = (options.seed ?? 1) + attempt
    const { total } = trial({ ...options, seed }, ratePerSec, durationMs, TRIAL_DRAIN_MS).report
    good += total.good
    bad += total.bad
  }
  return good + bad === 0 ? 1 : good / (good + bad)
}

/** Completions a second under three times the load that the step times alone would allow. */
function saturatedRate(options: CapacityOptions): number {
  const overloadPerSec = 3 * roughRate(options)
  return trial(options, overloadPerSec, options.durationMs ?? SHORTEST_TRIAL_MS, 0).completedPerSec
}

function trial(options: CapacityOptions, ratePerSec: number, durationMs: Ms, drainMs: Ms) {
  const { seed = 1, classes, workload, lengthRatio, gapCv } = options
  const result = simulate({
    replicas: options.engines.map((engine) => ({ engine })),
    requests: generateWorkload({
      seed,
      segments: steadyRate(ratePerSec, durationMs),
      ...(workload === undefined ? {} : { classes: workload }),
      ...(lengthRatio === undefined ? {} : { lengthRatio }),
      ...(gapCv === undefined ? {} : { gapCv }),
    }),
    createScheduler: createRoundRobin,
    reportsProgress: false,
    seed,
    drainMs,
    ...(classes === undefined ? {} : { classes }),
  })
  const warmMs = durationMs / 4
  const report = summarize(result, warmMs, durationMs)
  const completed = result.outcomes.filter(({ settlement }) => {
    const endedAtMs = settlement.offer.receivedAtMs + settlement.e2eMs
    return settlement.outcome === 'completed' && endedAtMs >= warmMs && endedAtMs < durationMs
  })
  return { report, completedPerSec: (completed.length * 1000) / (durationMs - warmMs) }
}

/** Requests a second by mean lengths and full batches, leaving out KV limits and caching. */
function roughRate({ engines, workload, lengthRatio = 1 }: CapacityOptions): number {
  const mean = meanLengths(workload)
  let perSec = 0
  for (const { profile, maxNumSeqs = profile.defaults.maxNumSeqs, speedRatio = 1 } of engines) {
    const batchMs = stepMs(profile, {
      prefillTokens: 0,
      prefillContextTokens: 0,
      decodeSequences: maxNumSeqs,
      decodeContextTokens: maxNumSeqs * (mean.prompt + mean.output) * lengthRatio,
    })
    const decodeMs = (batchMs / maxNumSeqs) * mean.output * lengthRatio
    const prefillMs = profile.prefill.perTokenMs * mean.prompt * lengthRatio
    perSec += (1000 * speedRatio) / (decodeMs + prefillMs)
  }
  return perSec
}
