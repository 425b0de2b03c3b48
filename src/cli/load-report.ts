/** Shows a load run: a line a second while it runs, tables at its end. */
import Table from 'cli-table3'
import pc from 'picocolors'
import { shownMs, shownRate } from '../admin/words.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { VALID_LOOP_LAG_P99_MS } from '../load/loop-lag.ts'
import type { LoadReport } from '../load/report.ts'
import type { GroupSummary } from '../load/tally.ts'

/** `0.4321` as `43.2 %`; a dash for nothing. */
export function shownShare(ratio: Ratio | undefined): string {
  if (ratio === undefined) return '–'
  return `${(ratio * 100).toFixed(ratio > 0.999 || ratio === 0 ? 0 : 1)} %`
}

/** Counts by name, most first: `slo_unreachable 12, waiting_full 3`. */
export function shownCounts(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts).sort(([, a], [, b]) => b - a)
  return entries.length === 0 ? 'none' : entries.map(([name, count]) => `${name} ${count}`).join(', ')
}

/** Whether the client itself was in time, in one line. */
export function shownValidity(
  { loopLagP99Ms, valid }: Pick<LoadReport, 'loopLagP99Ms' | 'valid'>,
  colors: boolean,
): string {
  const lag = `client loop lag p99 ${shownMs(loopLagP99Ms)}`
  if (valid) return `${lag} (limit ${VALID_LOOP_LAG_P99_MS} ms): valid`
  const advice = 'the client was late itself; use a lower rate or a quieter machine'
  return pc
    .createColors(colors)
    .red(`NOT VALID: ${lag}, above the limit of ${VALID_LOOP_LAG_P99_MS} ms: ${advice}`)
}

/** One line on how the run goes. `recent` holds what settled within the last seconds. */
export function progressLine(
  elapsedMs: Ms,
  phase: string,
  recent: GroupSummary,
  all: GroupSummary,
  lagP99Ms: Ms,
): string {
  const open = all.offeredRequests - all.settledRequests
  return [
    `${(elapsedMs / 1000).toFixed(0).padStart(4)} s`,
    phase,
    `${all.offeredRequests} sent, ${open} open`,
    `good ${shownShare(recent.attainmentRatio)}`,
    `TTFT p50 ${shownMs(recent.ttftMs.p50)} p99 ${shownMs(recent.ttftMs.p99)}`,
    `TPOT p50 ${shownMs(recent.tpotMs.p50)}`,
    `shed ${all.shedRequests}`,
    `errors ${Object.values(all.errors).reduce((sum, count) => sum + count, 0)}`,
    `lag ${shownMs(lagP99Ms)}`,
  ].join(' · ')
}

const HEAD = [
  '',
  'offered',
  'good',
  'good/s',
  'attainment',
  'of admitted',
  'shed',
  'TTFT p50',
  'p99',
  'TPOT p50',
  'p99',
]

/** The tables and lines that end a run. */
export function reportText(report: LoadReport, colors: boolean): string {
  const seconds = report.phases.reduce((sum, { durationMs }) => sum + durationMs, 0) / 1000
  const phases = newTable()
  for (const phase of report.phases) phases.push(row(phase.name, phase.all, phase.durationMs / 1000))
  if (report.phases.length > 1) phases.push(row('all', report.all, seconds))
  const classes = newTable()
  for (const [name, group] of Object.entries(report.classes)) classes.push(row(name, group, seconds))
  return [
    phases.toString(),
    classes.toString(),
    `not good because of: ${shownCounts(report.all.causes)}`,
    `shed: ${shownCounts(report.all.sheds)}; told to come back in ${shownMs(report.all.retryAfterMs.p50)} (median)`,
    `errors: ${shownCounts(report.all.errors)}`,
    shownValidity(report, colors),
  ].join('\n')
}

function newTable(): Table.Table {
  return new Table({
    head: HEAD,
    style: { head: [], border: [], compact: true },
    colAligns: HEAD.map((_, column) => (column === 0 ? 'left' : 'right')),
  })
}

function row(name: string, group: GroupSummary, seconds: number): string[] {
  return [
    name,
    String(group.offeredRequests),
    String(group.goodRequests),
    shownRate(group.goodRequests / seconds),
    shownShare(group.attainmentRatio),
    shownShare(group.admittedAttainmentRatio),
    String(group.shedRequests),
    shownMs(group.ttftMs.p50),
    shownMs(group.ttftMs.p99),
    shownMs(group.tpotMs.p50),
    shownMs(group.tpotMs.p99),
  ]
}
