/** The load report that Envoy and gRPC weigh by: only for who asks, and never a number that divides by nothing. */
import { describe, expect, it } from 'vitest'
import { loadReport } from '../../src/edge/load-report.ts'

const asked = (form: string) => ({ 'endpoint-load-metrics-format': form })

describe('the load report', () => {
  it('says what is offered over what can be carried, in the form that was asked for', () => {
    expect(loadReport(asked('TEXT'), 0.8)).toEqual({
      'endpoint-load-metrics': 'TEXT application_utilization=1.25',
    })
    const { 'endpoint-load-metrics': json = '' } = loadReport(asked('json'), 2)
    expect(JSON.parse(json.replace(/^JSON /, ''))).toEqual({ application_utilization: 0.5 })
  })

  it('is absent for clients that did not ask, for forms unknown, and while nobody knows', () => {
    expect(loadReport({}, 1)).toEqual({})
    expect(loadReport(asked('BIN'), 1)).toEqual({})
    expect(loadReport(asked('TEXT'), undefined)).toEqual({})
  })

  it('stays a finite number above 0', () => {
    expect(loadReport(asked('TEXT'), 0)['endpoint-load-metrics']).toBe('TEXT application_utilization=100')
    expect(loadReport(asked('TEXT'), 1e9)['endpoint-load-metrics']).toBe('TEXT application_utilization=0.01')
  })
})
