/** One run of one arm: simulates it and keeps the figures that tables are made of. Pure: equal specs, equal results. */
import { findCapacity } from '../../dist/sim/capacity.js'
import { summarize } from '../../dist/sim/report.js'
import { simulate } from '../../dist/sim/run.js'
import { packBits, unpackBits } from './bits.mjs'
import { CLASSES, enginesOf, faultsOf, requestsOf, sourceOf } from './requests.mjs'
import { quantile } from './stats.mjs'

/** That much of each run warms everything up and is not counted. */
const WARM_RATIO = 1 / 3
/** What still runs that long after the last arrival is left by its client: above the longest promise. */
export const DRAIN_MS = 30_000

/** From when on requests count; a trace counts whole, since its one burst may be at its beginning. */
export function countsFromMs({ scenario, durationMs }) {
  return scenario.trace === undefined ? durationMs * WARM_RATIO : 0
}

/** What the bare fleet carries, healthy; and how many requests there are, where the workload ends by itself. */
export function capacityOf({ scenario, seed }) {
  const source = sourceOf(scenario)
  const capacity = findCapacity({ engines: enginesOf(scenario), classes: CLASSES, source, seed })
  const lengthMs = source.lengthMsAt?.(1)
  return lengthMs === undefined ? capacity : { ...capacity, traceRequests: lengthMs / 1000 }
}

/** Runs what the arm makes and returns the simulator's result. */
function simulateArm(spec, requests, made) {
  const { scenario, durationMs, seed } = spec
  const { createScheduler, engine, settings, sim = {} } = made
  return simulate({
    replicas: enginesOf(scenario, engine).map((options) => ({ engine: options })),
    requests,
    createScheduler,
    classes: CLASSES,
    faults: faultsOf(scenario, durationMs),
    seed,
    closesAtMs: durationMs,
    drainMs: DRAIN_MS,
    ...(settings === undefined ? {} : { settings }),
    ...scenario.sight,
    ...sim,
  })
}

/** The figures of one cell of the grid. `make(requests)` builds the arm; `spec.windows` are counted apart. */
export function runCell(spec, make) {
  const { durationMs, windows = [] } = spec
  const requests = requestsOf(spec)
  const result = simulateArm(spec, requests, make(requests))
  const warmMs = countsFromMs(spec)
  const { total, classes, ...report } = summarize(result, warmMs, durationMs)
  return {
    ...countsOf(total),
    attained: total.attainmentRatio ?? 1,
    goodPerSec: report.goodPerSec,
    ...shedWaits(result, warmMs),
    wasted: report.usedEngineMs === 0 ? 0 : report.wastedEngineMs / report.usedEngineMs,
    ttftP50Ms: total.ttft.p50Ms,
    ttftP99Ms: total.ttft.p99Ms,
    tpotP50Ms: total.tpot.p50Ms,
    tpotP99Ms: total.tpot.p99Ms,
    badByCause: report.badByCause,
    classes: Object.fromEntries(classes.map((row) => [row.className, countsOf(row)])),
    ...(spec.scenario.tenants === undefined ? {} : { tenants: tenantsOf(result, warmMs) }),
    windows: windows.map(([fromMs, toMs]) => countsOf(summarize(result, fromMs, toMs).total)),
  }
}

const countsOf = ({ offered, good, bad, shed }) => ({ offered, good, judged: good + bad, shed })

/** How long those waited whom nothing but overload refused, in ms and in times of their TTFT target. */
function shedWaits(result, warmMs) {
  const sheds = result.outcomes
    .map(({ settlement }) => settlement)
    .filter(({ outcome, offer }) => outcome === 'shed' && offer.receivedAtMs >= warmMs)
    .filter(({ offer: { slo } }) => slo.overload === 'shed')
  const waits = sheds.map(({ e2eMs }) => e2eMs)
  const ratios = sheds.map(({ e2eMs, offer: { slo, promptTokens } }) => {
    return e2eMs / (slo.ttftMs + (slo.ttftPer1kTokensMs * promptTokens) / 1000)
  })
  return {
    shedP50Ms: quantile(waits, 0.5),
    shedP90Ms: quantile(waits, 0.9),
    shedP90OfTarget: quantile(ratios, 0.9),
  }
}

function tenantsOf(result, warmMs) {
  const tenants = {}
  for (const { settlement } of result.outcomes) {
    const { offer, verdict, attempts, promptTokens, outputTokens } = settlement
    if (offer.receivedAtMs < warmMs || verdict.kind === 'excluded') continue
    tenants[offer.tenant] ??= { good: 0, judged: 0, tokens: 0 }
    tenants[offer.tenant].judged++
    if (attempts > 0) tenants[offer.tenant].tokens += promptTokens + 2 * outputTokens
    if (verdict.kind === 'good') tenants[offer.tenant].good++
  }
  return tenants
}

/** Runs the arm without the requests marked in `spec.excluded`: which of the others were good, as bits. */
export function replay(spec, make) {
  const requests = requestsOf(spec)
  const excluded = unpackBits(spec.excluded, requests.length)
  const kept = requests.filter((_, index) => !excluded[index])
  const result = simulateArm(spec, kept, make(requests))
  const warmMs = countsFromMs(spec)
  const good = new Set()
  for (const { settlement } of result.outcomes) {
    const { requestId, offer, verdict } = settlement
    if (verdict.kind === 'good' && offer.receivedAtMs >= warmMs) good.add(requestId)
  }
  return { good: good.size, bits: packBits(requests.map(({ id }) => good.has(id))) }
}
