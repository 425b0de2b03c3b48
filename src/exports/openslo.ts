/** The promises of a configuration as OpenSLO documents (version `openslo/v1`). */
import type { SloCatalog } from '../slo/attainment.ts'
import { type ClassPromise, promises } from './promises.ts'
import { promDuration, select } from './promql.ts'
import { SLO_SERVICE } from './rule.ts'

const SOURCE = 'prometheus'

/** The data source, the service, and an SLO for each promise. */
export function opensloDocuments(catalog: SloCatalog): readonly object[] {
  const document = (kind: string, name: string, displayName: string, spec: object) => {
    return { apiVersion: 'openslo/v1', kind, metadata: { name, displayName }, spec }
  }
  return [
    document('DataSource', SOURCE, 'The Prometheus that scrapes Sluice', {
      type: 'Prometheus',
      connectionDetails: { url: 'http://prometheus:9090' },
    }),
    document('Service', SLO_SERVICE, 'Sluice', {
      description: 'LLM servers behind Sluice, which judges every request that is offered.',
    }),
    ...promises(catalog).map((promise) =>
      document('SLO', promise.id, `${promise.className} on ${promise.model}`, sloSpec(promise, catalog)),
    ),
  ]
}

function sloSpec(
  { model, className, objectiveRatio, description }: ClassPromise,
  catalog: SloCatalog,
): object {
  const labels = { model, class: className, sli: 'all' } as const
  const counter = (key: 'sloEvents' | 'sloGoodEvents') => ({
    metricSource: {
      metricSourceRef: SOURCE,
      type: 'Prometheus',
      spec: { query: `sum(${select(key, labels)})` },
    },
  })
  return {
    description,
    service: SLO_SERVICE,
    indicator: {
      metadata: { name: `${className}-good` },
      spec: { ratioMetric: { counter: true, good: counter('sloGoodEvents'), total: counter('sloEvents') } },
    },
    timeWindow: [{ duration: promDuration(catalog.periodMs), isRolling: true }],
    budgetingMethod: 'Occurrences',
    objectives: [{ displayName: 'good', target: objectiveRatio }],
  }
}
