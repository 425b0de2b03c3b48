/** When cumulative series begin: at the start, when they appear, and anew when they fell. */
import { DataPointType } from '@opentelemetry/sdk-metrics'
import { describe, expect, it } from 'vitest'
import { MetricBridge } from '../../src/otel/metric-bridge.ts'

function bridgeOf(pages: string[]) {
  const clock = { unixMs: 1000 }
  const ports = { page: async () => pages.shift() ?? '', unixMs: () => clock.unixMs }
  const bridge = new MetricBridge(ports, { name: 'sluice', version: '1' })
  /** Series of counters by their model, as start and value in seconds. */
  const collect = async (atMs: number) => {
    clock.unixMs = atMs
    const { resourceMetrics } = await bridge.collect()
    return resourceMetrics.scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .flatMap((metric) => (metric.dataPointType === DataPointType.SUM ? metric.dataPoints : []))
      .map(({ attributes, startTime, endTime, value }) => [attributes.model, startTime[0], endTime[0], value])
  }
  return { collect, bridge }
}

const line = (model: string, value: number) => `sluice_upstream_reroutes_total{model="${model}"} ${value}`

describe('a counter', () => {
  it('begins with the process, or after the last look without it, and anew when it fell', async () => {
    const { collect } = bridgeOf([
      line('a', 5),
      `${line('a', 6)}\n${line('b', 1)}`,
      `${line('a', 2)}\n${line('b', 1)}`,
      line('b', 1),
      line('a', 2),
    ])
    expect(await collect(2000)).toEqual([['a', 1, 2, 5]])
    expect(await collect(3000)).toEqual([
      ['a', 1, 3, 6],
      ['b', 2, 3, 1],
    ])
    expect(await collect(4000)).toEqual([
      ['a', 3, 4, 2],
      ['b', 2, 4, 1],
    ])
    expect(await collect(5000)).toEqual([['b', 2, 5, 1]])
    expect(await collect(6000)).toEqual([['a', 5, 6, 2]])
  })

  it('has the unit and the help of its row, and none is left of an empty page', async () => {
    const { bridge } = bridgeOf([line('a', 5), ''])
    const metricsOf = async () => (await bridge.collect()).resourceMetrics.scopeMetrics[0]?.metrics
    expect(await metricsOf()).toMatchObject([
      {
        descriptor: {
          name: 'sluice_upstream_reroutes_total',
          unit: '{request}',
          description: expect.stringContaining('second replica'),
        },
        isMonotonic: true,
      },
    ])
    expect(await metricsOf()).toEqual([])
  })
})
