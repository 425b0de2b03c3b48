/** Finds what a fleet can carry, so that loads can be named in multiples of it. */
import type { SloClass } from '../core/request.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { createRoundRobin } from '../policies/plain/round-robin.ts'
import type { Arrivals } from './arrivals.ts'
import type { ReplicaEngineOptions } from './engine-types.ts'
import type { Fault } from './faults.ts'
import { summarize } from './report.ts'
import { simulate } from './run.ts'
import type { SimResult } from './run-types.ts'
import { type RequestSource, workloadSource } from './source.ts'
import { stepMs } from './step-time.ts'
import type { Workload } from './workload-types.ts'
import { namedWorkload } from './workloads.ts'

export interface CapacityOptions {
  readonly engines: readonly ReplicaEngineOptions[]
  /** Default: the five workloads. */
  readonly workload?: Workload
  readonly arrivals?: Arrivals
  readonly lengthRatio?: Ratio
  /** In place of `workload`, `arrivals` and `lengthRatio`. */
  readonly source?: RequestSource
  /** Default: round-robin, which makes it the bare fleet. */
  readonly createScheduler?: () => Scheduler
  readonly faults?: readonly Fault[]
  readonly seed?: number
  /**
   * Arrivals of each trial last that long; default: all of the source, or 3000 of them. The first quarter warms up and is
   * not counted, but of a source that ends by itself: its one burst may be there.
   */
  readonly durationMs?: Ms
  readonly classes?: Readonly<Record<string, SloClass>>
  /** The share of judged requests that must be good, default 0.9. */
  readonly goodRatio?: Ratio
  /** Sees each trial as it ends. */
  readonly onTrial?: (ratePerSec: number, attainmentRatio: Ratio) => void
}

export interface Capacity {
  /** Highest rate at which the fleet under its scheduler keeps `goodRatio` of requests good. */
  readonly ratePerSec: number
  /** Requests that the bare fleet (round-robin, unbounded queues) completes a second when its queues never empty. */
  readonly saturatedPerSec: number
}

/** Halvings of the interval below the saturated rate: the answer is within 1.6 % of that rate. */
const HALVINGS = 6
/** Who sheds well may keep more than the saturated rate; the interval is widened by that until it holds the answer. */
const WIDENING_RATIO = 1.25
const LARGEST_WIDENINGS = 8
/** Workloads of different seeds tried at each rate, since one may be lucky near the cliff. */
const SEEDS_PER_RATE = 2
const TRIAL_REQUESTS = 3000
const SATURATED_REQUESTS = 2000
const SHORTEST_TRIAL_MS: Ms = 40_000
const LONGEST_TRIAL_MS: Ms = 600_000
/** What is still unanswered that long after a trial's last arrival counts as left by its client. */
const TRIAL_DRAIN_MS: Ms = 20_000
/** So long may a saturated fleet work off what has come. */
const LONGEST_BACKLOG_MS: Ms = 3_600_000

/** Deterministic for equal options; simulates about nine minutes of traffic. Throws a RangeError for too short a trace. */
export function findCapacity(options: CapacityOptions): Capacity {
  const goodRatio = options.goodRatio ?? 0.9
  const source = sourceOf(options)
  const saturatedPerSec = saturatedRate(options, source)
  const longEnoughMs = (TRIAL_REQUESTS / Math.max(saturatedPerSec, 1e-3)) * 1000
  const durationMs =
    options.durationMs ?? Math.min(Math.max(longEnoughMs, SHORTEST_TRIAL_MS), LONGEST_TRIAL_MS)
  const isGood = (ratePerSec: number) => {
    const lengthMs = options.durationMs ?? source.lengthMsAt?.(ratePerSec) ?? durationMs
    const attainmentRatio = attainmentAt(options, source, ratePerSec, lengthMs)
    options.onTrial?.(ratePerSec, attainmentRatio)
    return attainmentRatio >= goodRatio
  }
  return { ratePerSec: bisect(saturatedPerSec, isGood), saturatedPerSec }
}

/** The highest rate that is good, when all below it are. */
function bisect(startPerSec: number, isGood: (ratePerSec: number) => boolean): number {
  let low = 0
  let high = startPerSec
  for (let widening = 0; widening < LARGEST_WIDENINGS && isGood(high); widening++) {
    low = high
    high *= WIDENING_RATIO
  }
  for (let halving = 0; halving < HALVINGS; halving++) {
    const middle = (low + high) / 2
    if (isGood(middle)) low = middle
    else high = middle
  }
  return low
}

function sourceOf({ source, workload, arrivals, lengthRatio }: CapacityOptions): RequestSource {
  return (
    source ??
    workloadSource(workload ?? namedWorkload('mixed'), {
      ...(arrivals === undefined ? {} : { arrivals }),
      ...(lengthRatio === undefined ? {} : { lengthRatio }),
    })
  )
}

/** Share of judged requests that are good at that rate, over all seeds. */
function attainmentAt(
  options: CapacityOptions,
  source: RequestSource,
  ratePerSec: number,
  durationMs: Ms,
): Ratio {
  let good = 0
  let bad = 0
  for (let attempt = 0; attempt < SEEDS_PER_RATE; attempt++) {
    const seed = (options.seed ?? 1) + attempt
    const result = run({ ...options, seed }, source, ratePerSec, durationMs, TRIAL_DRAIN_MS)
    const { total } = summarize(result, source.lengthMsAt === undefined ? durationMs / 4 : 0, durationMs)
    good += total.good
    bad += total.bad
  }
  return good + bad === 0 ? 1 : good / (good + bad)
}

/** Completions a second, first and last tenth left out, of requests that come at three times what step times allow. */
function saturatedRate(options: CapacityOptions, source: RequestSource): number {
  const overloadPerSec = 3 * roughRate(options.engines, source)
  const durationMs = source.lengthMsAt?.(overloadPerSec) ?? (SATURATED_REQUESTS * 1000) / overloadPerSec
  const { createScheduler: _, faults: __, ...bare } = options
  const { outcomes } = run(bare, source, overloadPerSec, durationMs, LONGEST_BACKLOG_MS)
  const ends = outcomes
    .filter(({ settlement }) => settlement.outcome === 'completed')
    .map(({ settlement }) => settlement.offer.receivedAtMs + settlement.e2eMs)
    .sort((a, b) => a - b)
  const [from, to] = [Math.floor(ends.length * 0.1), Math.floor(ends.length * 0.9)]
  const spanMs = (ends[to] ?? 0) - (ends[from] ?? 0)
  if (spanMs > 0) return ((to - from) * 1000) / spanMs
  throw new RangeError(`${ends.length} requests are too few to find a capacity`)
}

function run(
  options: CapacityOptions,
  source: RequestSource,
  ratePerSec: number,
  durationMs: Ms,
  drainMs: Ms,
): SimResult {
  const { seed = 1, classes, createScheduler, faults } = options
  return simulate({
    replicas: options.engines.map((engine) => ({ engine })),
    requests: source.streamAt(ratePerSec, durationMs, seed),
    createScheduler: createScheduler ?? createRoundRobin,
    reportsProgress: createScheduler !== undefined,
    seed,
    closesAtMs: durationMs,
    drainMs,
    ...(classes === undefined ? {} : { classes }),
    ...(faults === undefined ? {} : { faults }),
  })
}

/** Requests a second by mean lengths and full batches, leaving out KV limits and caching. */
function roughRate(engines: readonly ReplicaEngineOptions[], { meanTokens }: RequestSource): number {
  let perSec = 0
  for (const { profile, maxNumSeqs = profile.defaults.maxNumSeqs, speedRatio = 1 } of engines) {
    const batchMs = stepMs(profile, {
      prefillTokens: 0,
      prefillContextTokens: 0,
      decodeSequences: maxNumSeqs,
      decodeContextTokens: maxNumSeqs * (meanTokens.prompt + meanTokens.output),
    })
    const decodeMs = (batchMs / maxNumSeqs) * meanTokens.output
    const prefillMs = profile.prefill.perTokenMs * meanTokens.prompt
    perSec += (1000 * speedRatio) / (decodeMs + prefillMs)
  }
  return perSec
}
