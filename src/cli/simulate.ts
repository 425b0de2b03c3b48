/** `sluice simulate`: a workload against a simulated fleet in virtual time, schedulers side by side. */
import { Command, InvalidArgumentError, Option } from 'commander'
import type { SloClass } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import { schedulers } from '../policies/registry.ts'
import { type Capacity, findCapacity } from '../sim/capacity.ts'
import type { EngineOptions } from '../sim/engine-types.ts'
import { profile } from '../sim/profiles.ts'
import { steadyRate } from '../sim/rates.ts'
import { type SimReport, summarize } from '../sim/report.ts'
import { simulate } from '../sim/run.ts'
import { generateWorkload } from '../sim/workload.ts'
import type { WorkloadClass } from '../sim/workload-types.ts'
import { priorOf } from './gate-parts.ts'
import {
  classesFrom,
  durationArgument,
  mixArgument,
  positiveArgument,
  positivesArgument,
  wholeArgument,
} from './load-options.ts'
import { simulationText } from './simulate-report.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

interface Flags {
  readonly profile: string
  readonly replicas: number
  readonly rate?: readonly number[]
  readonly load?: readonly number[]
  readonly duration: Ms
  readonly scheduler: readonly string[]
  readonly seed: number
  readonly mix?: readonly WorkloadClass[]
  readonly class?: string
  readonly lengthRatio: number
  readonly burst: number
  readonly maxNumSeqs?: number
  readonly maxNumBatchedTokens?: number
  readonly prior: boolean
  readonly format: 'text' | 'json'
}

/** One load under one scheduler. */
export interface SimulatedRun {
  readonly ratePerSec: number
  /** In times of the bare fleet's capacity, when that was measured. */
  readonly load?: number
  readonly scheduler: string
  readonly report: SimReport
}

export interface Simulation {
  readonly profile: string
  readonly replicas: number
  readonly seed: number
  readonly durationMs: Ms
  readonly capacity?: Capacity
  readonly runs: readonly SimulatedRun[]
}

/** Deviation of step times; no real engine is exact. */
const STEP_JITTER_RATIO = 0.05
/** That much of each run warms the fleet up and is not counted. */
const WARM_SHARE = 1 / 6

const EXAMPLES = `
Examples:
  sluice simulate --profile Llama-3.1-8B/H100-80G-SXM/tp1 --replicas 4 --load 0.8,1,2
  sluice simulate --profile demo/slow --length-ratio 0.25 --rate 12 --scheduler sluice,limit-16 --burst 3
  sluice simulate --class sluice.yaml --mix chat=3,agent=1 --rate 40 --format json

--load is in times of capacity: the highest rate at which the bare fleet keeps 90 % of requests good. It is measured
first, which takes some seconds; --rate does without. Schedulers: ${[...schedulers.keys()].join(', ')}.`

/** The command. */
export function simulateCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('simulate')
    .description('run a workload against a simulated fleet in virtual time, schedulers side by side')
    .option('--profile <id>', 'see `sluice engine --list-profiles`', 'Llama-3.1-8B/H100-80G-SXM/tp1')
    .option('--replicas <count>', 'engines in the fleet', countArgument, 4)
    .option('--rate <per second>', 'requests per second; several with commas', positivesArgument)
    .option('--load <times>', 'the same in times of capacity (default: 1)', positivesArgument)
    .option('--duration <time>', 'of each run; its first sixth is not counted', durationArgument, 60_000)
    .option('--scheduler <names>', 'several with commas', schedulersArgument, ['sluice', 'round-robin'])
    .option('--seed <number>', 'of arrivals, lengths and step times', wholeArgument, 1)
    .option('--mix <shares>', 'workloads, e.g. chat=3,voice=1 (default: all five)', mixArgument)
    .option('--class <file>', 'configuration whose classes are the promises (default: the built-in ones)')
    .option('--length-ratio <ratio>', 'every length times this', positiveArgument, 1)
    .option('--burst <cv>', 'variation of the gaps: 1 is Poisson, more is burstier', positiveArgument, 1)
    .option('--max-num-seqs <count>', 'sequences in a batch', countArgument)
    .option('--max-num-batched-tokens <tokens>', 'token budget of a step', countArgument)
    .option('--prior', 'tell Sluice the profile, instead of letting it learn from nothing', false)
    .addOption(new Option('--format <format>', 'how to report').choices(['text', 'json']).default('text'))
    .addHelpText('after', EXAMPLES)
    .action(async (flags: Flags, command: Command) => {
      if (flags.rate !== undefined && flags.load !== undefined) {
        command.error('error: give either --rate or --load, not both')
      }
      const simulation = runAll(flags, await classesFrom(flags.class, terminal), terminal)
      terminal.out(
        flags.format === 'json'
          ? `${JSON.stringify(simulation)}\n`
          : simulationText(simulation, terminal.colors),
      )
    })
}

function runAll(flags: Flags, classes: Readonly<Record<string, SloClass>>, terminal: Terminal): Simulation {
  const engines = enginesOf(flags)
  const capacity = flags.rate === undefined ? measured(flags, engines, classes, terminal) : undefined
  const rates = flags.rate ?? (flags.load ?? [1]).map((times) => times * (capacity?.ratePerSec ?? 0))
  const runs: SimulatedRun[] = []
  for (const ratePerSec of rates) {
    for (const scheduler of flags.scheduler) {
      terminal.err(`simulating ${scheduler} at ${ratePerSec.toFixed(1)} requests/s…\n`)
      const load = capacity === undefined ? {} : { load: ratePerSec / capacity.ratePerSec }
      runs.push({
        ratePerSec,
        ...load,
        scheduler,
        report: runOne(flags, engines, classes, ratePerSec, scheduler),
      })
    }
  }
  const { profile: id, replicas, seed, duration } = flags
  return {
    profile: id,
    replicas,
    seed,
    durationMs: duration,
    ...(capacity === undefined ? {} : { capacity }),
    runs,
  }
}

function measured(
  flags: Flags,
  engines: readonly EngineOptions[],
  classes: Readonly<Record<string, SloClass>>,
  terminal: Terminal,
): Capacity {
  terminal.err('measuring the capacity of the bare fleet…\n')
  const capacity = findCapacity({ engines, classes, seed: flags.seed, ...workloadOf(flags) })
  if (capacity.ratePerSec > 0) return capacity
  throw new RangeError(
    'the bare fleet keeps 90 % of requests good at no rate at all: relax the classes, or give --rate',
  )
}

function runOne(
  flags: Flags,
  engines: readonly EngineOptions[],
  classes: Readonly<Record<string, SloClass>>,
  ratePerSec: number,
  scheduler: string,
): SimReport {
  const { workload, ...shape } = workloadOf(flags)
  const priors = flags.prior ? { [flags.profile]: priorOf(flags.profile) } : {}
  const result = simulate({
    replicas: engines.map((engine) => ({ engine })),
    requests: generateWorkload({
      seed: flags.seed,
      segments: steadyRate(ratePerSec, flags.duration),
      ...shape,
      ...(workload === undefined ? {} : { classes: workload }),
    }),
    createScheduler: () => {
      const entry = schedulers.get(scheduler)
      if (entry === undefined) throw new RangeError(`unknown scheduler ${scheduler}`)
      return entry.create({ priors })
    },
    classes,
    seed: flags.seed,
  })
  return summarize(result, flags.duration * WARM_SHARE, flags.duration)
}

function workloadOf({ mix, lengthRatio, burst }: Flags) {
  return { lengthRatio, gapCv: burst, ...(mix === undefined ? {} : { workload: mix }) }
}

function enginesOf(flags: Flags): readonly EngineOptions[] {
  const { maxNumSeqs, maxNumBatchedTokens } = flags
  const engine: EngineOptions = {
    profile: profile(flags.profile),
    jitterRatio: STEP_JITTER_RATIO,
    ...(maxNumSeqs === undefined ? {} : { maxNumSeqs }),
    ...(maxNumBatchedTokens === undefined ? {} : { maxNumBatchedTokens }),
  }
  return Array.from({ length: flags.replicas }, () => engine)
}

function schedulersArgument(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  for (const name of names) {
    if (!schedulers.has(name)) {
      throw new InvalidArgumentError(`"${name}" is none of ${[...schedulers.keys()].join(', ')}.`)
    }
  }
  return names
}

function countArgument(text: string): number {
  const count = wholeArgument(text)
  if (count < 1) throw new InvalidArgumentError('It must be at least 1.')
  return count
}
