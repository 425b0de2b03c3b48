/** `sluice export`: writes rules, SLO definitions and dashboards for the tools that people already have. */
import { writeFile } from 'node:fs/promises'
import { basename, dirname, relative, resolve } from 'node:path'
import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { formatProblem } from '../config/problem.ts'
import { readConfig } from '../config/read.ts'
import { DASHBOARDS, type DashboardName, dashboardText } from '../exports/dashboards/all.ts'
import { opensloDocuments } from '../exports/openslo.ts'
import { prometheusRule, ruleFile } from '../exports/prometheus.ts'
import { pyrraObjects } from '../exports/pyrra.ts'
import { DEFAULT_RULE_OPTIONS, type RuleOptions } from '../exports/rule.ts'
import { ruleTests } from '../exports/rule-tests.ts'
import { slothPeriod, slothSpec } from '../exports/sloth.ts'
import { yamlText } from '../exports/yaml-text.ts'
import { burnPairs } from '../slo/burn-rate.ts'
import { wholeArgument } from './load-options.ts'
import { PROFILE_FACTS } from './profile-facts.ts'
import { sloCatalog } from './samples.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

const EXAMPLES = `
Examples:
  sluice export prometheus -c sluice.yaml -o sluice-rules.yml --tests sluice-rules.test.yml
  promtool check rules sluice-rules.yml && promtool test rules sluice-rules.test.yml
  sluice export prometheus --kubernetes --label release=kube-prometheus-stack | kubectl apply -f -
  sluice export sloth -c sluice.yaml -o slos.yml && sloth generate -i slos.yml
  sluice export openslo -c sluice.yaml
  sluice export pyrra -c sluice.yaml --label release=kube-prometheus-stack | kubectl apply -f -
  sluice export grafana slo > sluice-slo.json
`

interface OutputFlag {
  readonly output: string
}

interface RuleFlags extends OutputFlag {
  readonly config?: string
  readonly tests?: string
  readonly by: readonly string[]
  readonly minEvents: number
  readonly runbook: string
  readonly kubernetes: boolean
  readonly label: Readonly<Record<string, string>>
}

interface SpecFlags extends OutputFlag {
  readonly config: string
  readonly runbook: string
  readonly label?: Readonly<Record<string, string>>
}

export function exportCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('export')
    .description('write alert rules, SLO definitions and dashboards for other tools')
    .addHelpText('after', EXAMPLES)
    .addCommand(prometheusCommand(terminal))
    .addCommand(specCommand('sloth', 'a specification for `sloth generate`', terminal, slothText))
    .addCommand(specCommand('openslo', 'OpenSLO documents (openslo/v1)', terminal, opensloText))
    .addCommand(
      specCommand('pyrra', "objects of Pyrra's, and the recording rule they need", terminal, pyrraText)
        // By which the operator finds the rules.
        .addOption(labelOption()),
    )
    .addCommand(grafanaCommand(terminal))
}

function prometheusCommand(terminal: Terminal): Command {
  return new Command('prometheus')
    .description('recording rules and alerts; they hold for any classes, so that a reload leaves them right')
    .option('-c, --config <file>', 'take the SLO period from this file, - for stdin (default: 30 days)')
    .option('-o, --output <file>', 'where to write; - for stdout', '-')
    .option('--tests <file>', 'also write tests of the rules for `promtool test rules`; needs --output')
    .option('--by <label>', 'one more label that tells promises apart, e.g. product', labelArgument, [])
    .option(
      '--min-events <count>',
      'judged requests below which nothing alerts',
      wholeArgument,
      DEFAULT_RULE_OPTIONS.minEvents,
    )
    .addOption(runbookOption())
    .option('--kubernetes', 'write a PrometheusRule for the Prometheus operator', false)
    .addOption(labelOption())
    .action(async (flags: RuleFlags) => {
      const config = flags.config === undefined ? undefined : await loaded(flags.config, terminal)
      if (flags.config !== undefined && config === undefined) return
      await exportRules(flags, config?.slo.windowMs ?? DEFAULT_RULE_OPTIONS.periodMs, terminal)
    })
}

async function exportRules(flags: RuleFlags, periodMs: number, terminal: Terminal): Promise<void> {
  const { by, minEvents, runbook, kubernetes, label, output, tests } = flags
  if (tests !== undefined && (output === '-' || kubernetes)) {
    throw new Error('--tests names the rules by their file: give --output, and leave --kubernetes out')
  }
  const options: RuleOptions = { periodMs, minEvents, by, runbook }
  if (burnPairs(periodMs).length === 0) {
    terminal.err(
      'warning: slo.window is too short for burn-rate alerts (45 hours is the least); none are written\n',
    )
  }
  const rules = kubernetes ? prometheusRule(options, label) : ruleFile(options)
  await put(output, yamlText(RULE_COMMENT, rules), terminal)
  if (tests === undefined) return
  const path = relative(dirname(resolve(tests)), resolve(output))
  await put(tests, yamlText(testComment(basename(tests)), ruleTests(options, path)), terminal)
}

export const RULE_COMMENT = `Written by \`sluice export prometheus\`.
Records keep the names and labels of Sloth, so that dashboards made for it work. Objectives are read from
sluice_slo_objective_ratio: a class that is added or changed by a reload needs no new rules.`

export function testComment(file: string): string {
  return `Tests of the rules: promtool test rules ${file}`
}

function specCommand(
  name: string,
  description: string,
  terminal: Terminal,
  textOf: (config: Config, flags: SpecFlags) => string,
): Command {
  return new Command(name)
    .description(`${description}, one SLO for each model and class with an objective`)
    .requiredOption('-c, --config <file>', 'the configuration; - for stdin')
    .option('-o, --output <file>', 'where to write; - for stdout', '-')
    .addOption(runbookOption())
    .action(async (flags: SpecFlags) => {
      const config = await loaded(flags.config, terminal)
      if (config !== undefined) await put(flags.output, textOf(config, flags), terminal)
    })
}

function slothText(config: Config, { runbook }: SpecFlags): string {
  const catalog = sloCatalog(config)
  const comment = `Written by \`sluice export sloth\`, for: sloth generate --default-slo-period ${slothPeriod(catalog)} -i THIS`
  return yamlText(comment, slothSpec(catalog, runbook))
}

function opensloText(config: Config): string {
  return yamlText('Written by `sluice export openslo`.', ...opensloDocuments(sloCatalog(config)))
}

function pyrraText(config: Config, { label = {} }: SpecFlags): string {
  return yamlText('Written by `sluice export pyrra`.', ...pyrraObjects(sloCatalog(config), label))
}

function grafanaCommand(terminal: Terminal): Command {
  const names = Object.keys(DASHBOARDS) as DashboardName[]
  return new Command('grafana')
    .description(`a dashboard as Grafana's JSON: ${names.join(' or ')}`)
    .addArgument(new Argument('<dashboard>', 'which one').choices(names))
    .option('-o, --output <file>', 'where to write; - for stdout', '-')
    .action((name: DashboardName, { output }: OutputFlag) => put(output, dashboardText(name), terminal))
}

function runbookOption(): Option {
  return new Option('--runbook <url>', 'where your people read docs/runbook.md').default(
    DEFAULT_RULE_OPTIONS.runbook,
  )
}

function labelOption(): Option {
  return new Option('--label <name=value>', 'a label of the objects, by which the operator finds them')
    .argParser(pairArgument)
    .default({})
}

/** Undefined, with the problems told and exit code 1, when the file is not valid. */
async function loaded(path: string, terminal: Terminal): Promise<Config | undefined> {
  const how = { env: terminal.env, profiles: PROFILE_FACTS }
  const result =
    path === '-'
      ? loadConfig(await terminal.readStdin(), { ...how, fileName: '<stdin>' })
      : await readConfig(path, how)
  if (result.ok) return result.config
  for (const problem of result.problems) terminal.err(`${formatProblem(problem)}\n`)
  terminal.exitWith(1)
  return undefined
}

async function put(path: string, text: string, terminal: Terminal): Promise<void> {
  if (path === '-') return terminal.out(text)
  await writeFile(path, text)
  terminal.err(`${path} written\n`)
}

function labelArgument(value: string, before: readonly string[]): readonly string[] {
  if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(value)) throw new InvalidArgumentError('a label name, e.g. product')
  if (['model', 'class', 'sli'].includes(value))
    throw new InvalidArgumentError(`${value} always tells them apart`)
  return before.includes(value) ? before : [...before, value]
}

function pairArgument(
  value: string,
  before: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const [, name, text] = /^([^=]+)=(.*)$/.exec(value) ?? []
  if (name === undefined || text === undefined) {
    throw new InvalidArgumentError('name=value, e.g. release=kube-prometheus-stack')
  }
  return { ...before, [name]: text }
}
