/** Goodput over load as an SVG: a panel a fleet, a line an arm. Its colours read on light and dark ground alike. */
import { BARE, OURS } from './arms.mjs'
import { armsOf, loadsOf, valuesOf } from './grid-tables.mjs'
import { meanOf } from './stats.mjs'

const PANEL = { width: 300, height: 250, left: 44, top: 54, gap: 16 }
const FOOT = 70

/** Lines of their own; every other rival is one of "other tuned rivals". Later ones lie on top. */
const LINES = [
  { arm: BARE, name: 'bare fleet, round-robin', colour: '#8b949e', dash: '2 4', width: 2 },
  { arm: 'llm-d', name: 'llm-d gate', colour: '#a371f7', width: 1.75 },
  { arm: 'limit', name: 'request limit, timed queue', colour: '#2da06e', width: 1.75 },
  { arm: 'token-cap', name: 'vLLM token cap', colour: '#e5534b', width: 1.75 },
  { arm: 'scorpio', name: 'SCORPIO-like guard', colour: '#d9822b', width: 1.75 },
  { arm: OURS, name: 'Sluice', colour: '#2f81f7', width: 3.25 },
]
const OTHERS = { name: 'other tuned rivals', colour: '#8b949e', width: 0.9 }
const FOUND = { name: 'best found in hindsight', colour: '#8b949e' }
const BOUND = { name: 'certified bound', colour: '#8b949e', dash: '7 4', width: 1.25 }

const STYLE = `text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#656d76}
.title{font-weight:600;fill:#424a53}.rule{stroke:#8b949e;stroke-opacity:.28}
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#d1d7e0}}`

/** `results` are scenarios of the grid. Goodput is in times of 1x, so that panels compare. */
export function goodputPlot(results) {
  const width = PANEL.left + results.length * (PANEL.width + PANEL.gap)
  const height = PANEL.top + PANEL.height + FOOT
  const loads = results.flatMap(({ rows }) => loadsOf(rows))
  const most = Math.max(...results.flatMap(({ rows }) => rows.map(({ load, attained }) => load * attained)))
  const scale = {
    maxLoad: Math.max(...loads),
    minLoad: Math.min(...loads),
    maxGood: Math.ceil(most * 2 + 0.2) / 2,
  }
  const panels = results.map((result, index) =>
    panel(result, PANEL.left + index * (PANEL.width + PANEL.gap), scale, index),
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Goodput over offered load for each fleet and arm">
<style>${STYLE}</style>
${panels.join('\n')}
<text x="6" y="16">Goodput over offered load: requests within both promises, in times of what the bare fleet carries with 90 % good</text>
${legend(results, width, height)}
</svg>
`
}

const fixed = (value) => value.toFixed(1)

function panel({ scenario, rows, schedules = [], bounds = [] }, left, scale, index) {
  const x = (load) => left + (PANEL.width * (load - scale.minLoad)) / (scale.maxLoad - scale.minLoad)
  const y = (good) => PANEL.top + PANEL.height * (1 - good / scale.maxGood)
  const line = (points, { colour, width, dash }) => {
    const path = points
      .map(([load, good], at) => `${at === 0 ? 'M' : 'L'}${fixed(x(load))} ${fixed(y(good))}`)
      .join('')
    const dashed = dash === undefined ? '' : ` stroke-dasharray="${dash}"`
    return `<path d="${path}" fill="none" stroke="${colour}" stroke-width="${width}"${dashed} stroke-linejoin="round"/>`
  }
  const curve = (arm) => loadsOf(rows).map((load) => [load, load * meanOf(valuesOf(rows, arm, load)).mean])
  const meanAt = (list, field) =>
    [...new Set(list.map(({ load }) => load))]
      .sort((a, b) => a - b)
      .map((load) => [
        load,
        load * meanOf(list.filter((one) => one.load === load).map((one) => one[field])).mean,
      ])
  const named = LINES.filter(({ arm }) => armsOf(rows).includes(arm))
  const others = armsOf(rows).filter((arm) => isOtherRival(arm, named))
  return [
    `<g><text class="title" x="${left}" y="${PANEL.top - 14}">${escaped(scenario.id)}</text>`,
    ...grid(left, scale, x, y, index),
    line(meanAt(bounds, 'bound'), BOUND),
    ...others.map((arm) => line(curve(arm), { ...OTHERS })),
    ...named.map((style) => line(curve(style.arm), style)),
    ...meanAt(schedules, 'attained').map(([load, good]) => ring(x(load), y(good))),
    '</g>',
  ].join('\n')
}

const isOtherRival = (arm, named) =>
  !named.some((line) => line.arm === arm) && arm !== 'clairvoyant' && !arm.startsWith('sluice-')

const ring = (cx, cy) =>
  `<circle cx="${fixed(cx)}" cy="${fixed(cy)}" r="4" fill="none" stroke="${FOUND.colour}" stroke-width="1.5"/>`

function grid(left, { minLoad, maxLoad, maxGood }, x, y, index) {
  const marks = []
  for (let good = 0; good <= maxGood; good += 0.5) {
    marks.push(`<path class="rule" d="M${left} ${fixed(y(good))}h${PANEL.width}"/>`)
    if (index === 0) {
      marks.push(`<text x="${left - 8}" y="${fixed(y(good) + 4)}" text-anchor="end">${good}</text>`)
    }
  }
  for (let load = Math.ceil(minLoad * 2) / 2; load <= maxLoad; load += 0.5) {
    marks.push(
      `<text x="${fixed(x(load))}" y="${PANEL.top + PANEL.height + 18}" text-anchor="middle">${load}x</text>`,
    )
  }
  return marks
}

/** Names what is drawn, and nothing else. */
function legend(results, width, height) {
  const arms = results.flatMap(({ rows }) => armsOf(rows))
  const named = LINES.filter(({ arm }) => arms.includes(arm)).reverse()
  const others = arms.some((arm) => isOtherRival(arm, named)) ? [OTHERS] : []
  const found = results.some(({ schedules = [] }) => schedules.length > 0) ? [FOUND] : []
  const bound = results.some(({ bounds = [] }) => bounds.length > 0) ? [BOUND] : []
  const entries = [...named, ...others, ...found, ...bound]
  const columns = 5
  const step = (width - PANEL.left + 12) / columns
  return entries
    .map((entry, index) => {
      const x = PANEL.left + (index % columns) * step
      const y = height - 24 + Math.floor(index / columns) * 18 - 6
      const dash = entry.dash === undefined ? '' : ` stroke-dasharray="${entry.dash}"`
      const mark =
        entry === FOUND
          ? ring(x + 10, y - 4)
          : `<path d="M${fixed(x)} ${y - 4}h22" stroke="${entry.colour}" stroke-width="${entry.width}"${dash}/>`
      return `${mark}<text x="${fixed(x + 28)}" y="${y}">${escaped(entry.name)}</text>`
    })
    .join('\n')
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
