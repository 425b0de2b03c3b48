/** `sluice simulate`: a workload against a simulated fleet in virtual time, schedulers side by side. */
import { Command, Option } from 'commander'
import { schedulers } from '../policies/registry.ts'
import { checkFaults } from '../sim/faults.ts'
import { NAMED_WORKLOADS } from '../sim/workloads.ts'
import {
  durationArgument,
  mixArgument,
  positiveArgument,
  positivesArgument,
  wholeArgument,
} from './load-options.ts'
import { fleetOf } from './simulate-fleet.ts'
import {
  arrivalsArgument,
  CLIENTS,
  countArgument,
  disaggregationArgument,
  faultArgument,
  schedulersArgument,
  shareArgument,
  speculationArgument,
  workloadArgument,
} from './simulate-options.ts'
import { goodputText, simulationText } from './simulate-report.ts'
import { type Flags, findAll, runAll, type Work } from './simulate-runs.ts'
import { chooseSource, type SourceFlags } from './simulate-source.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

/** How patience differs between clients: deviation of its logarithm. */
const PATIENCE_SIGMA = 0.5

const EXAMPLES = `
Examples:
  sluice simulate --profile Llama-3.1-8B/H100-80G-SXM/tp1 --replicas 4 --load 0.8,1,2
  sluice simulate --config sluice.yaml --workload long-prompts --find-goodput
  sluice simulate --trace conversations.csv --rate 40 --scheduler sluice,limit-16 --format json
  sluice simulate --load 1.5 --arrivals bursts:5s:15s:2.5 --clients sdk --fault slow=0.5@20s/0

Faults, then @FROM or @FROM-TO, then /REPLICA (from 0), e.g. slow=0.5@20s-40s/1:
  slow=RATIO         the replica runs at that part of its speed
  dead               it is gone; after TO an empty one answers
  frozen-metrics     its metrics page says the same again and again; without /REPLICA all of them
  lost-metrics       its metrics page does not answer; without /REPLICA all of them
  late-metrics=TIME  all metrics pages are known so much later
  tokenizer=RATIO    prompts are counted as so many times their tokens
  estimator=RATIO    with --prior: what Sluice is told is so many times the truth

--load is in times of capacity: the highest rate at which the bare fleet keeps 90 % of requests good. It is measured
first, which takes some seconds; --rate does without. A trace runs at the rate it was recorded at, unless told
otherwise. Schedulers: ${[...schedulers.keys()].join(', ')}.`

/** The command. */
export function simulateCommand(terminal: Terminal = systemTerminal): Command {
  const command = new Command('simulate').description(
    'run a workload against a simulated fleet in virtual time, schedulers side by side',
  )
  addRunOptions(command)
  addSourceOptions(command)
  addFleetOptions(command)
  return command.addHelpText('after', EXAMPLES).action(async (flags: Flags) => {
    if (flags.rate !== undefined && flags.load !== undefined) {
      command.error('error: give either --rate or --load, not both')
    }
    if (!flags.prior && flags.fault?.some(({ kind }) => kind === 'estimatorBias')) {
      command.error('error: the fault "estimator" changes what --prior tells: give --prior too')
    }
    terminal.out(await answer(flags, terminal))
  })
}

function addRunOptions(command: Command): void {
  command
    .optionsGroup('Runs:')
    .option('--rate <per second>', 'requests per second; several with commas', positivesArgument)
    .option('--load <times>', 'the same in times of capacity (default: 1)', positivesArgument)
    .option(
      '--duration <time>',
      'of each run, its first sixth uncounted (default: 60s, or the trace)',
      durationArgument,
    )
    .option('--scheduler <names>', 'several with commas', schedulersArgument, ['sluice', 'round-robin'])
    .option('--find-goodput', 'instead: the highest rate at which enough requests are good', false)
    .option('--good <share>', 'how many that is', shareArgument, 0.9)
    .option('--seed <number>', 'of arrivals, lengths, clients and step times', wholeArgument, 1)
    .addOption(new Option('--format <format>', 'how to report').choices(['text', 'json']).default('text'))
}

function addSourceOptions(command: Command): void {
  const names = [...NAMED_WORKLOADS.keys()].join(', ')
  command
    .optionsGroup('Requests:')
    .option('--workload <name>', names, workloadArgument, 'mixed')
    .option('--mix <shares>', 'instead: some of the five classes, e.g. chat=3,voice=1', mixArgument)
    .option(
      '--arrivals <process>',
      'poisson, gamma:CV, bursts:ON:OFF:TIMES, diurnal:PERIOD:SWING',
      arrivalsArgument,
    )
    .option('--length-ratio <ratio>', 'every length times this', positiveArgument, 1)
    .option('--trace <file>', 'instead: Azure 2023, Mooncake or plain CSV, may be gzipped')
    .option('--trace-class <name>', 'class of its requests that name none', 'chat')
    .addOption(
      new Option('--clients <kind>', 'what they do when refused')
        .choices(Object.keys(CLIENTS))
        .default('patient'),
    )
    .option(
      '--give-up <time>',
      'mean patience of clients without a first token (default: endless)',
      durationArgument,
    )
}

function addFleetOptions(command: Command): void {
  command
    .optionsGroup('Fleet:')
    .option('--config <file>', 'take promises, profile, replicas and engine arguments from it')
    .option('--model <name>', 'of the configuration (default: its first)')
    .option('--profile <id>', 'see `sluice engine --list-profiles` (default: an 8B on one H100)')
    .option('--replicas <count>', 'engines in the fleet (default: 4)', countArgument)
    .option('--max-num-seqs <count>', 'sequences in a batch', countArgument)
    .option('--max-num-batched-tokens <tokens>', 'token budget of a step', countArgument)
    .option('--kv-tokens <tokens>', 'KV cache of an engine', countArgument)
    .option('--no-chunked-prefill', 'compute each prompt in one step')
    .option('--no-prefix-caching', 'compute common prefixes again and again')
    .option('--async-scheduling', 'engines compose a step while the one before runs', false)
    .option('--priority', 'engines run classes with tighter TTFT targets first', false)
    .option(
      '--speculative <spec>',
      'guessed tokens, acceptance, cost of guessing: 4:0.7:0.05',
      speculationArgument,
    )
    .option(
      '--disaggregated <pools>',
      'prefill and decode engines in each replica, and ms to move 1000 tokens of KV: 1:1:2.6',
      disaggregationArgument,
    )
    .option('--prior', 'tell Sluice the profile, instead of letting it learn from nothing', false)
    .option('--fault <fault>', 'one of those below; repeatable', faultArgument)
}

async function answer(flags: Flags, terminal: Terminal): Promise<string> {
  const fleet = await fleetOf({ ...flags, prioritized: flags.priority }, terminal)
  checkFaults(flags.fault ?? [], fleet.engines.length)
  const work: Work = { flags, fleet, chosen: await chooseSource(sourceFlags(flags), fleet.classes), terminal }
  if (flags.findGoodput) {
    const search = findAll(work)
    return flags.format === 'json' ? `${JSON.stringify(search)}\n` : goodputText(search, terminal.colors)
  }
  const simulation = runAll(work)
  return flags.format === 'json'
    ? `${JSON.stringify(simulation)}\n`
    : simulationText(simulation, terminal.colors)
}

function sourceFlags(flags: Flags): SourceFlags {
  const patience =
    flags.giveUp === undefined ? {} : { patience: { meanMs: flags.giveUp, sigma: PATIENCE_SIGMA } }
  return { ...flags, prioritized: flags.priority, client: { ...CLIENTS[flags.clients], ...patience } }
}
