/** Holds the pages to the code: links resolve, named files exist, and each invariant has the test that it names. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ERROR_TABLE } from '../src/errors.ts'
import { ruleGroups } from '../src/exports/prometheus.ts'
import { DEFAULT_RULE_OPTIONS, isAlert } from '../src/exports/rule.ts'
import { METRIC_ROWS } from '../src/telemetry/metric-table.ts'
import { KNOWN_REPORTS } from './support/known-reports.ts'
import { titlesIn } from './support/test-titles.ts'

const ROOT = new URL('../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')
const exists = (path: string): boolean => existsSync(new URL(path, ROOT))

const scripts = JSON.parse(read('package.json')).scripts as Record<string, string | undefined>

const pages = [
  ...readdirSync(new URL('docs/', ROOT), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
  ...readdirSync(ROOT),
].filter((name) => name.endsWith('.md'))

describe('the pages', () => {
  it('are found', () => {
    expect(pages).toContain('docs/lifecycle.md')
    expect(pages).toContain('CONTRIBUTING.md')
  })

  it.each(pages)('%s links only to what exists', (page) => {
    const targets = [...read(page).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, target]) => target ?? '')
    const local = targets.filter((target) => !/^[a-z]+:/.test(target))
    const broken = local.filter((target) => !existsSync(new URL(target, new URL(page, ROOT))))
    expect(broken).toEqual([])
  })

  it.each(pages)('%s names only files that exist', (page) => {
    const named = [...read(page).matchAll(/`((?:src|test|docs|config|bench|dashboards)\/[\w./-]+)`/g)]
    const missing = named.map(([, path]) => path ?? '').filter((path) => !exists(path))
    expect(missing).toEqual([])
  })

  it.each(pages)('%s names only metrics that there are', (page) => {
    const known = new Set(METRIC_ROWS.map(([, row]) => row.name))
    const named = [...read(page).matchAll(/\bsluice_[a-z][a-z_]+/g)].map(([name]) => name)
    const unknown = named.filter(
      (name) => !known.has(name) && !known.has(name.replace(/_(bucket|sum|count)$/, '')),
    )
    expect(unknown).toEqual([])
  })

  it.each(pages)('%s names only npm scripts that there are', (page) => {
    const named = [...read(page).matchAll(/\bnpm run ([a-z][\w:-]*)/g)].map(([, name]) => name ?? '')
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([])
  })

  it('name in one list every command that prints figures', () => {
    const list = read('docs/measurements.md')
    const benches = Object.keys(scripts).filter((name) => name.startsWith('bench:'))
    expect(benches.length).toBeGreaterThan(10)
    expect(benches.filter((name) => !list.includes(`npm run ${name}`))).toEqual([])
    const sections = [...read('docs/goodput.md').matchAll(/^By `(.*)`\.$/gm)].map(
      ([, command]) => command ?? '',
    )
    expect(sections).not.toEqual([])
    expect(sections.filter((command) => !list.includes(`\`${command}\``))).toEqual([])
  })

  it('tell the story of each refusal that the gate can make', () => {
    const story = read('docs/lifecycle.md')
    const loads = Object.entries(ERROR_TABLE).filter(([, row]) => row.status === 429 || row.status >= 502)
    expect(loads.filter(([code]) => !story.includes(`\`${code}\``)).map(([code]) => code)).toEqual([])
  })

  it('have a heading for the anchor of each alert, with its three parts', () => {
    const sections = new Map(
      read('docs/runbook.md')
        .split(/^#{1,6} /m)
        .map((section) => [section.split('\n')[0]?.toLowerCase(), section] as const),
    )
    const alerts = ruleGroups(DEFAULT_RULE_OPTIONS).flatMap(({ rules }) => rules.filter(isAlert))
    expect(alerts.length).toBeGreaterThan(10)
    for (const { annotations } of alerts) {
      const section = sections.get(annotations.runbook_url.split('#')[1])
      expect(section, annotations.runbook_url).toMatch(/\*\*Means\.\*\*.*\*\*Look\.\*\*.*\*\*Do\.\*\*/s)
    }
  })

  it('keep decision records short and listed', () => {
    const records = pages.filter((page) => /^docs\/adr\/\d{4}-/.test(page))
    expect(records.length).toBeGreaterThan(5)
    const index = read('docs/adr/README.md')
    for (const record of records) {
      expect(read(record).split('\n').length, record).toBeLessThanOrEqual(40)
      expect(index).toContain(record.slice('docs/adr/'.length))
    }
  })
})

const titles = new Map<string, readonly string[]>()

function titlesOf(path: string): readonly string[] {
  const known = titles.get(path) ?? titlesIn(read(path))
  titles.set(path, known)
  return known
}

/** The tests that a row of a table names, as `path` "title": each file must exist and run a test with that in its title. */
function expectWitnesses(row: string): void {
  const witnesses = [...row.matchAll(/`(test\/[\w./-]+)` "([^"]+)"/g)]
  expect(witnesses).not.toEqual([])
  for (const [, path = '', title = ''] of witnesses) {
    expect(exists(path), path).toBe(true)
    expect(titlesOf(path), path).toContainEqual(expect.stringContaining(title))
  }
}

describe('a witness', () => {
  it('is a test that runs, and no comment, skipped test or text', () => {
    const source = [
      "describe('a group', () => {",
      "  // it('a comment', () => {})",
      "  it.skip('a skipped test', () => {})",
      "  it.skip.each(rows)('a skipped table', () => {})",
      "  it.todo('a wish')",
      "  it('a test', () => expect('a text').toBe(said('a word')))",
      "  it.each([['a row']])('a table', () => {})",
      "  it.skipIf(!HAS_TOOL)('with a tool', () => {})",
      '})',
      "describe.skip('a skipped group', () => it('in it', () => {}))",
    ]
    expect(titlesIn(source.join('\n'))).toEqual(['a group', 'a test', 'a table', 'with a tool'])
  })
})

describe('docs/invariants.md', () => {
  const rows = read('docs/invariants.md')
    .split('\n')
    .filter((line) => /^\| I\d+ \|/.test(line))

  it('numbers its laws from 1', () => {
    expect(rows.map((row) => row.split('|')[1]?.trim())).toEqual(rows.map((_, place) => `I${place + 1}`))
    expect(rows.length).toBeGreaterThan(9)
  })

  it.each(rows)('has a test for %s', expectWitnesses)
})

describe('docs/behaviours.md', () => {
  const rows = read('docs/behaviours.md')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| behaviour'))

  it('is found', () => {
    expect(rows.length).toBeGreaterThan(30)
  })

  it('has a row for each known report', () => {
    const known = new Set(rows.flatMap((row) => row.split('|')[2]?.trim().split(', ') ?? []))
    expect(new Set(KNOWN_REPORTS).size).toBe(66)
    expect(KNOWN_REPORTS.filter((report) => !known.has(report))).toEqual([])
  })

  it.each(rows)('has a test for %s', expectWitnesses)
})
