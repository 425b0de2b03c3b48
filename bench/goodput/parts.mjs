/** The parts of the bench, each a title and what runs its scenarios and returns `{ isGrid?, results, tables, short? }`. */
import { BARE, BORROWERS, OURS, RIVALS, WITHOUT } from './arms.mjs'
import { ablationTable, everyoneTable } from './everyone-tables.mjs'
import { carriedLoad, openScenario, runScenario, tuneArm } from './grid.mjs'
import { classTable, scenarioTable, shortTable } from './grid-tables.mjs'
import { besideBest, runOverall } from './robustness.mjs'
import { COLD, CORE, FACTORS, FAULTS, ROBUSTNESS, TENANTS, TRACES, UNTRUSTED } from './scenarios.mjs'
import { boundsOf, schedulesOf } from './search.mjs'
import {
  besideTable,
  coldTable,
  faultTable,
  overallByWorkload,
  overallTable,
  tenantTable,
  untrustedTable,
} from './trial-tables.mjs'
import { coldStart, faultTrial } from './trials.mjs'

/** Classes, waste and shed latency are shown at that load. */
const CLASS_LOAD = 2
const SHORT_LOADS = [1, 1.5, 2, 3]

/** Ours while it believes nothing, and the rivals that move a limit by what they see. */
const UNTRUSTED_ARM = 'sluice-no-trust'
const LIMITS_BY_SIGHT = ['aimd', 'gradient2']

const wanted = (scenarios, only) => scenarios.filter(({ id }) => only === undefined || only.includes(id))
/** Ours, the bare fleet and the rivals: what a factor is told by. */
const compared = (arms) => arms.filter((arm) => arm === OURS || arm === BARE || RIVALS.includes(arm))

/** Results in turn, so that a run that is stopped has finished what it began. */
async function inTurn(items, run) {
  const results = []
  for (const item of items) results.push(await run(item))
  return results
}

const gridTables = (results) =>
  results.flatMap((result) => {
    const hasClasses = result.rows.some(({ load }) => load === CLASS_LOAD)
    return [scenarioTable(result), ...(hasClasses ? [classTable(result, CLASS_LOAD)] : [])]
  })

async function core({ pool, plan, arms, only }) {
  const results = await inTurn(wanted(CORE, only), (scenario) => coreScenario(pool, scenario, arms, plan))
  return { isGrid: true, results, tables: gridTables(results), short: shortTable(results, SHORT_LOADS) }
}

/** Part of a plan, at no more loads and seeds than the whole has. */
const within = ({ loads, seeds }, part) => ({
  ...part,
  loads: part.loads.filter((load) => loads.includes(load)),
  seeds: Math.min(seeds, part.seeds ?? seeds),
})

/** All rivals, tuned with more patience than elsewhere, and ours without a part each, in one table a fleet. */
async function everyone({ pool, plan, arms, only }) {
  const scenarios = wanted([...CORE, ...ROBUSTNESS], only ?? plan.everyone.scenarios)
  const own = [...new Set([OURS, ...arms])]
  const results = await inTurn(scenarios, async (scenario) => {
    const result = await runScenario(pool, scenario, own, { ...plan, ...plan.everyone })
    const searched = within(plan.everyone, plan.schedules)
    const [schedules, bounds] = await Promise.all([
      schedulesOf(pool, result, result.tuned, searched),
      boundsOf(pool, result, searched),
    ])
    return { ...result, schedules, bounds }
  })
  return { isGrid: true, results, tables: results.map((result) => everyoneTable(result, WITHOUT)) }
}

/** What each part is worth where: ours without it over the workloads. */
async function ablations({ pool, plan, arms, only }) {
  const parts = WITHOUT.filter((arm) => arms.includes(arm))
  const results = await inTurn(wanted(ROBUSTNESS, only), (scenario) =>
    runScenario(pool, scenario, [OURS, ...parts], { ...plan, ...plan.ablations }),
  )
  if (results.length === 0 || parts.length === 0) return { results: [], tables: [] }
  const { loads } = plan.ablations
  return { results, tables: loads.map((load) => ablationTable(results, parts, load)) }
}

/** A scenario with bounds, schedules, what each arm carries, and variants of ours at fewer loads. */
async function coreScenario(pool, scenario, arms, plan) {
  const { loads } = plan
  const result = await runScenario(pool, scenario, compared(arms), plan)
  const others = arms.filter((arm) => !compared(arms).includes(arm))
  const [variants, bounds, schedules, carried] = await Promise.all([
    runScenario(pool, scenario, others, {
      ...plan,
      ...within(plan, plan.variants ?? { loads }),
    }),
    boundsOf(pool, result, within(plan, { loads, seeds: plan.schedules.seeds })),
    schedulesOf(pool, result, result.tuned, within(plan, plan.schedules)),
    carriedBy(pool, result, compared(arms), plan),
  ])
  return {
    ...result,
    tuned: { ...result.tuned, ...variants.tuned },
    rows: [...result.rows, ...variants.rows],
    bounds,
    schedules,
    carried,
  }
}

async function carriedBy(pool, result, arms, plan) {
  const entries = arms.map(async (arm) => [
    arm,
    await carriedLoad(pool, result, arm, result.tuned[arm].setting, plan),
  ])
  return Object.fromEntries(await Promise.all(entries))
}

/** Settings tuned on another scenario, by arm; undefined where a scenario has its own. */
async function borrowedSettings(pool, { settingsOf }, arms, plan) {
  if (settingsOf === undefined) return undefined
  const opened = await openScenario(
    pool,
    CORE.find(({ id }) => id === settingsOf),
    plan,
  )
  const entries = arms.map(async (arm) => [arm, await tuneArm(pool, opened, arm, plan)])
  return Object.fromEntries(await Promise.all(entries))
}

function gridOf(scenarios) {
  return async ({ pool, plan, arms, only }) => {
    const own = compared(arms)
    const results = await inTurn(wanted(scenarios, only), async (scenario) => {
      const settings = await borrowedSettings(pool, scenario, own, plan)
      return runScenario(pool, scenario, own, { ...plan, ...plan.factors }, settings)
    })
    return { isGrid: true, results, tables: gridTables(results) }
  }
}

async function robustness({ pool, plan, arms, only }) {
  const { loads } = plan.robust
  const rivals = arms.filter((arm) => RIVALS.includes(arm))
  const own = [OURS, BARE, ...rivals]
  const results = await inTurn(wanted(ROBUSTNESS, only), async (scenario) => {
    const result = await runScenario(pool, scenario, own, { ...plan, loads })
    const searched = { ...plan.robust.schedules, loads }
    const [schedules, bounds] = await Promise.all([
      schedulesOf(pool, result, result.tuned, searched),
      boundsOf(pool, result, searched),
    ])
    return { ...result, schedules, bounds }
  })
  if (results.length === 0 || rivals.length === 0) return { results: [], tables: [] }
  const overall = Object.fromEntries(
    await inTurn(rivals, async (arm) => [arm, await runOverall(pool, results, arm, { ...plan, loads })]),
  )
  const [inField, borrowers] = [false, true].map((does) =>
    rivals.filter((arm) => BORROWERS.includes(arm) === does),
  )
  const beside = besideBest(results, OURS, inField.length === 0 ? borrowers : inField, loads)
  const guarded = borrowers.length === 0 ? undefined : besideBest(results, OURS, borrowers, loads)
  return {
    isGrid: true,
    results,
    overall,
    tables: [
      besideTable(beside, loads, guarded),
      overallTable(results, overall, beside, loads),
      overallByWorkload(results, overall, loads),
    ],
  }
}

async function cold({ pool, plan, only }) {
  const results = await inTurn(wanted(COLD, only), (scenario) => coldStart(pool, scenario, plan))
  return { results, tables: [coldTable(results, plan.cold)] }
}

async function faults({ pool, plan, only }) {
  const results = await inTurn(wanted(FAULTS, only), (scenario) => faultTrial(pool, scenario, plan))
  return { results, tables: [faultTable(results, plan.faults)] }
}

async function tenants({ pool, plan, arms, only }) {
  const { load, seeds } = plan.tenants
  const results = await inTurn(wanted(TENANTS, only), (scenario) =>
    runScenario(pool, scenario, [...compared(arms), 'sluice-no-shares'], { ...plan, seeds, loads: [load] }),
  )
  return { results, tables: results.map((result) => tenantTable(result, load)) }
}

/** Ours without any trust in predictions beside limits that go by what is seen: what should hold work meanwhile? */
async function untrusted({ pool, plan, only }) {
  const arms = [OURS, UNTRUSTED_ARM, BARE, ...LIMITS_BY_SIGHT]
  const results = await inTurn(wanted(UNTRUSTED, only), (scenario) =>
    runScenario(pool, scenario, arms, { ...plan, ...plan.untrusted }),
  )
  const table = untrustedTable(results, UNTRUSTED_ARM, LIMITS_BY_SIGHT)
  return { results, tables: [table] }
}

/** By name; a part that `takesAll` runs every arm that it has a place for, however short the plan. */
export const PARTS = {
  core: { title: 'Three fleets', run: core },
  everyone: { title: 'Everyone', run: everyone, takesAll: true },
  ablations: { title: 'What each part is worth', run: ablations, takesAll: true },
  factors: { title: 'One thing different from the first fleet', run: gridOf(FACTORS) },
  traces: { title: 'Public traces', run: gridOf(TRACES) },
  robustness: { title: 'One setting, many workloads', run: robustness, takesAll: true },
  cold: { title: 'Cold start', run: cold },
  faults: { title: 'Faults', run: faults },
  tenants: { title: 'Tenants', run: tenants },
  untrusted: { title: 'No prediction is believed', run: untrusted },
}
