/** `sluice replay`: what another configuration would have done with the requests of a log. */
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Mode } from '../config/config.ts'
import type { Ms } from '../core/units.ts'
import { profile } from '../sim/profiles.ts'
import { configFrom, durationArgument, wholeArgument } from './load-options.ts'
import type { PerModel } from './replay-engines.ts'
import { readLogs } from './replay-read.ts'
import { replayText } from './replay-report.ts'
import { replay } from './replay-run.ts'
import { countArgument } from './simulate-options.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

interface Flags {
  readonly config: string
  readonly was?: string
  readonly mode?: Mode
  readonly profile: readonly PerModel<string>[]
  readonly replicas: readonly PerModel<number>[]
  readonly from?: Ms
  readonly to?: Ms
  readonly warmUp?: Ms
  readonly seed: number
  readonly format: 'text' | 'json'
}

const EXAMPLES = `
Examples:
  sluice replay sluice.log -c new.yaml --was sluice.yaml
  sluice replay sluice.log -c sluice.yaml --mode enforce        after a day in shadow mode
  zcat old/*.gz | sluice replay - -c new.yaml --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z
  sluice replay sluice.log -c sluice.yaml --replicas 6 --format json

The requests of the log come again, when they came, into a simulated fleet under the new file: its classes, models,
limits, tenants and mode. How fast the engines are is measured in the log itself, unless --profile names them. --was
simulates the file that was in force too: how far that is from what happened tells how far the rest can be trusted.
Give the logs of all instances that share the engines. Clients that left early leave as early again; answers that were
never given are taken to be as long as others of their class.

Exit code: 0 told, 1 no log, no configuration or nothing to replay.`

export function replayCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('replay')
    .description('what another configuration would have done with the requests of a log')
    .argument(
      '<log...>',
      'what `sluice serve` wrote to its standard output; may be gzipped; - is standard input',
    )
    .requiredOption('-c, --config <file>', 'the configuration to try')
    .option('--was <file>', 'the configuration that was in force, to be simulated too')
    .addOption(
      new Option('--mode <mode>', 'in place of the mode of --config').choices(['enforce', 'shadow', 'off']),
    )
    .option(
      '--profile <id>',
      'what the engines are, for all models or as MODEL=ID (default: measured in the log)',
      profileArgument,
      [],
    )
    .option(
      '--replicas <count>',
      'in place of those of the files, for all models or as MODEL=COUNT',
      replicasArgument,
      [],
    )
    .option(
      '--from <time>',
      'only requests that came at or after it, e.g. 2026-01-31T12:00:00Z',
      timeArgument,
    )
    .option('--to <time>', 'only requests that came before it', timeArgument)
    .option('--warm-up <time>', 'uncounted at the start (default: a sixth, 1m at most)', durationArgument)
    .option('--seed <number>', 'of step times', wholeArgument, 1)
    .addOption(new Option('--format <format>', 'how to report').choices(['text', 'json']).default('text'))
    .addHelpText('after', EXAMPLES)
    .action(async (files: readonly string[], flags: Flags) => {
      terminal.out(await answer(files, flags, terminal))
    })
}

async function answer(files: readonly string[], flags: Flags, terminal: Terminal): Promise<string> {
  const now = await configFrom('--config', flags.config, terminal)
  const was = flags.was === undefined ? undefined : await configFrom('--was', flags.was, terminal)
  terminal.err(`reading ${files.join(', ')}…\n`)
  const span = {
    ...(flags.from === undefined ? {} : { fromMs: flags.from }),
    ...(flags.to === undefined ? {} : { toMs: flags.to }),
  }
  const { logged, remarks } = await readLogs(files, span, terminal)
  const result = replay({
    requests: logged.requests,
    now,
    ...(was === undefined ? {} : { was }),
    ...(flags.mode === undefined ? {} : { mode: flags.mode }),
    profiles: flags.profile,
    replicas: flags.replicas,
    ...(flags.warmUp === undefined ? {} : { warmUpMs: flags.warmUp }),
    seed: flags.seed,
    onRun: (which) =>
      terminal.err(
        `simulating ${logged.requests.length} requests under ${which === 'now' ? flags.config : flags.was}…\n`,
      ),
  })
  const { requests: _, ...log } = logged
  const { config, was: wasConfig } = flags
  const report = {
    files,
    config,
    ...(wasConfig === undefined ? {} : { wasConfig }),
    logged: log,
    replay: result,
    remarks,
  }
  return flags.format === 'json' ? `${JSON.stringify(report)}\n` : replayText(report, terminal.colors)
}

/** `VALUE` or `MODEL=VALUE`; several options make a list. */
function perModel<Value>(
  text: string,
  earlier: readonly PerModel<Value>[],
  read: (text: string) => Value,
): readonly PerModel<Value>[] {
  const at = text.lastIndexOf('=')
  if (at < 0) return [...earlier, { value: read(text) }]
  return [...earlier, { model: text.slice(0, at), value: read(text.slice(at + 1)) }]
}

function profileArgument(text: string, earlier: readonly PerModel<string>[]): readonly PerModel<string>[] {
  return perModel(text, earlier, (id) => {
    try {
      return profile(id).id
    } catch (cause) {
      throw new InvalidArgumentError(cause instanceof Error ? cause.message : String(cause))
    }
  })
}

function replicasArgument(text: string, earlier: readonly PerModel<number>[]): readonly PerModel<number>[] {
  return perModel(text, earlier, countArgument)
}

function timeArgument(text: string): Ms {
  const unixMs = Date.parse(text)
  if (Number.isFinite(unixMs)) return unixMs
  throw new InvalidArgumentError('It must be a time such as 2026-01-31T12:00:00Z.')
}
