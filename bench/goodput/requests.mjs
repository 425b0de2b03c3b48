/** Turns a scenario into the engines, promises, faults and requests of one run. Equal arguments, equal values. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { WORKLOAD_CLASSES } from '../../dist/sim/classes.js'
import { profile } from '../../dist/sim/profiles.js'
import { workloadSource } from '../../dist/sim/source.js'
import { TraceReader, traceSource } from '../../dist/sim/trace.js'
import { namedWorkload } from '../../dist/sim/workloads.js'

/** Deviation of step times; no real engine is exact. */
const STEP_JITTER_RATIO = 0.05

/** The promises of the built-in classes, each request worth the same, since a count of them is compared. */
export const CLASSES = {
  ...Object.fromEntries(Object.entries(WORKLOAD_CLASSES).map(([name, slo]) => [name, { ...slo, weight: 1 }])),
  /** A chat about prompts of any length. */
  document: { ...WORKLOAD_CLASSES.chat, name: 'document', ttftPer1kTokensMs: 250, weight: 1 },
}

/** The engines of the fleet; `change` is what an arm asks of them. */
export function enginesOf(scenario, change = {}) {
  const engine = {
    profile: profile(scenario.profile),
    jitterRatio: STEP_JITTER_RATIO,
    ...scenario.engine,
    ...change,
  }
  return Array.from({ length: scenario.replicas }, () => engine)
}

/** The scenario's faults at their instants. */
export function faultsOf({ faults = [] }, durationMs) {
  return faults.map(({ fromRatio, ...fault }) => ({
    ...fault,
    ...(fromRatio === undefined ? {} : { fromMs: fromRatio * durationMs }),
  }))
}

/** Where requests come from. `partRates` are the capacities of the parts; only their proportions matter here. */
export function sourceOf(scenario, partRates) {
  if (scenario.trace !== undefined) return traceSourceOf(scenario.trace)
  const { arrivals } = scenario
  const shape = arrivals === undefined ? {} : { arrivals }
  if (scenario.shift === undefined) return workloadSource(namedWorkload(scenario.workload), shape)
  const phases = scenario.shift.flatMap((name, index) =>
    namedWorkload(name).phases.map((phase) => ({ ...phase, rateRatio: partRates[index] })),
  )
  return workloadSource({ name: scenario.shift.join('>'), phases }, shape)
}

/** The requests of a run in order of arrival. */
export function requestsOf({ scenario, partRates, ratePerSec, durationMs, seed }) {
  const { tenants, asking = tenants?.map(() => 1) } = scenario
  if (tenants === undefined) return [...sourceOf(scenario, partRates).streamAt(ratePerSec, durationMs, seed)]
  const total = partRates.reduce((sum, rate) => sum + rate, 0)
  const allAsking = asking.reduce((sum, one) => sum + one, 0)
  const streams = tenants.map((tenant, index) => {
    const ownPerSec = (ratePerSec * partRates[index] * asking[index] * tenants.length) / (total * allAsking)
    const source = workloadSource(namedWorkload(tenant))
    return [...source.streamAt(ownPerSec, durationMs, seed + 1000 * index)].map((request) => ({
      ...request,
      id: `${tenant} ${request.id}`,
      tenant,
    }))
  })
  return streams.flat().sort((a, b) => a.atMs - b.atMs)
}

/** The folder of traces; kept out of specs, so that results do not hang on where it is. */
let tracesFolder = process.env.SLUICE_TRACES

export function useTraces(folder) {
  tracesFolder = folder
}

export function traceText(file) {
  if (tracesFolder === undefined) throw new RangeError(`the trace ${file} needs --traces FOLDER`)
  return readFileSync(join(tracesFolder, file), 'utf8')
}

function traceSourceOf({ file, className, rows }) {
  const reader = new TraceReader(file, Object.keys(CLASSES))
  for (const line of traceText(file).split('\n')) reader.take(line)
  const trace = reader.end()
  return traceSource({ ...trace, rows: trace.rows.slice(0, rows) }, { className })
}
