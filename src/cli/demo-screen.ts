/** Draws the demo: both fleets side by side while it runs, and the tables at the end. */
import Table from 'cli-table3'
import pc from 'picocolors'
import { shownMs, shownRate } from '../admin/words.ts'
import type { Ms } from '../core/units.ts'
import type { GroupSummary } from '../load/tally.ts'
import type { DemoReport, FleetName } from './demo-report.ts'
import { DEMO_CLASSES } from './demo-scenario.ts'
import { shownCounts, shownShare, shownValidity } from './load-report.ts'

/** One fleet as it is now. */
export interface FleetNow {
  /** What settled within the last `RECENT_MS`: all classes with targets, and each class. */
  readonly recent: GroupSummary
  readonly recentClasses: Readonly<Record<string, GroupSummary>>
  readonly openRequests: number
}

export interface DemoNow {
  readonly ramp: number
  readonly phase: string
  readonly offeredPerSec: number
  readonly elapsedMs: Ms
  readonly rampMs: Ms
  readonly fleets: Readonly<Record<FleetName, FleetNow>>
  readonly report: DemoReport
}

/** The stretch that live figures are taken over. */
export const RECENT_MS: Ms = 5000
const BAR_CELLS = 24
const FLEET_TITLES: Readonly<Record<FleetName, string>> = {
  bare: 'bare, round-robin',
  sluice: 'behind Sluice',
}

/** The live picture for a terminal, about 100 columns wide. */
export function liveText(now: DemoNow, header: string, colors: boolean): string {
  const paint = pc.createColors(colors)
  const { bare, sluice } = now.fleets
  const table = new Table({
    head: ['', FLEET_TITLES.bare, FLEET_TITLES.sluice].map(paint.bold),
    style: { head: [], border: [], compact: true },
    colWidths: [18, 38, 38],
  })
  const both = (title: string, show: (fleet: FleetNow) => string) => {
    table.push([title, show(bare), show(sluice)])
  }
  both('offered', () => `${shownRate(now.offeredPerSec)}/s`)
  both('goodput', (fleet) => goodputBar(fleet, now.report.capacityPerSec, paint))
  both('attainment', ({ recent }) => share(recent, paint))
  for (const name of Object.keys(DEMO_CLASSES)) {
    both(`  ${name}`, ({ recentClasses }) => classCell(recentClasses[name], paint))
  }
  both('TTFT p50 / p99', ({ recent }) => `${shownMs(recent.ttftMs.p50)} / ${shownMs(recent.ttftMs.p99)}`)
  both('TPOT p50 / p99', ({ recent }) => `${shownMs(recent.tpotMs.p50)} / ${shownMs(recent.tpotMs.p99)}`)
  both('shed', ({ recent }) => `${shownRate((recent.shedRequests * 1000) / RECENT_MS)}/s`)
  both('open', ({ openRequests }) => `${openRequests} requests`)
  return [
    header,
    title(now, paint),
    table.toString(),
    soFar(now.report),
    shownValidity(now.report, colors),
    paint.dim(`figures of the last ${RECENT_MS / 1000} s · Ctrl-C for the summary`),
  ].join('\n')
}

/** The same in one line, for logs and pipes. */
export function liveLine(now: DemoNow): string {
  const part = (name: FleetName) => {
    const { recent, openRequests } = now.fleets[name]
    return [
      `${name}: good ${shownRate(goodPerSec(recent))}/s (${shownShare(recent.attainmentRatio)})`,
      `TTFT p99 ${shownMs(recent.ttftMs.p99)}`,
      `shed ${shownRate((recent.shedRequests * 1000) / RECENT_MS)}/s`,
      `open ${openRequests}`,
    ].join(', ')
  }
  const at = `${(now.elapsedMs / 1000).toFixed(0)} s ${now.phase} (${shownRate(now.offeredPerSec)}/s)`
  return `${at} | ${part('bare')} | ${part('sluice')} | lag ${shownMs(now.report.loopLagP99Ms)}`
}

/** The summary: goodput by phase, attainment by class, and what is kept at twice the capacity. */
export function summaryText(report: DemoReport, colors: boolean): string {
  const { bare, sluice } = report.fleets
  const style = { head: [], border: [], compact: true }
  const phases = new Table({
    head: [
      'load',
      'offered/s',
      'bare good/s',
      'attained',
      'TTFT p99',
      'Sluice good/s',
      'attained',
      'TTFT p99',
      'shed',
    ],
    style,
  })
  for (const own of bare.phases) {
    const other = sluice.phases.find(({ name }) => name === own.name)
    if (other === undefined) continue
    const cells = [own, other].map(({ goodPerSec: good, promised }) => [
      shownRate(good),
      shownShare(promised.attainmentRatio),
      shownMs(promised.ttftMs.p99),
    ])
    phases.push([own.name, shownRate(own.offeredPerSec), ...cells.flat(), String(other.all.shedRequests)])
  }
  const classes = new Table({ head: ['class', 'promise', 'bare attained', 'Sluice attained'], style })
  for (const name of Object.keys(DEMO_CLASSES)) {
    classes.push([name, promiseText(name), ...[bare, sluice].map((fleet) => classShare(fleet.classes[name]))])
  }
  return [
    phases.toString(),
    classes.toString(),
    verdictText(report, colors),
    `Sluice shed: ${shownCounts(sluice.all.sheds)}; told to come back in ${shownMs(sluice.all.retryAfterMs.p50)} (median); errors: ${shownCounts(sluice.all.errors)}`,
    `bare errors: ${shownCounts(bare.all.errors)}`,
    shownValidity(report, colors),
  ].join('\n')
}

/** A class's targets in words. */
export function promiseText(name: string): string {
  const slo = DEMO_CLASSES[name]
  if (slo === undefined) return ''
  const per1k = slo.ttftPer1kTokensMs === 0 ? '' : ` + ${shownMs(slo.ttftPer1kTokensMs)}/1k tokens`
  const parts = [
    slo.ttftMs === undefined ? [] : [`TTFT ${shownMs(slo.ttftMs)}${per1k}`],
    slo.tpotMs === undefined ? [] : [`TPOT ${shownMs(slo.tpotMs)}`],
    slo.e2eMs === undefined ? [] : [`whole ${shownMs(slo.e2eMs)}`],
  ].flat()
  return parts.length === 0 ? 'none: leftover capacity' : parts.join(', ')
}

function verdictText({ retainedRatio, retainedTargetRatio }: DemoReport, colors: boolean): string {
  const { bare, sluice } = retainedRatio
  if (sluice === undefined) return 'Too short to compare 1x and 2x.'
  const met = sluice >= retainedTargetRatio
  const paint = pc.createColors(colors)
  const kept = `At 2x Sluice keeps ${shownShare(sluice)} of its goodput at 1x (target ${shownShare(retainedTargetRatio)}); the bare fleet keeps ${shownShare(bare)}.`
  return met ? paint.green(kept) : paint.yellow(kept)
}

function title({ ramp, phase, offeredPerSec, elapsedMs, rampMs, report }: DemoNow, paint: Painter): string {
  const clock = (ms: Ms) =>
    `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, '0')}`
  return paint.bold(
    `ramp ${ramp} · ${phase} · ${shownRate(offeredPerSec)}/s to each fleet (1x = ${report.capacityPerSec}/s) · ${clock(elapsedMs)} of ${clock(rampMs)}`,
  )
}

type Painter = ReturnType<typeof pc.createColors>

function goodPerSec({ goodRequests }: GroupSummary): number {
  return (goodRequests * 1000) / RECENT_MS
}

function goodputBar({ recent }: FleetNow, capacityPerSec: number, paint: Painter): string {
  const perSec = goodPerSec(recent)
  const cells = Math.min(Math.round((perSec / (2 * capacityPerSec)) * BAR_CELLS), BAR_CELLS)
  return `${`${shownRate(perSec)}/s`.padEnd(8)} ${paint.green('█'.repeat(cells))}${paint.dim('░'.repeat(BAR_CELLS - cells))}`
}

function share({ attainmentRatio }: GroupSummary, paint: Painter): string {
  const text = shownShare(attainmentRatio)
  if (attainmentRatio === undefined) return text
  return attainmentRatio >= 0.9
    ? paint.green(text)
    : attainmentRatio >= 0.5
      ? paint.yellow(text)
      : paint.red(text)
}

function classCell(group: GroupSummary | undefined, paint: Painter): string {
  if (group === undefined || group.settledRequests === 0) return '–'
  if (group.attainmentRatio === undefined) return `${group.completedRequests} done`
  return share(group, paint)
}

function classShare(group: GroupSummary | undefined): string {
  if (group === undefined) return '–'
  return group.attainmentRatio === undefined
    ? `${group.completedRequests} of ${group.offeredRequests} done`
    : shownShare(group.attainmentRatio)
}

function soFar({ fleets }: DemoReport): string {
  const line = (name: FleetName) =>
    `${FLEET_TITLES[name].padEnd(18)} ${fleets[name].phases.map((phase) => `${phase.name} ${shownRate(phase.goodPerSec)}`.padEnd(12)).join('')}`
  return ['good/s by phase so far', line('bare'), line('sluice')].join('\n')
}
