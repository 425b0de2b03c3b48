/**
 * Goodput in the simulator: Sluice against its rivals, each at its best setting, over load, fleets and workloads.
 *
 *   npm run bench:goodput                     all of it; resumes where it was stopped
 *   npm run bench:goodput -- --quick          under 10 minutes on two cores
 *   npm run bench:goodput -- --only 8B-H100 --arms sluice,scorpio --loads 1.5,2 --seeds 3
 *
 * 1x is capacity: the highest rate at which the bare fleet keeps 90 % of requests good, found by bisection. Virtual
 * time only: the figures don't depend on the machine. Results are kept in .bench/goodput/ by what they were made from.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ABLATIONS, ARMS, BARE, OURS, RIVALS } from './goodput/arms.mjs'
import { digestOf, openCache } from './goodput/cache.mjs'
import { runScenario } from './goodput/grid.mjs'
import { Pool } from './goodput/pool.mjs'
import { CORE, FACTORS } from './goodput/scenarios.mjs'
import { classTable, scenarioTable } from './goodput/tables.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const STATE = join(ROOT, '.bench', 'goodput')

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    arms: { type: 'string' },
    loads: { type: 'string' },
    seeds: { type: 'string' },
    threads: { type: 'string', default: '2' },
    out: { type: 'string', default: join(STATE, 'results.json') },
    help: { type: 'boolean', default: false },
  },
})

const PLANS = {
  quick: {
    loads: [0.8, 1, 1.5, 2, 3],
    seeds: 3,
    training: [1, 2],
    tuningRounds: 1,
    duration: { requests: 1200, shortestMs: 24_000, longestMs: 60_000 },
  },
  full: {
    loads: [0.5, 0.8, 1, 1.5, 2, 2.5, 3],
    seeds: 5,
    training: [1, 1.5, 2.5],
    tuningRounds: 2,
    duration: { requests: 3000, shortestMs: 60_000, longestMs: 150_000 },
  },
}

function planOf() {
  const plan = PLANS[options.quick ? 'quick' : 'full']
  return {
    ...plan,
    ...(options.loads === undefined ? {} : { loads: options.loads.split(',').map(Number) }),
    ...(options.seeds === undefined ? {} : { seeds: Number(options.seeds) }),
  }
}

function chosen(names, known, what) {
  for (const name of names) {
    if (!known.includes(name)) throw new Error(`no ${what} "${name}"; there are: ${known.join(', ')}`)
  }
  return names
}

/** The code that a result hangs on: rivals don't change with our policies. */
function codeDigests() {
  const dist = (...names) => names.map((name) => join(ROOT, 'dist', name))
  const bench = join(ROOT, 'bench', 'goodput')
  const rival = digestOf([...dist('core', 'sim', 'slo', 'policies/rivals'), bench])
  const ours = digestOf([...dist('core', 'sim', 'slo', 'policies', 'estimate'), bench])
  return (_job, spec) => (ARMS[spec.arm]?.kind === 'ours' ? ours : rival)
}

async function main() {
  if (options.help) {
    console.log(readFileSync(fileURLToPath(import.meta.url), 'utf8').split('*/')[0])
    return
  }
  const plan = planOf()
  const scenarios = [...CORE, ...FACTORS]
  const ids = scenarios.map(({ id }) => id)
  const wanted = chosen(options.only?.split(',') ?? CORE.map(({ id }) => id), ids, 'scenario')
  const arms = chosen(
    options.arms?.split(',') ?? [OURS, BARE, ...RIVALS, ...ABLATIONS],
    Object.keys(ARMS),
    'arm',
  )
  let computed = 0
  const pool = new Pool({
    threads: Number(options.threads),
    cache: openCache(join(STATE, 'cache.jsonl')),
    codeOf: codeDigests(),
    onDone: () => {
      if (++computed % 50 === 0) console.error(`${computed} runs`)
    },
  })
  const results = []
  try {
    for (const scenario of scenarios.filter(({ id }) => wanted.includes(id))) {
      const result = await runScenario(pool, scenario, arms, plan)
      results.push(result)
      console.log(`${scenarioTable(result)}\n`)
      if (plan.loads.includes(2)) console.log(`${classTable(result, 2, arms)}\n`)
    }
  } finally {
    await pool.close()
  }
  mkdirSync(STATE, { recursive: true })
  writeFileSync(options.out, `${JSON.stringify({ plan, results }, null, 1)}\n`)
}

await main()
