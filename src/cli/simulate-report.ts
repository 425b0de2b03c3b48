/** Shows a simulation: one table over all runs, and one by class for each run. */
import Table from 'cli-table3'
import pc from 'picocolors'
import type { ClassSummary } from '../sim/report.ts'
import { shownCounts, shownMs, shownRate, shownShare } from './load-report.ts'
import type { SimulatedRun, Simulation } from './simulate.ts'

const HEAD = [
  'load',
  'scheduler',
  'offered/s',
  'good/s',
  'attainment',
  'shed',
  'TTFT p50',
  'p99',
  'TPOT p50',
  'p99',
  'wasted',
]

/** Everything as text. */
export function simulationText(simulation: Simulation, colors: boolean): string {
  const { profile, replicas, seed, durationMs, capacity, runs } = simulation
  const paint = pc.createColors(colors)
  const fleet = `${replicas} x ${profile}, ${durationMs / 1000} s each, seed ${seed}`
  const carried =
    capacity === undefined
      ? ''
      : `capacity ${shownRate(capacity.ratePerSec)} requests/s (bare fleet, 90 % good), saturated at ${shownRate(capacity.saturatedPerSec)}\n`
  const table = new Table({ head: HEAD, style: { head: [], border: [] } })
  for (const run of runs) table.push(runRow(run))
  const details = runs.map((run) => classTable(run, paint.bold(`${run.scheduler} at ${loadName(run)}`)))
  return `${fleet}\n${carried}${table.toString()}\n\n${details.join('\n')}`
}

function runRow(run: SimulatedRun): string[] {
  const { report } = run
  const { total } = report
  const wasted = report.usedEngineMs === 0 ? undefined : report.wastedEngineMs / report.usedEngineMs
  return [
    loadName(run),
    run.scheduler,
    shownRate(report.offeredPerSec),
    shownRate(report.goodPerSec),
    shownShare(total.attainmentRatio),
    String(total.shed),
    ...latencies(total),
    shownShare(wasted),
  ]
}

function classTable({ report }: SimulatedRun, title: string): string {
  const table = new Table({
    head: ['class', 'offered', 'good', 'bad', 'excluded', 'attainment', 'shed', ...HEAD.slice(6, 10)],
    style: { head: [], border: [] },
  })
  for (const entry of report.classes) {
    const { className, offered, good, bad, excluded, attainmentRatio, shed } = entry
    table.push([
      className,
      ...[offered, good, bad, excluded].map(String),
      shownShare(attainmentRatio),
      String(shed),
      ...latencies(entry),
    ])
  }
  const remarks = `shed: ${shownCounts(report.shedByReason)}; bad: ${shownCounts(report.badByCause)}; preemptions ${report.preemptions}, reroutes ${report.reroutes}`
  return `${title}\n${table.toString()}\n${remarks}\n`
}

function latencies({ ttft, tpot }: ClassSummary): string[] {
  return [ttft.p50Ms, ttft.p99Ms, tpot.p50Ms, tpot.p99Ms].map(shownMs)
}

function loadName({ load, ratePerSec }: SimulatedRun): string {
  return load === undefined ? `${shownRate(ratePerSec)}/s` : `${Number(load.toFixed(2))}x`
}
