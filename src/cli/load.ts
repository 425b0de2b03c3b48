/** `sluice load`: open-loop load by class against any OpenAI-compatible address, judged as Sluice judges. */
import { Command, Option } from 'commander'
import { createLogUpdate } from 'log-update'
import type { Ms } from '../core/units.ts'
import { firstModel } from '../load/first-model.ts'
import { measureLoopLag } from '../load/loop-lag.ts'
import { type LoadPhase, planLoad } from '../load/plan.ts'
import { createRecentResults } from '../load/recent.ts'
import { type LoadReport, reportLoad } from '../load/report.ts'
import { type LengthRule, runLoad } from '../load/run.ts'
import { createTally } from '../load/tally.ts'
import type { WorkloadClass } from '../sim/workload-types.ts'
import {
  classesFrom,
  durationOption,
  type LoadFlags,
  mixArgument,
  phasesOf,
  positiveArgument,
  positivesArgument,
  urlArgument,
  wholeArgument,
} from './load-options.ts'
import { progressLine, reportText } from './load-report.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

interface Flags extends LoadFlags {
  readonly mix?: readonly WorkloadClass[]
  readonly class?: string
  readonly seed: number
  readonly model?: string
  readonly lengthRatio: number
  readonly retries: number
  readonly lengths: LengthRule
  readonly drain: Ms
  readonly keyEnv: string
  readonly format: 'text' | 'json'
}

/** What settled longer ago is no longer shown as the run's present. */
const RECENT_MS: Ms = 5000

const EXAMPLES = `
Examples:
  sluice load http://127.0.0.1:8080 --rate 10 --duration 60s
  sluice load http://127.0.0.1:8080 --load 0.5,1,2 --capacity 12 --duration 3m --class sluice.yaml
  sluice load http://10.0.0.11:8000 http://10.0.0.12:8000 --rate 10 --mix chat=3,agent=1 --format json

Requests are sent at planned instants whatever became of those before; TTFT counts from the planned instant.
Answers end where the server ends them; --lengths exact makes them as long as planned (ignore_eos, for vLLM and
SGLang), and simulated does so on \`sluice engine\` without telling anyone the length beforehand.
Several addresses are taken in turn. The same seed sends the same prompts: an engine's prefix cache may still hold
them from an earlier run, so take another seed for each run that is to be cold.`

/** The command. */
export function loadCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('load')
    .description(
      'send open-loop load by class to an OpenAI-compatible address; report goodput and percentiles',
    )
    .argument('<url...>', 'base address, e.g. http://127.0.0.1:8080', urlArgument)
    .option(
      '--rate <per second>',
      'requests per second; several, with commas, run one after another',
      positivesArgument,
    )
    .option('--load <times>', 'the same in times of --capacity, e.g. 0.5,1,2', positivesArgument)
    .option('--capacity <per second>', 'the rate that --load multiplies', positiveArgument)
    .addOption(durationOption('--duration <time>', 'of all loads together', 60_000))
    .option('--mix <shares>', 'workloads, e.g. chat=3,voice=1 (default: all five)', mixArgument)
    .option(
      '--class <file>',
      'configuration file whose classes are the promises (default: the built-in ones)',
    )
    .option('--seed <number>', 'of arrivals, lengths and prompts', wholeArgument, 1)
    .option('--model <name>', 'model to ask for (default: the first of /v1/models)')
    .option('--length-ratio <ratio>', 'every length times this', positiveArgument, 1)
    .addOption(
      new Option('--lengths <rule>', 'who ends an answer: the server, or the plan')
        .choices(['server', 'exact', 'simulated'])
        .default('server'),
    )
    .option('--retries <times>', 'send shed requests again after the wait they were told', wholeArgument, 0)
    .addOption(durationOption('--drain <time>', 'wait for answers after the last request', 30_000))
    .option('--key-env <name>', 'environment variable that holds the API key', 'OPENAI_API_KEY')
    .addOption(new Option('--format <format>', 'how to report').choices(['text', 'json']).default('text'))
    .addHelpText('after', EXAMPLES)
    .action((urls: readonly string[], flags: Flags, command: Command) => {
      const phases = phasesOf(flags)
      if (typeof phases === 'string') command.error(`error: ${phases}`)
      return load(urls, flags, phases, terminal)
    })
}

async function load(
  urls: readonly string[],
  flags: Flags,
  phases: readonly LoadPhase[],
  terminal: Terminal,
): Promise<void> {
  const stop = new AbortController()
  const onSignal = () => stop.abort()
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    const report = await measure(urls, flags, phases, terminal, stop.signal)
    const { format, seed, duration: durationMs } = flags
    const whole = { urls, seed, durationMs, ...report }
    terminal.out(
      format === 'json' ? `${JSON.stringify(whole, null, 2)}\n` : `${reportText(report, terminal.colors)}\n`,
    )
    terminal.exitWith(report.all.completedRequests === 0 ? 1 : 0)
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
  }
}

async function measure(
  urls: readonly string[],
  flags: Flags,
  phases: readonly LoadPhase[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<LoadReport> {
  const { seed, mix, lengthRatio, retries, lengths, drain: drainMs } = flags
  const apiKey = terminal.env[flags.keyEnv]
  const key = apiKey === undefined ? {} : { apiKey }
  const classes = await classesFrom(flags.class, terminal)
  const model = flags.model ?? (await firstModel(urls[0] ?? '', apiKey))
  const plan = planLoad({ seed, phases, classes, lengthRatio, ...(mix === undefined ? {} : { mix }) })
  const tally = createTally()
  const recent = createRecentResults(RECENT_MS)
  const lag = measureLoopLag()
  const startAtMs = performance.now()
  let phase = phases[0]?.name ?? ''
  const line = () =>
    progressLine(
      performance.now() - startAtMs,
      phase,
      recent.summary(performance.now()),
      tally.summary(),
      lag.p99Ms(),
    )
  const title = `load: ${model} at ${urls.join(', ')}, ${phases.map(({ name }) => name).join(', ')}`
  const progress = showProgress(title, line, terminal)
  try {
    await runLoad({
      ...{ urls, model, plan, seed, lengths, retries, drainMs, signal, ...key },
      onOffered(planned) {
        phase = planned.phase
        tally.offered(planned)
      },
      onSettled(result) {
        tally.settled(result)
        recent.add(result)
      },
    })
    return reportLoad(tally, phases, lag.p99Ms(), signal.aborted ? performance.now() - startAtMs : undefined)
  } finally {
    progress.stop()
    lag.stop()
  }
}

/** A line a second beside the results: in place on a terminal, one below the other elsewhere. */
function showProgress(title: string, line: () => string, terminal: Terminal): { stop(): void } {
  terminal.err(`${title}\n`)
  const update = process.stderr.isTTY ? createLogUpdate(process.stderr) : undefined
  const show = update ?? ((text: string) => terminal.err(`${text}\n`))
  const timer = setInterval(() => show(line()), 1000)
  return {
    stop() {
      clearInterval(timer)
      update?.done()
    },
  }
}
