/** `sluice docs` (hidden): writes the generated parts of this repository, or says which are out of date. */
import { readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { dashboardText } from '../exports/dashboards/all.ts'
import { prometheusRule, ruleFile } from '../exports/prometheus.ts'
import { DEFAULT_RULE_OPTIONS } from '../exports/rule.ts'
import { ruleTests } from '../exports/rule-tests.ts'
import { yamlText } from '../exports/yaml-text.ts'
import { metricsMarkdown } from '../telemetry/metrics-markdown.ts'
import { alertTable, errorTable, keyTables } from './doc-tables.ts'
import { RULE_COMMENT, testComment } from './export.ts'
import { schemaText } from './schema.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

/** One generated file, or one generated region of a page that people write around it. */
interface GeneratedPart {
  readonly path: string
  /** Stands in the page between `<!-- generated: name -->` and `<!-- end: name -->`. */
  readonly region?: string
  render(): string
}

const RULE_FILE = 'dashboards/sluice-rules.yml'
const TEST_FILE = 'dashboards/sluice-rules.test.yml'

const PARTS: readonly GeneratedPart[] = [
  { path: 'config/sluice.schema.json', render: schemaText },
  { path: 'docs/configuration.md', region: 'keys', render: keyTables },
  { path: 'docs/errors.md', region: 'errors', render: errorTable },
  { path: 'docs/metrics.md', render: metricsMarkdown },
  { path: 'docs/alerting.md', region: 'alerts', render: alertTable },
  { path: RULE_FILE, render: () => yamlText(RULE_COMMENT, ruleFile(DEFAULT_RULE_OPTIONS)) },
  {
    path: TEST_FILE,
    render: () =>
      yamlText(testComment(basename(TEST_FILE)), ruleTests(DEFAULT_RULE_OPTIONS, basename(RULE_FILE))),
  },
  {
    path: 'config/kubernetes/prometheus-rule.yaml',
    render: () => yamlText(RULE_COMMENT, prometheusRule(DEFAULT_RULE_OPTIONS, {})),
  },
  { path: 'dashboards/sluice-slo.json', render: () => dashboardText('slo') },
  { path: 'dashboards/sluice-engines.json', render: () => dashboardText('engines') },
]

export function docsCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('docs')
    .description('write the generated pages and files of this repository')
    .option('--check', 'write nothing; exit 1 when a page is out of date', false)
    .option('--root <folder>', 'the repository', fileURLToPath(new URL('../../', import.meta.url)))
    .action(async ({ check, root }: { check: boolean; root: string }) => {
      const stale: string[] = []
      for (const path of new Set(PARTS.map((part) => part.path))) {
        const file = `${root.replace(/\/$/, '')}/${path}`
        const before = await readOrEmpty(file)
        const after = PARTS.filter((part) => part.path === path).reduce(put, before)
        if (after === before) continue
        stale.push(path)
        if (!check) await writeFile(file, after)
      }
      if (!check) return terminal.out(stale.map((path) => `${path} written\n`).join('') || 'all up to date\n')
      for (const path of stale)
        terminal.err(`${path} is out of date: run \`npm run docs:gen\` and commit it\n`)
      terminal.exitWith(stale.length === 0 ? 0 : 1)
    })
}

/** The file with that part renewed. */
function put(file: string, { path, region, render }: GeneratedPart): string {
  if (region === undefined) return render()
  const [start, end] = [`<!-- generated: ${region} -->`, `<!-- end: ${region} -->`]
  const from = file.indexOf(start)
  const to = file.indexOf(end)
  if (from < 0 || to < from) throw new Error(`${path} has no lines "${start}" and "${end}"`)
  return `${file.slice(0, from + start.length)}\n${render()}${file.slice(to)}`
}

async function readOrEmpty(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
