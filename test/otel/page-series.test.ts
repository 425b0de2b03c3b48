/** What is read back from the page is what was counted. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PageReader } from '../../src/otel/page-series.ts'
import { good, rig } from '../telemetry/rig.ts'

function read(page: string): PageReader {
  const reader = new PageReader()
  for (const line of page.split('\n')) reader.line(line)
  return reader
}

describe('the page, read back', () => {
  it('has every series of it, histograms by bucket', async () => {
    const { observer } = rig()
    const settlement = good()
    observer.onSettled(settlement)
    observer.onSettled({ ...settlement, ttftMs: 700 })
    const page = String(await observer.metrics.scrape('text'))
    const { series, histograms } = read(page)
    const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    const ofHistograms = lines.filter((line) => /^\w+_(bucket|sum|count)[{ ]/.test(line))
    expect(series.length).toBe(lines.length - ofHistograms.length)
    const printed = histograms.map(({ counts }) => counts.length + 2)
    expect(printed.reduce((sum, count) => sum + count, 0)).toBe(ofHistograms.length)
    const ttft = histograms.find(
      ({ row, labels }) => row.name === 'sluice_time_to_first_token_seconds' && labels.class === 'chat',
    )
    expect(ttft).toMatchObject({ labels: { model: 'm', class: 'chat' }, count: 2, sum: 1 })
    const filled = ttft?.counts.flatMap((count, at) => (count > 0 ? [[ttft.bounds[at], count]] : []))
    expect(filled).toEqual([
      [0.3, 1],
      [0.75, 1],
    ])
    const events = series.find(
      ({ row, labels }) =>
        row.name === 'sluice_slo_events_total' &&
        labels.sli === 'all' &&
        labels.class === 'chat' &&
        labels.product === 'p',
    )
    expect(events?.value).toBe(2)
  })

  it('keeps label values whatever they hold', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (value) => {
        if (/[\r\u2028\u2029]/.test(value)) return
        const escaped = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
        const { series } = read(`sluice_tenant_tokens_total{tenant="${escaped}",kind="prompt"} 4`)
        expect(series.map(({ labels }) => labels)).toEqual([{ tenant: value, kind: 'prompt' }])
      }),
    )
  })

  it('passes over what is no number and what is not ours', () => {
    expect(read('# HELP x\nsluice_waiting_requests NaN\nother_total 3\n{ broken').series).toEqual([])
  })
})
