/** Shows a simulation: one table over all runs, and one by class for each run. */
import Table from 'cli-table3'
import pc from 'picocolors'
import { shownMs, shownRate } from '../admin/words.ts'
import type { ClassSummary, SimReport } from '../sim/report.ts'
import { shownCounts, shownShare } from './load-report.ts'
import type { GoodputSearch, Setting, SimulatedRun, Simulation } from './simulate-runs.ts'

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
  const { capacity, runs } = simulation
  const paint = pc.createColors(colors)
  const carried =
    capacity === undefined
      ? ''
      : `capacity ${shownRate(capacity.ratePerSec)} requests/s (bare fleet, 90 % good), saturated at ${shownRate(capacity.saturatedPerSec)}\n`
  const table = new Table({ head: HEAD, style: { head: [], border: [] } })
  for (const run of runs) table.push(runRow(run))
  const details = runs.map((run) => classTable(run, paint.bold(`${run.scheduler} at ${loadName(run)}`)))
  return `${settingLine(simulation)}\n${carried}${table.toString()}\n\n${details.join('\n')}`
}

/** The highest rate of each scheduler at which enough requests are good. */
export function goodputText(search: GoodputSearch, colors: boolean): string {
  const paint = pc.createColors(colors)
  const table = new Table({
    head: ['scheduler', 'goodput/s', 'a replica', 'of saturated'],
    style: { head: [], border: [] },
  })
  for (const { scheduler, capacity } of search.found) {
    const { ratePerSec, saturatedPerSec } = capacity
    table.push([
      paint.bold(scheduler),
      shownRate(ratePerSec),
      shownRate(ratePerSec / search.replicas),
      shownShare(ratePerSec / saturatedPerSec),
    ])
  }
  const saturated = search.found[0]?.capacity.saturatedPerSec ?? 0
  const meaning = `highest rate at which ${shownShare(search.goodRatio)} of requests are good; the bare fleet is saturated at ${shownRate(saturated)} requests/s`
  return `${settingLine(search)}\n${meaning}\n${table.toString()}\n`
}

function settingLine({ profile, replicas, workload, seed }: Setting): string {
  return `${replicas} x ${profile}, ${workload}, seed ${seed}`
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
  return `${title}\n${table.toString()}\n${remarks(report)}\n`
}

function remarks({
  shedByReason,
  shedAfter,
  badByCause,
  preemptions,
  reroutes,
  tasks,
  total,
}: SimReport): string {
  const shed =
    shedAfter.p50Ms === undefined
      ? ''
      : ` (after ${shownMs(shedAfter.p50Ms)}, p90 ${shownMs(shedAfter.p90Ms)})`
  const retried =
    total.retries === 0
      ? ''
      : `; ${total.retries} retries, in the end good ${shownShare(tasks.judged === 0 ? undefined : tasks.good / tasks.judged)}`
  return `shed: ${shownCounts(shedByReason)}${shed}; bad: ${shownCounts(badByCause)}; preemptions ${preemptions}, reroutes ${reroutes}${retried}`
}

function latencies({ ttft, tpot }: ClassSummary): string[] {
  return [ttft.p50Ms, ttft.p99Ms, tpot.p50Ms, tpot.p99Ms].map(shownMs)
}

function loadName({ load, ratePerSec }: SimulatedRun): string {
  return load === undefined ? `${shownRate(ratePerSec)}/s` : `${Number(load.toFixed(2))}x`
}
