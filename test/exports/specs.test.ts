/** Promises as other tools' documents: one for each that there is, whole, and under names that those tools accept. */
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { opensloDocuments } from '../../src/exports/openslo.ts'
import { promises } from '../../src/exports/promises.ts'
import { slothPeriod, slothSpec } from '../../src/exports/sloth.ts'
import { yamlText } from '../../src/exports/yaml-text.ts'
import type { SloCatalog } from '../../src/slo/attainment.ts'
import { DAY_MS } from '../../src/slo/windows.ts'
import { sloOf } from '../slo/facts.ts'
import { unknownNames } from './known-series.ts'

const chat = sloOf({ name: 'chat', ttftMs: 500, ttftPer1kTokensMs: 250, tpotMs: 50, objectiveRatio: 0.995 })
const catalog: SloCatalog = {
  models: ['meta-llama/L_3.1', 'meta-llama/L-3-1'],
  classes: ['chat', 'batch'],
  products: ['none'],
  classFor: (name) => ({ chat, batch: sloOf({ name: 'batch' }) })[name],
  periodMs: 28 * DAY_MS,
}

describe('promises', () => {
  it('are those with an objective, under names of their own', () => {
    expect(promises(catalog).map(({ id }) => id)).toEqual([
      'meta-llama-l-3-1-chat',
      'meta-llama-l-3-1-chat-2',
    ])
  })

  it('are told in a sentence', () => {
    expect(promises(catalog)[0]?.description).toBe(
      '99.5 % of the requests of class chat offered to meta-llama/L_3.1 get their first token within 500 ms plus 250 ms per 1000 prompt tokens and get the others at 50 ms each on average; refused ones count as missed.',
    )
  })
})

interface SlothSpec {
  readonly version: string
  readonly slos: readonly {
    readonly name: string
    readonly objective: number
    readonly sli: { readonly events: { readonly error_query: string; readonly total_query: string } }
    readonly alerting: { readonly page_alert: object; readonly ticket_alert: object }
  }[]
}

describe('the specification for Sloth', () => {
  const spec = slothSpec(catalog, 'runbook.md') as SlothSpec

  it('has an SLO for each promise, its objective in percent', () => {
    expect(spec.version).toBe('prometheus/v1')
    expect(spec.slos.map(({ objective }) => objective)).toEqual([99.5, 99.5])
    expect(slothPeriod(catalog)).toBe('28d')
  })

  it('asks for series that there are, over the window that Sloth puts in', () => {
    for (const { sli } of spec.slos) {
      for (const query of [sli.events.error_query, sli.events.total_query]) {
        expect(query).toContain('[{{.window}}]')
        expect(unknownNames(query.replaceAll('{{.window}}', '5m'))).toEqual([])
      }
    }
  })
})

describe('the OpenSLO documents', () => {
  const text = yamlText('x', ...opensloDocuments(catalog))
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Record<string, unknown>)

  it('are a data source, a service and an SLO for each promise, all of version 1', () => {
    expect(documents.map(({ kind }) => kind)).toEqual(['DataSource', 'Service', 'SLO', 'SLO'])
    for (const { apiVersion } of documents) expect(apiVersion).toBe('openslo/v1')
  })

  it('refer to each other and promise what the file promises', () => {
    expect(documents[2]).toMatchObject({
      metadata: { name: 'meta-llama-l-3-1-chat' },
      spec: {
        service: (documents[1] as { metadata: { name: string } }).metadata.name,
        timeWindow: [{ duration: '4w', isRolling: true }],
        budgetingMethod: 'Occurrences',
        objectives: [{ target: 0.995 }],
        indicator: {
          spec: {
            ratioMetric: {
              counter: true,
              good: {
                metricSource: {
                  metricSourceRef: (documents[0] as { metadata: { name: string } }).metadata.name,
                },
              },
            },
          },
        },
      },
    })
  })
})
