/** Draws one chart over time as SVG: areas or a line on a scale, with marks for what happened. */
import { html } from 'hono/html'
import type { Ms, Ratio } from '../../core/units.ts'
import type { Steps } from '../overview/history.ts'
import { shownClock } from '../words.ts'
import type { Html } from './marks.ts'

export interface Line {
  readonly name: string
  /** Class of its stroke and fill. */
  readonly look: 'good' | 'missed' | 'shed' | 'burn'
  readonly steps: Steps
}

export interface Tick {
  readonly value: number
  readonly label: string
  /** A level that alerts start at. */
  readonly alert?: boolean
}

/** Something that happened, at a share of the shown time. */
export interface Mark {
  readonly at: Ratio
  readonly trouble: boolean
  readonly text: string
}

export interface ChartParts {
  readonly title: string
  /** What the lines say, for who can't see them. */
  readonly summary: string
  readonly lines: readonly Line[]
  /** Lines are added up, the first at the bottom. */
  readonly stacked: boolean
  /** Where a value stands between bottom (0) and top (1). */
  readonly place: (value: number) => Ratio
  readonly ticks: readonly Tick[]
  readonly marks: readonly Mark[]
  readonly unit: '/s' | '×'
  readonly stepMs: Ms
  readonly endUnixMs: Ms
}

const HEIGHT = 100

export function chart(parts: ChartParts): Html {
  const { lines, ticks, marks, unit, stepMs, endUnixMs } = parts
  const steps = lines[0]?.steps.length ?? 0
  const series = lines.map(({ steps: values }) =>
    values.map((value) => (value === undefined ? null : rounded(value))),
  )
  return html`<figure class="chart">
<figcaption><h3>${parts.title}</h3><p class="legend">${lines.map((line, index) => legend(line, unit, index))}</p></figcaption>
<svg class="plot" role="img" aria-label="${parts.summary}" data-unit="${unit}" data-step="${stepMs}" data-end="${endUnixMs}" data-series="${JSON.stringify(series)}">
${ticks.map((tick) => tickLine(tick, parts.place))}
<svg width="100%" height="100%" viewBox="0 0 ${Math.max(1, steps - 1)} ${HEIGHT}" preserveAspectRatio="none">${drawn(parts)}</svg>
${marks.map(markLine)}
<line class="cursor" y2="100%" visibility="hidden"/>
</svg>
<p class="times" aria-hidden="true">${timesOf(steps, stepMs, endUnixMs)}</p>
</figure>`
}

/** The newest value that is known; a script shows the one at the cursor instead. */
function legend({ name, look, steps }: Line, unit: string, index: number): Html {
  const newest = steps.findLast((value) => value !== undefined)
  const value = newest === undefined ? '–' : `${rounded(newest)}${unit}`
  return html`<span class="key"><svg class="swatch ${look}" viewBox="0 0 12 12" aria-hidden="true"><rect width="12" height="12" rx="2"/></svg>${name} <b data-line="${index}">${value}</b></span>`
}

function tickLine({ value, label, alert }: Tick, place: ChartParts['place']): Html {
  const y = `${rounded((1 - place(value)) * 100)}%`
  return html`<g class="tick${alert === true ? ' alert' : ''}"><line x2="100%" y1="${y}" y2="${y}"/><text y="${y}" dy="-4">${label}</text></g>`
}

function markLine({ at, trouble, text }: Mark): Html {
  const x = `${rounded(at * 100)}%`
  return html`<g class="mark${trouble ? ' trouble' : ''}"><title>${text}</title><line x1="${x}" x2="${x}" y2="100%"/><circle cx="${x}" cy="100%" r="3"/></g>`
}

function timesOf(steps: number, stepMs: Ms, endUnixMs: Ms): Html[] {
  return [steps, steps / 2, 0].map(
    (back) =>
      html`<span>${shownClock(endUnixMs - back * stepMs).slice(0, 5)}${back === 0 ? ' UTC' : ''}</span>`,
  )
}

function drawn({ lines, stacked, place }: ChartParts): Html[] {
  let floor: readonly number[] = (lines[0]?.steps ?? []).map(() => 0)
  const areas = lines.map(({ look, steps }) => {
    const base = floor
    const tops = steps.map((value, index) =>
      value === undefined ? undefined : value + (stacked ? (base[index] ?? 0) : 0),
    )
    if (stacked) floor = tops.map((top, index) => top ?? base[index] ?? 0)
    const y = (value: number) => rounded((1 - place(value)) * HEIGHT)
    const runs = runsOf(tops)
    const top = runs
      .map((run) => `M${run.map(([index, value]) => `${index},${y(value)}`).join('L')}`)
      .join('')
    const area = runs.map((run) => areaOf(run, (index) => y(base[index] ?? 0), y)).join('')
    return html`<path class="area ${look}" d="${area}"/><path class="edge ${look}" d="${top}"/>`
  })
  // The first stands in front, since it is the one that counts.
  return areas.reverse()
}

type Run = readonly (readonly [index: number, value: number])[]

function areaOf(run: Run, floorY: (index: number) => number, y: (value: number) => number): string {
  const there = run.map(([index, value]) => `${index},${y(value)}`)
  const back = run.map(([index]) => `${index},${floorY(index)}`).reverse()
  return `M${[...there, ...back].join('L')}Z`
}

/** Stretches without a gap. */
function runsOf(values: Steps): Run[] {
  const runs: [number, number][][] = []
  let open: [number, number][] | undefined
  values.forEach((value, index) => {
    if (value === undefined || !Number.isFinite(value)) {
      open = undefined
      return
    }
    if (open === undefined) {
      open = []
      runs.push(open)
    }
    open.push([index, value])
  })
  return runs
}

/** Three digits are finer than a pixel. */
function rounded(value: number): number {
  return Number(value.toPrecision(3))
}
