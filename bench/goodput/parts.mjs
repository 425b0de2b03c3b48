/** The parts of the bench: each runs its scenarios and returns `{ title, isGrid?, results, tables }`. */
import { BARE, OURS, RIVALS } from './arms.mjs'
import { carriedLoad, openScenario, runScenario, tuneArm } from './grid.mjs'
import { classTable, scenarioTable } from './grid-tables.mjs'
import { besideBest, runOverall } from './robustness.mjs'
import { CORE, FACTORS, FAULTS, ROBUSTNESS, TENANTS, TRACES, UNTRUSTED } from './scenarios.mjs'
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
  return { title: 'Three fleets', isGrid: true, results, tables: gridTables(results) }
}

/** A scenario with bounds, schedules, what each arm carries, and variants of ours at fewer loads. */
async function coreScenario(pool, scenario, arms, plan) {
  const { loads, seeds } = plan
  const within = (part) => ({
    ...part,
    loads: part.loads.filter((load) => loads.includes(load)),
    seeds: Math.min(seeds, part.seeds ?? seeds),
  })
  const result = await runScenario(pool, scenario, compared(arms), plan)
  const others = arms.filter((arm) => !compared(arms).includes(arm))
  const [variants, bounds, schedules, carried] = await Promise.all([
    runScenario(pool, scenario, others, { ...plan, ...within(plan.variants ?? { loads }) }),
    boundsOf(pool, result, within({ loads, seeds: plan.schedules.seeds })),
    schedulesOf(pool, result, result.tuned, within(plan.schedules)),
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

function gridOf(title, scenarios) {
  return async ({ pool, plan, arms, only }) => {
    const own = compared(arms)
    const results = await inTurn(wanted(scenarios, only), async (scenario) => {
      const settings = await borrowedSettings(pool, scenario, own, plan)
      return runScenario(pool, scenario, own, { ...plan, ...plan.factors }, settings)
    })
    return { title, isGrid: true, results, tables: gridTables(results) }
  }
}

async function robustness({ pool, plan, arms, only }) {
  const { loads, rivals: candidates = RIVALS } = plan.robust
  const rivals = arms.filter((arm) => candidates.includes(arm))
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
  if (results.length === 0 || rivals.length === 0) return { title: 'Robustness', results: [], tables: [] }
  const overall = Object.fromEntries(
    await inTurn(rivals, async (arm) => [arm, await runOverall(pool, results, arm, { ...plan, loads })]),
  )
  const beside = besideBest(results, OURS, rivals, loads)
  return {
    title: 'One setting, many workloads',
    isGrid: true,
    results,
    overall,
    tables: [
      besideTable(beside, loads),
      overallTable(results, overall, beside, loads),
      overallByWorkload(results, overall, loads),
    ],
  }
}

async function cold({ pool, plan, only }) {
  const scenarios = wanted(ROBUSTNESS, only).filter(({ faults }) => faults === undefined)
  const results = await inTurn(scenarios, (scenario) => coldStart(pool, scenario, plan))
  return { title: 'Cold start', results, tables: [coldTable(results, plan.cold)] }
}

async function faults({ pool, plan, only }) {
  const results = await inTurn(wanted(FAULTS, only), (scenario) => faultTrial(pool, scenario, plan))
  return { title: 'Faults', results, tables: [faultTable(results, plan.faults)] }
}

async function tenants({ pool, plan, arms, only }) {
  const { load, seeds } = plan.tenants
  const results = await inTurn(wanted(TENANTS, only), (scenario) =>
    runScenario(pool, scenario, [...compared(arms), 'sluice-no-shares'], { ...plan, seeds, loads: [load] }),
  )
  return { title: 'Tenants', results, tables: results.map((result) => tenantTable(result, load)) }
}

/** Ours without any trust in predictions beside limits that go by what is seen: what should hold work meanwhile? */
async function untrusted({ pool, plan, only }) {
  const arms = [OURS, UNTRUSTED_ARM, BARE, ...LIMITS_BY_SIGHT]
  const results = await inTurn(wanted(UNTRUSTED, only), (scenario) =>
    runScenario(pool, scenario, arms, { ...plan, ...plan.untrusted }),
  )
  const table = untrustedTable(results, UNTRUSTED_ARM, LIMITS_BY_SIGHT)
  return { title: 'No prediction is believed', results, tables: [table] }
}

export const PARTS = {
  core,
  factors: gridOf('One thing different from the first fleet', FACTORS),
  traces: gridOf('Public traces', TRACES),
  robustness,
  cold,
  faults,
  tenants,
  untrusted,
}
