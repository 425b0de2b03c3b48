/** The runs of `sluice simulate`: each load under each scheduler, or the highest load that each can bear. */
import { shownRate } from '../admin/words.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { schedulers } from '../policies/registry.ts'
import { type Capacity, findCapacity } from '../sim/capacity.ts'
import { biasedPrior, type Fault } from '../sim/faults.ts'
import { type SimReport, summarize } from '../sim/report.ts'
import { simulate } from '../sim/run.ts'
import { priorOf } from './gate-parts.ts'
import { shownShare } from './load-report.ts'
import type { Fleet, FleetFlags } from './simulate-fleet.ts'
import type { ChosenSource, SourceFlags } from './simulate-source.ts'
import type { Terminal } from './terminal.ts'

/** All that the command is told. */
export interface Flags extends Omit<FleetFlags, 'prioritized'>, Omit<SourceFlags, 'client' | 'prioritized'> {
  readonly rate?: readonly number[]
  readonly load?: readonly number[]
  readonly duration?: Ms
  readonly scheduler: readonly string[]
  readonly seed: number
  readonly clients: string
  readonly giveUp?: Ms
  readonly priority: boolean
  readonly prior: boolean
  readonly fault?: readonly Fault[]
  readonly findGoodput: boolean
  readonly good: Ratio
  readonly format: 'text' | 'json'
}

/** One load under one scheduler. */
export interface SimulatedRun {
  readonly ratePerSec: number
  readonly durationMs: Ms
  /** Sent in all, the warm-up and what came back included. */
  readonly requests: number
  /** In times of the bare fleet's capacity, when that was measured. */
  readonly load?: number
  readonly scheduler: string
  readonly report: SimReport
}

/** What both reports begin with. */
export interface Setting {
  readonly profile: string
  readonly replicas: number
  readonly workload: string
  readonly seed: number
}

export interface Simulation extends Setting {
  readonly capacity?: Capacity
  readonly runs: readonly SimulatedRun[]
}

/** The highest rate of each scheduler at which enough requests are good. */
export interface GoodputSearch extends Setting {
  readonly goodRatio: Ratio
  readonly found: readonly { readonly scheduler: string; readonly capacity: Capacity }[]
}

/** What the runs have in common. */
export interface Work {
  readonly flags: Flags
  readonly fleet: Fleet
  readonly chosen: ChosenSource
  readonly terminal: Terminal
}

const DEFAULT_DURATION_MS: Ms = 60_000
/** 1x is where the bare fleet keeps that share of requests good. */
const BARE_GOOD_RATIO = 0.9
/** That much of each run warms the fleet up and is not counted. */
const WARM_SHARE = 1 / 6

/** Every load under every scheduler. */
export function runAll(work: Work): Simulation {
  const { flags, chosen, terminal } = work
  const recorded = flags.load === undefined ? chosen.recorded : undefined
  const fixed = flags.rate ?? (recorded === undefined ? undefined : [recorded.ratePerSec])
  const capacity = fixed === undefined ? bareCapacity(work) : undefined
  const rates = fixed ?? (flags.load ?? [1]).map((times) => times * (capacity?.ratePerSec ?? 0))
  const runs: SimulatedRun[] = []
  for (const ratePerSec of rates) {
    for (const scheduler of flags.scheduler) {
      terminal.err(`simulating ${scheduler} at ${ratePerSec.toFixed(1)} requests/s… `)
      const startedAtMs = performance.now()
      const load = capacity === undefined ? {} : { load: ratePerSec / capacity.ratePerSec }
      const run = { ratePerSec, ...load, scheduler, ...runOne(work, ratePerSec, scheduler) }
      const seconds = (performance.now() - startedAtMs) / 1000
      terminal.err(
        `${run.requests} in ${seconds.toFixed(1)} s, ${(run.requests / seconds).toFixed(0)} a second\n`,
      )
      runs.push(run)
    }
  }
  return { ...settingOf(work), ...(capacity === undefined ? {} : { capacity }), runs }
}

/** The highest load that every scheduler can bear. */
export function findAll(work: Work): GoodputSearch {
  const { flags, terminal } = work
  const found = flags.scheduler.map((scheduler) => {
    terminal.err(`searching the goodput of ${scheduler}…\n`)
    return { scheduler, capacity: search(work, flags.good, schedulerOf(work, scheduler)) }
  })
  return { ...settingOf(work), goodRatio: flags.good, found }
}

function settingOf({ flags, fleet, chosen }: Work): Setting {
  return {
    profile: fleet.profileId,
    replicas: fleet.engines.length,
    workload: chosen.describe,
    seed: flags.seed,
  }
}

function bareCapacity(work: Work): Capacity {
  work.terminal.err('measuring the capacity of the bare fleet…\n')
  const capacity = search(work, BARE_GOOD_RATIO)
  if (capacity.ratePerSec > 0) return capacity
  throw new RangeError(
    'the bare fleet keeps 90 % of requests good at no rate at all: relax the classes, or give --rate',
  )
}

function search(work: Work, goodRatio: Ratio, createScheduler?: () => Scheduler): Capacity {
  const { flags, fleet, chosen, terminal } = work
  return findCapacity({
    engines: fleet.engines,
    classes: fleet.classes,
    seed: flags.seed,
    source: chosen.source,
    goodRatio,
    onTrial: (ratePerSec, attainmentRatio) =>
      terminal.err(`  ${shownRate(ratePerSec)}/s: ${shownShare(attainmentRatio)} good\n`),
    ...(createScheduler === undefined ? {} : { createScheduler, faults: flags.fault ?? [] }),
    ...(flags.duration === undefined || createScheduler === undefined ? {} : { durationMs: flags.duration }),
  })
}

function runOne(work: Work, ratePerSec: number, scheduler: string) {
  const { flags, fleet, chosen } = work
  const durationMs = flags.duration ?? chosen.source.lengthMsAt?.(ratePerSec) ?? DEFAULT_DURATION_MS
  const result = simulate({
    replicas: fleet.engines.map((engine) => ({ engine })),
    requests: chosen.source.streamAt(ratePerSec, durationMs, flags.seed),
    createScheduler: schedulerOf(work, scheduler),
    classes: fleet.classes,
    faults: flags.fault ?? [],
    closesAtMs: durationMs,
    seed: flags.seed,
  })
  const report = summarize(result, durationMs * WARM_SHARE, durationMs)
  return { durationMs, requests: result.outcomes.length, report }
}

function schedulerOf({ flags, fleet }: Work, name: string): () => Scheduler {
  const entry = schedulers.get(name)
  if (entry === undefined) throw new RangeError(`unknown scheduler ${name}`)
  const { profileId } = fleet
  const prior = flags.prior ? { [profileId]: biasedPrior(priorOf(profileId), flags.fault ?? []) } : {}
  return () => entry.create({ priors: prior })
}
