/** The charts: goodput against what was offered, and how fast each promise burns its budget. */
import { html } from 'hono/html'
import type { Ms } from '../../core/units.ts'
import { burnPairs } from '../../slo/burn-rate.ts'
import type { EventFigures } from '../overview/events.ts'
import type { BurnHistory, HistoryFigures, Steps } from '../overview/history.ts'
import { promiseName } from '../overview/promises.ts'
import { shownSpan, shownTimes } from '../words.ts'
import { type ChartParts, chart, type Mark, type Tick } from './chart.ts'
import type { Html } from './marks.ts'

/** More burn charts than this are left to the table: the most burnt are drawn. */
const BURNS_DRAWN = 6

export interface ChartsView {
  readonly history: HistoryFigures
  readonly events: readonly EventFigures[]
  readonly unixOriginMs: Ms
  /** The period that objectives are promised for. */
  readonly periodMs: Ms
}

export function chartsRegion(view: ChartsView): Html {
  const { burns } = view.history
  const worst = [...burns].sort((a, b) => highest(b.burn) - highest(a.burn)).slice(0, BURNS_DRAWN)
  const left = burns.length - worst.length
  return html`${throughputChart(view)}
<div class="burns">${worst.map((burn) => burnChart(view, burn, burns))}</div>
${left > 0 ? html`<p class="aside">The ${worst.length} promises that burnt most are drawn; ${left} more are in the table.</p>` : ''}`
}

function throughputChart(view: ChartsView): Html {
  const { good, missed, shed } = view.history.perSec
  const totals = good.map((value, index) =>
    value === undefined ? undefined : value + (missed[index] ?? 0) + (shed[index] ?? 0),
  )
  const top = roundTop(highest(totals))
  return chart({
    ...shared(view),
    title: 'Goodput against what was offered',
    summary: `Requests a second by how they ended, over the last ${spanOf(view)}. Good: ${told(good, '/s')}. Missed: ${told(missed, '/s')}. Refused: ${told(shed, '/s')}.`,
    lines: [
      { name: 'good', look: 'good', steps: good },
      { name: 'missed', look: 'missed', steps: missed },
      { name: 'refused', look: 'shed', steps: shed },
    ],
    stacked: true,
    place: (value) => value / top,
    ticks: [0.5, 1].map((part) => ({ value: top * part, label: `${Number((top * part).toPrecision(3))}/s` })),
    unit: '/s',
  })
}

/** On a scale that grows with the logarithm, since what alerts lies between 1 and some hundreds. */
function burnChart(
  view: ChartsView,
  { key, burn, objectiveRatio }: BurnHistory,
  all: readonly BurnHistory[],
): Html {
  const name = promiseName(
    key,
    all.map((other) => other.key),
  )
  const ticks = burnTicks(view.periodMs)
  const top = Math.max(highest(burn), ...ticks.map(({ value }) => value)) * 1.15
  return chart({
    ...shared(view),
    title: name,
    summary: `Burn rate of ${name} over ${shownSpan(view.history.trailingMs)} at a time, in the last ${spanOf(view)}: ${told(burn, '×')}. At 1× the budget of ${Number(((1 - objectiveRatio) * 100).toPrecision(3))} % lasts exactly its period.`,
    lines: [{ name: 'burn', look: 'burn', steps: burn }],
    stacked: false,
    place: (value) => Math.log1p(value) / Math.log1p(top),
    ticks,
    unit: '×',
  })
}

/** Where the budget lasts its period, and where the fastest pair of windows would page. */
function burnTicks(periodMs: Ms): Tick[] {
  const page = burnPairs(periodMs).find(({ severity }) => severity === 'page')
  const even = { value: 1, label: '1×' }
  return page === undefined
    ? [even]
    : [even, { value: page.factor, label: `${shownTimes(page.factor)} pages`, alert: true }]
}

function shared(view: ChartsView): Pick<ChartParts, 'marks' | 'stepMs' | 'endUnixMs'> {
  const { stepMs, endAtMs } = view.history
  return { marks: marksOf(view), stepMs, endUnixMs: Math.round(endAtMs + view.unixOriginMs) }
}

function marksOf({ history, events }: ChartsView): Mark[] {
  const { endAtMs, stepMs, perSec } = history
  const spanMs = stepMs * perSec.good.length
  return events.flatMap(({ atMs, trouble, text }) => {
    const at = 1 - (endAtMs - atMs) / spanMs
    return at < 0 || at > 1 ? [] : [{ at, trouble, text }]
  })
}

function spanOf({ history: { stepMs, perSec } }: ChartsView): string {
  return shownSpan(stepMs * perSec.good.length)
}

/** `now 3.1/s, at most 4/s`. */
function told(steps: Steps, unit: string): string {
  const newest = steps.findLast((value) => value !== undefined)
  if (newest === undefined) return 'nothing yet'
  const shown = (value: number) => `${Number(value.toPrecision(3))}${unit}`
  return `now ${shown(newest)}, at most ${shown(highest(steps))}`
}

/** The highest finite value; 0 without any. */
function highest(steps: Steps): number {
  return steps.reduce<number>((most, value = 0) => (Number.isFinite(value) ? Math.max(most, value) : most), 0)
}

/** The next number above that people count by: 1, 2, 4 or 5 times a power of ten. */
function roundTop(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return power * ([1, 2, 4, 5, 10].find((step) => step * power >= value) ?? 10)
}
