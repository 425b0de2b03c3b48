/** Holds the parts of bench/goodput.mjs to their words: tuning, remembering, robustness, tables, page and plot. Needs a build. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

type Setting = Readonly<Record<string, number>>
interface Row {
  readonly scenario: string
  readonly arm: string
  readonly load: number
  readonly seed: number
  readonly attained: number
}
interface Table {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly (string | undefined)[])[]
  readonly notes: readonly string[]
}
interface Cache {
  get(parts: unknown): unknown
  put(parts: unknown, result: unknown): void
}
interface Bench {
  tune(
    space: { axes: Record<string, readonly number[]>; start: Setting },
    scoreOf: (setting: Setting) => Promise<number>,
    rounds?: number,
  ): Promise<{ readonly setting: Setting; readonly tried: readonly unknown[] }>
  openCache(file: string): Cache
  codeDigest(roots: readonly string[], ...texts: readonly string[]): string
  packBits(flags: readonly boolean[]): string
  unpackBits(text: string, count: number): readonly boolean[]
  meanOf(values: readonly number[]): { readonly mean: number; readonly halfWidth: number }
  jainIndex(values: readonly number[]): number
  quantile(values: readonly number[], share: number): number | undefined
  besideBest(
    results: readonly object[],
    ours: string,
    rivals: readonly string[],
    loads: readonly number[],
  ): readonly {
    readonly workload: string
    readonly best: { readonly arm: string }
    readonly ratios: readonly number[]
    readonly hindsight?: {
      readonly attained: number
      readonly bound: number
      readonly ratio: number
      readonly mostRatio: number
    }
  }[]
  besideTable(beside: readonly object[], loads: readonly number[], guarded?: readonly object[]): Table
  overallTable(
    results: readonly object[],
    overall: Readonly<Record<string, object>>,
    beside: readonly object[],
    loads: readonly number[],
  ): Table
  everyoneTable(result: object, parts: readonly string[]): Table
  ablationTable(results: readonly object[], parts: readonly string[], load: number): Table
  withSections(page: string, sections: readonly object[], titles: readonly string[]): string
  jobLimitMs(spec: object): number
  untrustedTable(results: readonly object[], arm: string, rivals: readonly string[]): Table
  overWorkloads(
    rows: readonly Row[],
    arm: string,
    beside: readonly object[],
    loads: readonly number[],
  ): { readonly worst: number; readonly at: string; readonly mean: number }
  lossesTable(results: readonly object[]): Table
  scenarioTable(result: object): Table
  asText(table: object): string
  asMarkdown(table: object): string
  goodputPlot(results: readonly object[]): string
  readonly ARMS: Readonly<
    Record<string, { readonly axes?: Record<string, unknown[]>; readonly start?: object }>
  >
  readonly RIVALS: readonly string[]
  readonly BORROWERS: readonly string[]
  readonly VARIED: readonly string[]
  armOf(name: string): { readonly about: string }
  readonly PARTS: Readonly<Record<string, { readonly title: string }>>
  readonly PLANS: Readonly<Record<string, { readonly parts: readonly string[] }>>
}

const load = async (name: string): Promise<object> =>
  import(new URL(`../../bench/goodput/${name}.mjs`, import.meta.url).href)
const names = [
  'tune',
  'cache',
  'code-digest',
  'bits',
  'stats',
  'grid-tables',
  'layout',
  'plot',
  'arms',
  'everyone-tables',
  'page',
  'parts',
  'plans',
  'pool',
] as const
const bench = Object.assign({}, ...(await Promise.all(names.map(load)))) as Bench

const folder = mkdtempSync(join(tmpdir(), 'sluice-goodput-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('tuning', () => {
  const axes = { a: [1, 2, 3, 4, 5], b: [10, 20, 30] }
  const peak = ({ a = 0, b = 0 }: Setting) =>
    Promise.resolve(1 - Math.abs(a - 4) / 10 - Math.abs(b - 30) / 100)

  it('finds the peak whatever the start', async () => {
    for (const start of [
      { a: 1, b: 10 },
      { a: 5, b: 20 },
      { a: 3, b: 30 },
    ]) {
      expect((await bench.tune({ axes, start }, peak)).setting).toEqual({ a: 4, b: 30 })
    }
  })

  it('crosses a valley, and leaves the start for no gain that is noise', async () => {
    const valley = ({ a = 0 }: Setting) => Promise.resolve([0, 0.5, 0.1, 0.1, 0.1, 0.9][a] ?? 0)
    expect((await bench.tune({ axes: { a: axes.a }, start: { a: 1 } }, valley)).setting).toEqual({ a: 5 })
    const flat = ({ a = 0 }: Setting) => Promise.resolve(0.5 + a / 10_000)
    expect((await bench.tune({ axes: { a: axes.a }, start: { a: 2 } }, flat)).setting).toEqual({ a: 2 })
  })

  it('begins for every rival at a value of each axis', () => {
    for (const name of bench.RIVALS) {
      const { axes: own = {}, start = {} } = bench.ARMS[name] ?? {}
      expect(Object.keys(start), name).toEqual(Object.keys(own))
      for (const [axis, value] of Object.entries(start)) expect(own[axis], `${name} ${axis}`).toContain(value)
    }
  })
})

describe('what is remembered', () => {
  it('comes back after a restart, past a line that was torn', () => {
    const file = join(folder, 'cache.jsonl')
    bench.openCache(file).put(['cell', { load: 2 }], { good: 7 })
    writeFileSync(file, `${readFileSync(file, 'utf8')}{"key":"torn`)
    const again = bench.openCache(file)
    expect(again.get(['cell', { load: 2 }])).toEqual({ good: 7 })
    expect(again.get(['cell', { load: 3 }])).toBeUndefined()
    again.put(['cell', { load: 3 }], { good: 8 })
    expect(bench.openCache(file).get(['cell', { load: 3 }])).toEqual({ good: 8 })
  })

  it('hangs on the code that made it, through imports, and on no other', () => {
    const write = (name: string, text: string) => {
      writeFileSync(join(folder, name), text)
      return pathToFileURL(join(folder, name)).href
    }
    const root = write('root.mjs', "import {\n  leaf,\n} from './leaf.mjs'\nexport const all = [leaf]\n")
    write('leaf.mjs', 'import { twig } from "./twig.mjs"\nexport const leaf = twig\n')
    write('twig.mjs', 'export const twig = 1\n')
    write('other.mjs', 'export const other = 1\n')
    const before = bench.codeDigest([root], 'make')
    write('other.mjs', 'export const other = 2\n')
    expect(bench.codeDigest([root], 'make')).toBe(before)
    expect(bench.codeDigest([root], 'makes')).not.toBe(before)
    write('twig.mjs', 'export const twig = 2\n')
    expect(bench.codeDigest([root], 'make')).not.toBe(before)
  })

  it('packs flags and unpacks them', () => {
    const flags = Array.from({ length: 21 }, (_, index) => index % 3 === 0)
    expect(bench.unpackBits(bench.packBits(flags), 21)).toEqual(flags)
  })
})

describe('the figures', () => {
  it('have the interval of a t distribution', () => {
    const { mean, halfWidth } = bench.meanOf([1, 2, 3])
    expect(mean).toBe(2)
    expect(halfWidth).toBeCloseTo(4.303 / Math.sqrt(3), 6)
    expect(bench.meanOf([1]).halfWidth).toBeNaN()
  })

  it('call shares equal when they are', () => {
    expect(bench.jainIndex([0.5, 0.5, 0.5])).toBeCloseTo(1, 9)
    expect(bench.jainIndex([1, 0, 0, 0])).toBeCloseTo(0.25, 9)
    expect(bench.quantile([3, 1, 2, 4], 0.5)).toBe(2)
    expect(bench.quantile([], 0.5)).toBeUndefined()
  })
})

/** Attainment by arm and load, the same for both seeds but for a little. */
function resultOf(id: string, attained: Readonly<Record<string, readonly number[]>>) {
  const rows: Row[] = Object.entries(attained).flatMap(([arm, values]) =>
    values.flatMap((value, at) =>
      [1, 2].map((seed) => ({
        scenario: id,
        arm,
        load: at + 1,
        seed,
        attained: value + seed / 1000,
        classes: {},
      })),
    ),
  )
  const tuned = Object.fromEntries(Object.keys(attained).map((arm) => [arm, { setting: {} }]))
  const scenario = { id, replicas: 2, profile: 'p', workload: 'mixed' }
  const capacity = { ratePerSec: 10, saturatedPerSec: 12 }
  return { scenario, capacity, durationMs: 1000, tuned, rows }
}

const RESULTS = [
  resultOf('won', { sluice: [0.99, 0.9], 'round-robin': [0.95, 0.1], limit: [0.9, 0.7] }),
  resultOf('lost', { sluice: [0.95, 0.6], 'round-robin': [0.96, 0.1], limit: [0.9, 0.7] }),
]

describe('the tables', () => {
  it('show every cell that ours loses, the worst first, and no other', () => {
    const { title, rows } = bench.lossesTable(RESULTS)
    expect(title).toBe('Losses: 2 of 4 cells, the worst first')
    expect(rows.map(([scenario, at, , , rival]) => [scenario, at, rival])).toEqual([
      ['lost', '2x', 'limit'],
      ['lost', '1x', 'round-robin'],
    ])
  })

  it('show each arm at each load, and ours beside the best rival of that load', () => {
    const { head, rows } = bench.scenarioTable(RESULTS[0] ?? {})
    expect(head.slice(1, 3)).toEqual(['1x', '2x'])
    expect(rows.map(([arm]) => arm).slice(0, 3)).toEqual(['sluice', 'round-robin', 'limit'])
    const lead = rows.find(([name]) => name === 'ours - best rival')
    expect(lead?.slice(1, 3)).toEqual(['+4.0 ±0.0', '+20.0 ±0.0'])
    expect(rows.find(([name]) => name === 'best rival')?.slice(1, 3)).toEqual(['round-robin', 'limit'])
  })

  it('say how hard hindsight was searched for', () => {
    const schedules = [7, 9].map((moves, at) => ({ load: at + 1, seed: 1, attained: 1, starts: 5, moves }))
    const names = bench.scenarioTable({ ...RESULTS[0], schedules }).rows.map(([name]) => name)
    expect(names).toContain('best schedule found in hindsight (5 starts, 7 to 9 moves)')
  })

  it('say the same as text and as Markdown', () => {
    const table = {
      title: 'T',
      head: ['a', 'b'],
      rows: [
        ['x|y', 1],
        ['z', undefined],
      ],
      notes: ['n'],
    }
    expect(bench.asText(table)).toBe('T\na    b\nx|y  1\nz\nn')
    expect(bench.asMarkdown(table)).toBe('**T**\n\n| a | b |\n|---|---:|\n| x\\|y | 1 |\n| z |  |\n\nn')
  })
})

describe('everyone', () => {
  const won = resultOf('won', {
    sluice: [0.99, 0.9],
    'round-robin': [0.95, 0.1],
    limit: [0.9, 0.7],
    'sluice-no-kv': [0.99, 0.9],
    'sluice-no-slack': [0.98, 0.8],
    'sluice-no-floors': [0.99, 0.95],
    clairvoyant: [0.99, 0.97],
  })
  const parts = ['sluice-no-kv', 'sluice-no-slack', 'sluice-no-floors']

  it('is in one table: ours, who knows more, rivals from the best down, parts from the dearest down', () => {
    const { head, rows, notes } = bench.everyoneTable(won, parts)
    expect(rows.map(([arm]) => arm)).toEqual([
      'sluice',
      'clairvoyant',
      'limit',
      'round-robin',
      'sluice-no-slack',
      'sluice-no-kv',
      'sluice-no-floors',
    ])
    expect(head.slice(2, 6)).toEqual(['1x, % good', 'less ours', '2x, % good', 'less ours'])
    expect(rows[2]?.slice(2, 6)).toEqual(['90.1 ±0.6', '-9.0 ±0.0', '70.2 ±0.6', '-20.0 ±0.0'])
    expect(rows.at(-2)?.slice(3, 6)).toEqual(['+0.0 ±0.0', '90.1 ±0.6', '+0.0 ±0.0'])
    expect(notes[0]).toContain(
      'falls on won, neither clearly nor by 0.3 points: sluice-no-kv, sluice-no-floors.',
    )
    expect(notes[0]).toContain('Clearly better somewhere without: sluice-no-floors.')
  })

  it('has below it what hindsight reached on the seeds that were searched', () => {
    const searched = {
      ...won,
      schedules: [{ load: 2, seed: 1, attained: 0.991, starts: 5, moves: 9 }],
      bounds: [{ load: 2, seed: 1, bound: 1 }],
    }
    const { head, rows } = bench.everyoneTable(searched, parts)
    expect(rows.every((row) => row.length === head.length)).toBe(true)
    expect(rows.at(-2)?.[1]).toContain('(5 starts, 9 moves)')
    expect(rows.slice(-2).map((row) => row.slice(2, 6))).toEqual([
      ['', '', '99.1', '+9.0'],
      ['', '', '100.0', '+9.9'],
    ])
  })

  it('is shown part by part over the workloads, those that help nowhere too', () => {
    const other = resultOf('other', {
      sluice: [0.9, 0.8],
      'sluice-no-kv': [0.9, 0.8],
      'sluice-no-slack': [0.9, 0.8],
      'sluice-no-floors': [0.9, 0.74],
    })
    const { head, rows, notes } = bench.ablationTable([won, other], parts, 2)
    expect(head.slice(2)).toEqual(['mean', 'won', 'other'])
    expect(rows.map(([arm, , mean]) => [arm, mean])).toEqual([
      ['sluice', '85.2'],
      ['sluice-no-slack', '-5.0 ±0.0'],
      ['sluice-no-floors', '-0.5 ±0.0'],
      ['sluice-no-kv', '+0.0 ±0.0'],
    ])
    expect(rows[2]?.slice(3)).toEqual(['+5.0 ±0.0', '-6.0 ±0.0'])
    expect(notes[0]).toContain('falls on any workload, neither clearly nor by 0.3 points: sluice-no-kv.')
  })

  it('is said to be what it is, and each part of each plan is known', () => {
    for (const name of [...Object.keys(bench.ARMS), ...bench.VARIED])
      expect(bench.armOf(name).about, name).toMatch(/\w{3}/)
    for (const { parts: planned } of Object.values(bench.PLANS))
      expect(planned.filter((name) => bench.PARTS[name] === undefined)).toEqual([])
  })
})

describe('the page', () => {
  const table = { title: 'T', head: ['a'], rows: [[1]] }
  const titles = ['First', 'Second', 'Third']
  const section = (title: string, value: number) => ({
    title,
    command: `run ${title}`,
    tables: [{ ...table, rows: [[value]] }],
  })

  it('gets the sections of a run in their places, and keeps those of other runs', () => {
    const one = bench.withSections('', [section('Third', 3), section('First', 1)], titles)
    expect(one.match(/^## .*$/gm)).toEqual(['## First', '## Third'])
    const two = bench.withSections(one, [section('Second', 2), section('Third', 33)], titles)
    expect(two.match(/^## .*$/gm)).toEqual(['## First', '## Second', '## Third'])
    expect(two.match(/^\| \d+ \|$/gm)).toEqual(['| 1 |', '| 2 |', '| 33 |'])
    expect(two).toContain('- [Second](#second)')
    expect(two).toContain('By `run First`.')
    expect(bench.withSections(two, [], titles)).toBe(two)
    expect(bench.withSections(two, [], ['First'])).not.toContain('Second')
  })

  it('says losses before everything else', () => {
    const losses = bench.lossesTable(RESULTS)
    const page = bench.withSections('', [{ ...section('First', 1), losses }], titles)
    expect(page.indexOf('Losses: 2 of 4')).toBeLessThan(page.indexOf('**T**'))
    expect(page.indexOf('Losses: 2 of 4')).toBeGreaterThan(0)
  })
})

describe('a job', () => {
  it('may take longer the more requests it has', () => {
    const short = bench.jobLimitMs({ scenario: {}, seed: 1 })
    expect(short).toBeGreaterThan(60_000)
    // Sixteen replicas at 2x for 24 s took some minutes on a busy machine.
    expect(bench.jobLimitMs({ ratePerSec: 800, durationMs: 24_000 })).toBeGreaterThan(short + 900_000)
  })
})

describe('robustness', async () => {
  const { besideBest, overWorkloads } = (await load('robustness')) as Bench
  const { besideTable, overallTable, untrustedTable } = (await load('trial-tables')) as Bench

  it('measures ours by the best rival of each workload', () => {
    const beside = besideBest(RESULTS, 'sluice', ['limit', 'round-robin'], [2])
    expect(beside.map(({ workload, best }) => [workload, best.arm])).toEqual([
      ['won', 'limit'],
      ['lost', 'limit'],
    ])
    expect(beside[0]?.ratios[0]).toBeCloseTo(0.901 / 0.701, 9)
    expect(beside[0]).toHaveProperty('hindsight', undefined)
    const rows = RESULTS.flatMap((result) => result.rows)
    const { worst, at, mean } = overWorkloads(rows, 'sluice', beside, [2])
    expect(at).toBe('lost')
    expect(worst).toBeCloseTo(0.6015 / 0.7015, 9)
    expect(mean).toBeCloseTo((0.6015 + 0.9015) / 0.7015 / 2, 9)
  })

  it('says what hindsight would have won, on the seeds that were searched', () => {
    const [, lost] = RESULTS
    const searched = {
      ...lost,
      schedules: [{ load: 2, seed: 1, attained: 0.8, starts: 3, moves: 2 }],
      bounds: [{ load: 2, seed: 1, bound: 0.9 }],
    }
    const [row] = besideBest([searched], 'sluice', ['limit'], [2])
    expect(row?.hindsight).toMatchObject({ attained: 0.8, bound: 0.9 })
    expect(row?.hindsight?.ratio).toBeCloseTo(0.8 / 0.701, 9)
    expect(row?.hindsight?.mostRatio).toBeCloseTo(0.9 / 0.701, 9)
    // A run that reached more than the search found is the better schedule.
    const worse = { ...searched, schedules: [{ load: 2, seed: 1, attained: 0.5 }] }
    expect(besideBest([worse], 'sluice', ['limit'], [2])[0]?.hindsight?.attained).toBeCloseTo(0.701, 9)
    const { rows, notes } = besideTable(besideBest([searched], 'sluice', ['limit'], [2]), [2])
    expect(rows[0]?.slice(4, 7)).toEqual(['80.0', '1.141', '90.0'])
    expect(notes.at(-1)).toContain('(3 starts, 2 moves a cell)')
    expect(notes.at(-1)).toContain('1.141 with it, and 1.284 at the certified bound')
  })

  it('shows both readings: rivals in the field, and the guard that borrows our predictions', () => {
    const both = [
      resultOf('a', { sluice: [0.9, 0.8], limit: [0.8, 0.5], scorpio: [0.9, 0.7] }),
      resultOf('b', { sluice: [0.9, 0.6], limit: [0.8, 0.5], scorpio: [0.9, 0.66] }),
    ]
    expect(bench.BORROWERS).toEqual(['scorpio'])
    const [field, guard] = ['limit', 'scorpio'].map((rival) => besideBest(both, 'sluice', [rival], [2]))
    const { head, rows, notes } = besideTable(field ?? [], [2], guard)
    expect(rows.every((row) => row.length === head.length)).toBe(true)
    expect(rows.map((row) => [row[3], row[10]])).toEqual([
      ['1.598 ±0.008', '1.143 ±0.001'],
      ['1.199 ±0.003', '0.909 ±0.001'],
    ])
    expect(notes[0]).toMatch(/or not at all: worst ratio 1.199, mean 1.399.*predictions: worst ratio 0.909/)
    const tuned = both.flatMap((result) => result.rows.filter(({ arm }) => arm === 'limit'))
    const overall = overallTable(both, { limit: { setting: {}, rows: tuned } }, field ?? [], [2])
    expect(overall.rows[1]?.slice(0, 8)).toEqual([
      'limit',
      '1.00',
      'a',
      '1.00',
      '1.00',
      'a',
      '1.00',
      '+20.0 ±0.0',
    ])
  })

  it('shows an arm that believes nothing beside the better limit of each load', () => {
    const won = resultOf('w', {
      sluice: [0.9, 0.8],
      'sluice-no-trust': [0.9, 0.7],
      aimd: [0.8, 0.6],
      gradient2: [0.5, 0.75],
    })
    const { head, rows } = untrustedTable([won], 'sluice-no-trust', ['aimd', 'gradient2'])
    expect(head.slice(2, 6)).toEqual(['sluice', 'sluice-no-trust', 'aimd', 'gradient2'])
    expect(rows.map((row) => [row[1], row[6]])).toEqual([
      ['1x', '+10.0 ±0.0'],
      ['2x', '-5.0 ±0.0'],
    ])
  })
})

describe('the plot', () => {
  const svg = bench.goodputPlot(RESULTS)

  it('has a panel a fleet, a line an arm, and colours for dark ground', () => {
    expect(svg.match(/<path d="[^"]*"[^>]*stroke="#2f81f7"/g)).toHaveLength(RESULTS.length + 1)
    expect(svg).toContain('prefers-color-scheme:dark')
    expect(svg).not.toMatch(/NaN|undefined|Infinity/)
    for (const name of ['won', 'lost', 'Sluice', 'bare fleet']) expect(svg).toContain(name)
  })

  it('names in its legend what is drawn, and nothing else', () => {
    for (const name of ['llm-d gate', 'other tuned rivals', 'best found in hindsight', 'certified bound'])
      expect(svg).not.toContain(name)
    const more = resultOf('more', { sluice: [1, 1], 'llm-d': [1, 0.5], aimd: [1, 0.5] })
    const all = bench.goodputPlot([{ ...more, bounds: [{ load: 1, bound: 1 }] }])
    for (const name of ['llm-d gate', 'other tuned rivals', 'certified bound']) expect(all).toContain(name)
    expect(all).not.toContain('bare fleet, round-robin')
  })

  it('closes what it opens', () => {
    const tags = svg.match(/<[a-z][^>]*>/g) ?? []
    const opened = tags.filter((tag) => !tag.endsWith('/>'))
    expect(opened.length).toBeGreaterThan(10)
    expect(svg.match(/<\/[a-z]+>/g)).toHaveLength(opened.length)
  })
})
