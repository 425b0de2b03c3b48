/** Charts as SVG: gaps, stacking and marks. */
import { describe, expect, it } from 'vitest'
import { type ChartParts, chart } from '../../src/admin/console/chart.ts'

const parts: ChartParts = {
  title: 'Rates',
  summary: 'now 2/s',
  lines: [
    { name: 'good', look: 'good', steps: [1, 1, undefined, 2] },
    { name: 'bad', look: 'missed', steps: [1, 0, undefined, 2] },
  ],
  stacked: true,
  place: (value) => value / 4,
  ticks: [{ value: 4, label: '4/s' }],
  marks: [{ at: 0.5, trouble: true, text: 'r1 <is> down' }],
  unit: '/s',
  stepMs: 5000,
  endUnixMs: Date.UTC(2026, 0, 1, 12, 0, 0),
}
const drawn = (change: Partial<ChartParts> = {}) => String(chart({ ...parts, ...change }))
const pathOf = (svg: string, look: string) => new RegExp(`class="edge ${look}" d="([^"]*)"`).exec(svg)?.[1]

describe('a chart', () => {
  it('adds its lines up and leaves a gap where nothing is known', () => {
    expect(pathOf(drawn(), 'good')).toBe('M0,75L1,75M3,50')
    expect(pathOf(drawn(), 'missed')).toBe('M0,50L1,75M3,0')
    expect(pathOf(drawn({ stacked: false }), 'missed')).toBe('M0,75L1,100M3,50')
  })

  it('carries its values, its newest ones in words, and times of day', () => {
    const svg = drawn()
    expect(svg).toContain('data-series="[[1,1,null,2],[1,0,null,2]]"')
    expect(svg).toContain('good <b data-line="0">2/s</b>')
    expect(svg).toContain('<span>12:00 UTC</span>')
    expect(svg).toContain('role="img" aria-label="now 2/s"')
  })

  it('marks what happened, with its text escaped', () => {
    expect(drawn()).toContain('<g class="mark trouble"><title>r1 &lt;is&gt; down</title><line x1="50%"')
  })

  it('stands without any value', () => {
    const svg = drawn({ lines: [{ name: 'good', look: 'good', steps: [undefined, undefined] }] })
    expect(svg).toContain('<b data-line="0">–</b>')
    expect(svg).not.toMatch(/NaN|undefined|Infinity/)
  })
})
