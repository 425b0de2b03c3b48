/** The rows of a real vLLM once more in the simulator: same arms, arrivals and loads, on an engine of its measured costs. */
import { replay } from '../engine-model/replays.mjs'
import { meanOf, pairedDifference } from '../goodput/stats.mjs'
import { HAPROXY_QUEUE_MS, targetsOf } from './arms.mjs'
import { aligned, shown } from './score.mjs'
import { makeArrivals, makeRequest, uniform, WARM_LOAD, WORKLOADS } from './workload.mjs'

/** Between warm-up and measured arrivals, where the real bench waits for an idle engine. */
const IDLE_MS = 2500
/** Loopback both ways with both ends' own work. */
const NETWORK_MS = 1.5
/** From step to step on a machine that does other things as well. */
const JITTER_RATIO = 0.05
/** Enough to keep every slot busy while the model's pace is found. */
const SATURATING_REQUESTS = 400

/** How an arm of the real bench is made here; one that is missing (a foreign script) gets no row. */
const KINDS = {
  bare: ({ createLeastOutstanding }) => ({ createScheduler: createLeastOutstanding }),
  cap: ({ createLeastOutstanding }, limit) => ({
    createScheduler: createLeastOutstanding,
    engine: { maxNumQueuedReqs: limit },
  }),
  'token-cap': ({ createLeastOutstanding }, limit) => ({
    createScheduler: createLeastOutstanding,
    engine: { maxNumQueuedTokens: limit },
  }),
  haproxy: ({ createConcurrencyLimit }, limit) => ({
    createScheduler: () => createConcurrencyLimit({ maxInFlight: limit, queueMs: HAPROXY_QUEUE_MS }),
  }),
  sluice: ({ createSluice }) => ({ createScheduler: () => createSluice() }),
  told: ({ createSluice }) => ({ createScheduler: () => createSluice(), limitsKnown: true }),
}

/** What of the build it needs. */
async function loadProduct() {
  const modules = await Promise.all([
    import('../../dist/sim/run.js'),
    import('../../dist/sim/engine-model.js'),
    import('../../dist/policies/sluice.js'),
    import('../../dist/policies/rivals/concurrency-limit.js'),
    import('../../dist/policies/plain/least-outstanding.js'),
    import('../../dist/config/resolve-classes.js'),
  ])
  return Object.assign({}, ...modules)
}

/** That engine, faster or slower by one factor, so that it finishes `ratePerSec` of that workload when saturated. */
export function pacedProfile(product, profile, shape, ratePerSec) {
  const rng = uniform(99)
  const requests = Array.from({ length: SATURATING_REQUESTS }, () => {
    const { promptTokens, answerTokens } = makeRequest(shape, rng)
    return { atMs: 0, promptTokens, outputTokens: answerTokens }
  })
  const ends = replay(product, requests, { profile, replicas: 1 })
    .map(({ endedAtMs }) => endedAtMs)
    .sort((a, b) => a - b)
  // Without the first and the last batch: there some slots are empty.
  const edge = profile.defaults.maxNumSeqs
  const spanMs = ends[ends.length - 1 - edge] - ends[edge]
  const ratio = ((ends.length - 1 - 2 * edge) * 1000) / spanMs / ratePerSec
  const scaled = (part) => Object.fromEntries(Object.entries(part).map(([key, ms]) => [key, ms * ratio]))
  const { prefill, decode, stepOverheadMs, requestOverheadMs } = profile
  return {
    ...profile,
    prefill: scaled(prefill),
    decode: scaled(decode),
    ...scaled({ stepOverheadMs, requestOverheadMs }),
  }
}

const toRequests = (arrivals, startMs, prefix) =>
  arrivals.map(({ atMs, promptTokens, answerTokens, className = 'bench' }, at) => ({
    atMs: startMs + atMs,
    id: `${prefix}${at}`,
    className,
    promptTokens,
    outputTokens: answerTokens,
    maxTokens: answerTokens,
    told: { minOutputTokens: answerTokens },
  }))

/** Good requests a second of one row; undefined for an arm that can't be made here. */
function goodPerSec(
  product,
  { arm, shape, load, ratePerSec, seed, profile, classes },
  { seconds, warmSeconds },
) {
  const [kind, limit] = arm.split(':')
  if (KINDS[kind] === undefined) return undefined
  const { engine, ...made } = KINDS[kind](product, Number(limit))
  const startMs = warmSeconds > 0 ? warmSeconds * 1000 + IDLE_MS : 0
  const warm = makeArrivals(shape, WARM_LOAD * ratePerSec, warmSeconds, seed + 7000)
  const arrivals = makeArrivals(shape, load * ratePerSec, seconds, seed)
  const { outcomes } = product.simulate({
    replicas: [{ engine: { profile, jitterRatio: JITTER_RATIO, ...engine } }],
    requests: [...toRequests(warm, 0, 'warm '), ...toRequests(arrivals, startMs, '')],
    classes,
    seed,
    networkMs: NETWORK_MS,
    limitsKnown: false,
    settings: { rerouteBudgetRatio: 0 },
    ...made,
  })
  const good = outcomes.filter(
    ({ settlement }) => settlement.offer.receivedAtMs >= startMs && settlement.verdict.kind === 'good',
  )
  return good.length / seconds
}

/** The measured rows, each with what the simulator has in its place (`simulatedPerSec`). */
export async function simulateRows({ conditions, results }) {
  const product = await loadProduct()
  const { engine, seconds, warmSeconds, seed, targets } = conditions
  return results.flatMap(({ workload, ratePerSec, rows }) => {
    const shape = WORKLOADS[workload]
    const profile = pacedProfile(product, engine, shape, ratePerSec)
    const classes = classesOf(product, shape, targets.tpotMs)
    return rows.flatMap((row) => {
      const asked = { ...row, shape, ratePerSec, profile, classes, seed: seed + 100 * row.round }
      const simulatedPerSec = goodPerSec(product, asked, { seconds, warmSeconds })
      return simulatedPerSec === undefined ? [] : [{ ...row, simulatedPerSec }]
    })
  })
}

const classesOf = ({ resolveClass }, workload, tpotTargetMs) =>
  Object.fromEntries(
    Object.entries(targetsOf(workload, tpotTargetMs)).map(([name, targets]) => [
      name,
      resolveClass(name, targets),
    ]),
  )

/** Real and simulated good requests a second, and whether arms that clearly differ on the engine differ alike here. */
export function formatOrder(rows) {
  const cells = [...new Set(rows.map(({ workload, load }) => `${workload} ${load}x`))].map((name) => ({
    name,
    arms: armsIn(rows.filter(({ workload, load }) => `${workload} ${load}x` === name)),
  }))
  const lines = cells.flatMap(({ name, arms }) =>
    arms.map(({ arm, real, simulated }) => [name, arm, shown(meanOf(real)), shown(meanOf(simulated))]),
  )
  const pairs = cells.flatMap(({ name, arms }) => clearPairs(arms).map((pair) => ({ name, ...pair })))
  const others = pairs.filter(({ isAlike }) => !isAlike)
  const told = `${pairs.length - others.length} of ${pairs.length} pairs that differ clearly on the engine come in the same order here`
  const exceptions = others.map(({ name, ahead, behind }) => `\nnot so: ${name}, ${ahead} before ${behind}`)
  return `${aligned([['', 'setting', 'good/s', 'simulated'], ...lines])}\n${told}${exceptions.join('')}`
}

/** Both figures of each arm, round by round. */
function armsIn(rows) {
  return [...new Set(rows.map(({ arm }) => arm))].map((arm) => {
    const own = rows.filter((row) => row.arm === arm)
    return {
      arm,
      real: own.map(({ goodPerSec: perSec }) => perSec),
      simulated: own.map(({ simulatedPerSec }) => simulatedPerSec),
    }
  })
}

/** Pairs of arms whose difference on the engine is beyond its interval, the better one first. */
function clearPairs(arms) {
  return arms.flatMap((one) =>
    arms.flatMap((other) => {
      const { mean, halfWidth } = pairedDifference(one.real, other.real)
      if (!(mean - halfWidth > 0)) return []
      const isAlike = pairedDifference(one.simulated, other.simulated).mean > 0
      return [{ ahead: one.arm, behind: other.arm, isAlike }]
    }),
  )
}
