/** `sluice docs` (hidden): writes the generated parts of this repository, or says which are out of date. */
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { metricsMarkdown } from '../telemetry/metrics-markdown.ts'
import { errorTable, keyTables } from './doc-tables.ts'
import { schemaText } from './schema.ts'
import { systemTerminal, type Terminal } from './terminal.ts'

/** One generated file, or one generated region of a page that people write around it. */
interface GeneratedPart {
  readonly path: string
  /** Stands in the page between `<!-- generated: name -->` and `<!-- end: name -->`. */
  readonly region?: string
  render(): string
}

const PARTS: readonly GeneratedPart[] = [
  { path: 'config/sluice.schema.json', render: schemaText },
  { path: 'docs/configuration.md', region: 'keys', render: keyTables },
  { path: 'docs/errors.md', region: 'errors', render: errorTable },
  { path: 'docs/metrics.md', render: metricsMarkdown },
]

export function docsCommand(terminal: Terminal = systemTerminal): Command {
  return new Command('docs')
    .description('write the generated pages of this repository')
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
