/**
 * Goodput in the simulator: Sluice against its rivals, each at its best setting, over load, fleets and workloads.
 *
 *   npm run bench:goodput                     all of it, in hours; resumes where it was stopped
 *   npm run bench:goodput -- --quick          under 10 minutes on two cores
 *   npm run bench:goodput -- --parts core,robustness --only 8B-H100 --arms sluice,scorpio --loads 1.5,2 --seeds 3
 *   npm run bench:goodput -- --traces DIR     also replays public traces (or SLUICE_TRACES=DIR)
 *   npm run bench:goodput -- --write          also writes the sections of those parts into docs/goodput.md; with core
 *                                             the plot docs/goodput.svg too
 *
 * Parts: core, everyone (all rivals, and ours without a part each), ablations (the same parts by workload), factors,
 * traces, robustness, cold, faults, tenants, untrusted; --quick runs two of them unless told. Which command writes
 * which table: docs/measurements.md.
 * 1x is capacity: the highest rate at which the bare fleet keeps 90 % of requests good, found by bisection. Virtual
 * time only: the figures don't depend on the machine. Results are kept in .bench/goodput/ by what they were made from.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ARMS, armOf, BARE, OURS, RIVALS, VARIED } from './goodput/arms.mjs'
import { openCache } from './goodput/cache.mjs'
import { codeDigest } from './goodput/code-digest.mjs'
import { lossesTable } from './goodput/grid-tables.mjs'
import { asText } from './goodput/layout.mjs'
import { withSections } from './goodput/page.mjs'
import { PARTS } from './goodput/parts.mjs'
import { PLANS } from './goodput/plans.mjs'
import { goodputPlot } from './goodput/plot.mjs'
import { Pool } from './goodput/pool.mjs'
import { traceText, useTraces } from './goodput/requests.mjs'
import { scenarioIds } from './goodput/scenarios.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const STATE = join(ROOT, '.bench', 'goodput')
const PAGE = join(ROOT, 'docs', 'goodput.md')

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    parts: { type: 'string' },
    only: { type: 'string' },
    arms: { type: 'string' },
    loads: { type: 'string' },
    seeds: { type: 'string' },
    threads: { type: 'string', default: '2' },
    traces: { type: 'string', default: process.env.SLUICE_TRACES },
    write: { type: 'boolean', default: false },
    out: { type: 'string', default: join(STATE, 'results.json') },
    help: { type: 'boolean', default: false },
  },
})

/** The plan with the loads, seeds and rivals that were asked for, wherever it has some. */
function planOf() {
  const plan = PLANS[options.quick ? 'quick' : 'full']
  const loads = options.loads === undefined ? {} : { loads: options.loads.split(',').map(Number) }
  const seeds = options.seeds === undefined ? {} : { seeds: Number(options.seeds) }
  return {
    ...plan,
    ...loads,
    ...seeds,
    everyone: { ...plan.everyone, ...loads, ...seeds },
    ablations: { ...plan.ablations, ...loads, ...seeds },
    factors: { ...plan.factors, ...loads, ...seeds },
    robust: { ...plan.robust, ...loads },
    cold: { ...plan.cold, ...seeds },
    faults: { ...plan.faults, ...seeds },
    tenants: { ...plan.tenants, ...seeds },
    untrusted: { ...plan.untrusted, ...loads, ...seeds },
  }
}

/** The names in the text, each of which must be known; undefined without a text. */
function chosen(text, known, what) {
  const names = text?.split(',') ?? []
  for (const name of names) {
    if (!known.includes(name)) throw new Error(`no ${what} "${name}"; there are: ${known.join(', ')}`)
  }
  return text === undefined ? undefined : names
}

const here = (name) => new URL(`./goodput/${name}`, import.meta.url).href

/** The code (and the trace) that a result hangs on: rivals don't change with our policies. */
function codeNames() {
  const known = new Map()
  const once = (key, make) => known.get(key) ?? known.set(key, make()).get(key)
  return (job, { arm, scenario }) => {
    return once(`${job === 'bound'} ${arm} ${scenario.trace?.file}`, () => {
      const traced = scenario.trace === undefined ? [] : [traceText(scenario.trace.file)]
      if (job === 'bound') return codeDigest([here('bounds-of-run.mjs')], ...traced)
      if (arm === undefined) return codeDigest([here('cell.mjs')], ...traced)
      const { module, make } = armOf(arm)
      return codeDigest([here('cell.mjs'), new URL(module, here('arms.mjs')).href], String(make), ...traced)
    })
  }
}

function openPool(traces) {
  let computed = 0
  const pool = new Pool({
    threads: Number(options.threads),
    workerUrl: new URL('./goodput/worker.mjs', import.meta.url),
    workerData: { traces },
    cache: openCache(join(STATE, 'cache.jsonl')),
    codeOf: codeNames(),
    onDone: () => {
      if (++computed % 50 === 0) console.error(`${computed} runs computed, ${pool.waiting} waiting`)
    },
  })
  return pool
}

/** Who runs: those named, or those for whom the plan has time. */
function armsOf({ takesAll }, { rivals = RIVALS, variants }) {
  const chosenArms = chosen(options.arms, [...new Set([...Object.keys(ARMS), ...VARIED])], 'arm')
  if (chosenArms !== undefined) return chosenArms
  if (takesAll) return [OURS, BARE, ...RIVALS, ...VARIED]
  return [OURS, BARE, ...rivals, ...(variants === undefined ? [] : VARIED)]
}

async function main() {
  if (options.help) {
    console.log(readFileSync(fileURLToPath(import.meta.url), 'utf8').split('*/')[0])
    return
  }
  const plan = planOf()
  useTraces(options.traces)
  const names = chosen(options.parts, Object.keys(PARTS), 'part') ?? plan.parts
  const only = chosen(options.only, scenarioIds(), 'scenario')
  const pool = openPool(options.traces)
  const sections = []
  try {
    for (const name of names) {
      if (name === 'traces' && options.traces === undefined) continue
      const part = PARTS[name]
      const told = await part.run({ pool, plan, arms: armsOf(part, plan), only })
      if (told.results.length === 0) continue
      for (const table of told.tables) console.log(`${asText(table)}\n`)
      sections.push({ name, title: part.title, ...told })
    }
  } finally {
    await pool.close()
  }
  conclude(plan, sections)
}

/** Losses first: the last thing printed is what a reader should see first. */
function conclude(plan, sections) {
  const grids = sections.filter(({ isGrid }) => isGrid).flatMap(({ results }) => results)
  if (grids.length > 0) console.log(asText(lossesTable(grids)))
  for (const { short } of sections) if (short !== undefined) console.log(`\n${asText(short)}`)
  mkdirSync(STATE, { recursive: true })
  writeFileSync(options.out, `${JSON.stringify({ plan, sections }, null, 1)}\n`)
  if (options.write) writePage(sections)
}

/** Each part's section anew; what other runs wrote stays. */
function writePage(sections) {
  const fresh = sections.map((section) => ({
    ...section,
    command: commandOf(section.name),
    ...(section.isGrid ? { losses: lossesTable(section.results) } : {}),
  }))
  const titles = Object.values(PARTS).map(({ title }) => title)
  writeFileSync(PAGE, withSections(readFileSync(PAGE, 'utf8'), fresh, titles))
  const core = sections.find(({ name }) => name === 'core')
  if (core !== undefined) writeFileSync(join(ROOT, 'docs', 'goodput.svg'), goodputPlot(core.results))
}

/** What repeats that part of this run. */
function commandOf(part) {
  const { traces, threads, out, write, ...asked } = options
  const told = { ...asked, parts: part, ...(part === 'traces' ? { traces: 'DIR' } : {}), write }
  const flags = Object.entries(told).map(([name, value]) =>
    value === true ? ` --${name}` : value ? ` --${name} ${value}` : '',
  )
  return `npm run bench:goodput --${flags.join('')}`
}

await main()
