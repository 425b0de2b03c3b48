/** `sluice validate`: checks files as `serve` would, and shows how they were understood. */
import { Command, Option } from 'commander'
import pc from 'picocolors'
import type { Config } from '../config/config.ts'
import { type LoadResult, loadConfig } from '../config/load.ts'
import type { Problem } from '../config/problem.ts'
import { readConfigText } from '../config/read.ts'
import { profileAdvice } from './engine-advice.ts'
import { PROFILE_FACTS } from './profile-facts.ts'
import { showConfig } from './show-config.ts'
import { showProblem } from './show-problem.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

const EXAMPLES = `
Examples:
  sluice validate sluice.yaml
  sluice validate --strict --format json config/*.yaml
  helm template . | yq .data.config | sluice validate -

Exit code: 0 every file is valid, 1 one is not, 2 wrong usage.
`

interface ValidateOptions {
  readonly format: 'text' | 'json'
  readonly strict: boolean
  readonly quiet: boolean
}

interface Checked {
  readonly fileName: string
  readonly text: string | undefined
  readonly result: LoadResult
}

export function validateCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('validate')
    .description('check configuration files and show what they say')
    .argument('<files...>', 'YAML files; - for stdin')
    .addOption(new Option('--format <format>', 'how to report').choices(['text', 'json']).default('text'))
    .option('--strict', 'count warnings as errors', false)
    .option('-q, --quiet', 'show problems only; nothing for a file without any', false)
    .addHelpText('after', EXAMPLES)
    .action(async (files: string[], options: ValidateOptions) => {
      const checked: Checked[] = []
      for (const file of files) checked.push(await check(file, terminal))
      terminal.out(
        options.format === 'json' ? asJson(checked, options) : asText(checked, options, terminal.colors),
      )
      terminal.exitWith(checked.every((file) => passes(file, options)) ? 0 : 1)
    })
}

async function check(file: string, terminal: Terminal): Promise<Checked> {
  const fileName = file === '-' ? '<stdin>' : file
  const read = file === '-' ? await terminal.readStdin() : await readConfigText(file)
  if (typeof read !== 'string') return { fileName, text: undefined, result: { ok: false, problems: [read] } }
  return {
    fileName,
    text: read,
    result: loadConfig(read, { fileName, env: terminal.env, profiles: PROFILE_FACTS }),
  }
}

const problemsOf = (result: LoadResult): readonly Problem[] => (result.ok ? result.warnings : result.problems)

function passes({ result }: Checked, { strict }: ValidateOptions): boolean {
  return result.ok && !(strict && result.warnings.length > 0)
}

function asText(checked: readonly Checked[], options: ValidateOptions, colors: boolean): string {
  const paint = pc.createColors(colors)
  const parts = checked.map((file) => {
    const { fileName, text, result } = file
    const problems = problemsOf(result).map((problem) => `${showProblem(problem, text, colors)}\n`)
    const good = passes(file, options)
    const counts = countProblems(problemsOf(result))
    const title = good ? paint.green(`${fileName} is valid`) : paint.red(`${fileName} is not valid`)
    const silent = options.quiet && good && counts === ''
    const verdict = silent ? '' : `${title}${counts === '' ? '' : `: ${counts}`}\n`
    const summary =
      result.ok && !options.quiet
        ? `\n${showConfig(result.config, colors)}${adviceText(result.config, paint.bold)}`
        : ''
    return `${problems.join('')}${verdict}${summary}`
  })
  return parts.filter((part) => part !== '').join('\n')
}

/** What the profiles say of the promises; nothing for models without one. */
function adviceText(config: Config, bold: (text: string) => string): string {
  return profileAdvice(config)
    .map(({ model, profile, sequences, contextTokens, sentences }) => {
      const title = `advice for ${model}, by ${profile} with ${sequences} streams of ${contextTokens} tokens`
      return `\n${bold(title)}\n${sentences.map((sentence) => `  ${sentence}\n`).join('')}`
    })
    .join('')
}

function countProblems(problems: readonly Problem[]): string {
  return (['error', 'warning'] as const)
    .map((severity) => ({
      severity,
      found: problems.filter((problem) => problem.severity === severity).length,
    }))
    .filter(({ found }) => found > 0)
    .map(({ severity, found }) => `${found} ${severity}${found === 1 ? '' : 's'}`)
    .join(', ')
}

function asJson(checked: readonly Checked[], options: ValidateOptions): string {
  const files = checked.map((file) => ({
    file: file.fileName,
    valid: passes(file, options),
    ...(file.result.ok && {
      digest: file.result.config.digest,
      mode: file.result.config.mode,
      advice: profileAdvice(file.result.config),
    }),
    problems: problemsOf(file.result),
  }))
  return `${JSON.stringify({ files }, undefined, 2)}\n`
}
