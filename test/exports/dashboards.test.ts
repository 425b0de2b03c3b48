/** The dashboards: every query names what exists, every panel can be placed, and nothing is tied to one installation. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DASHBOARDS, type DashboardName, dashboardText } from '../../src/exports/dashboards/all.ts'
import { yamlText } from '../../src/exports/yaml-text.ts'
import { METRIC_ROWS } from '../../src/telemetry/metric-table.ts'
import { HAS_PROMTOOL, runTool } from '../support/promtool.ts'
import { unknownNames } from './known-series.ts'

interface PanelJson {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly {
    readonly refId: string
    readonly expr: string
    readonly legendFormat: string
  }[]
}

interface DashboardJson {
  readonly id: null
  readonly uid: string
  readonly schemaVersion: number
  readonly panels: readonly PanelJson[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: unknown }[] }
  readonly annotations: { readonly list: readonly { readonly expr: string }[] }
}

/** What Grafana puts in place of its variables, in a shape that PromQL takes. */
const filledIn = (expr: string): string =>
  expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$(job|model|class|product|replica|tenant)\b/g, '.*')

const names = Object.keys(DASHBOARDS) as DashboardName[]
const parsed = (name: DashboardName) => JSON.parse(dashboardText(name)) as DashboardJson
const queriesOf = (dashboard: DashboardJson): readonly string[] => [
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...dashboard.annotations.list.map(({ expr }) => expr),
]

describe.each(names)('the dashboard %s', (name) => {
  const dashboard = parsed(name)

  it('asks only for series and labels that there are', () => {
    const queries = queriesOf(dashboard)
    expect(queries.length).toBeGreaterThan(15)
    expect(queries.flatMap((expr) => unknownNames(filledIn(expr)))).toEqual([])
    expect(queries.map(filledIn).filter((expr) => expr.includes('$'))).toEqual([])
  })

  it('is tied to no installation: the datasource is chosen, and so is each variable that a query uses', () => {
    expect(dashboard.id).toBeNull()
    expect(dashboard.uid.length).toBeLessThanOrEqual(40)
    const uids = [...dashboardText(name).matchAll(/"uid": "([^"]*)"/g)].map(([, uid]) => uid)
    expect(new Set(uids)).toEqual(new Set([dashboard.uid, `\${DS_PROMETHEUS}`]))
    const variables = dashboard.templating.list.map((variable) => variable.name)
    expect(variables[0]).toBe('DS_PROMETHEUS')
    const used = queriesOf(dashboard).flatMap((expr) =>
      [...expr.matchAll(/\$([a-z]+)\b/g)].map(([, used]) => used),
    )
    expect(new Set(used)).toEqual(new Set(variables.slice(1)))
  })

  it('has a title and words for each panel, and legends that name labels the query keeps', () => {
    for (const { type, title, description, targets = [] } of dashboard.panels.filter(
      ({ type }) => type !== 'row',
    )) {
      expect(title, type).not.toBe('')
      expect(description, title).toMatch(/\.$/)
      expect(targets.length, title).toBeGreaterThan(0)
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length)
      for (const { expr, legendFormat } of targets) {
        const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(
          ([, labels]) => labels?.split(', ') ?? [],
        )
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label ?? '')
        if (kept.length > 0)
          expect(
            shown.filter((label) => !kept.includes(label)),
            title,
          ).toEqual([])
      }
    }
  })

  it('lays panels beside and below each other, never over', () => {
    const cells = new Set<string>()
    for (const { id, gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(cells.has(`${x}/${y}`), `panel ${id} at ${x}/${y}`).toBe(false)
          cells.add(`${x}/${y}`)
        }
      }
    }
  })
})

describe('the dashboards together', () => {
  it('keep the panels that people know from vLLM', () => {
    const titles = names.flatMap((name) => parsed(name).panels.map(({ title }) => title)).join('\n')
    for (const known of [
      'E2E Request Latency',
      'Token Throughput',
      'Inter Token Latency',
      'Scheduler State',
      'Time To First Token Latency',
      'Cache Utilization',
      'Finish Reason',
      'Queue Time',
    ]) {
      expect(titles.toLowerCase()).toContain(known.toLowerCase())
    }
  })

  it('show every metric but those for machines', () => {
    const text = names.map(dashboardText).join()
    const unseen = METRIC_ROWS.map(([, { name }]) => name).filter((name) => !text.includes(name))
    expect(unseen).toEqual([
      'sluice_slo_attainment_ratio',
      'sluice_goodput_requests_per_second',
      'sluice_waiting_bytes',
      'sluice_oversized_frames_total',
      'sluice_clamped_requests_total',
      'sluice_log_suppressed_total',
      'sluice_config_info',
      'sluice_model_info',
      'sluice_config_last_reload_successful',
      'process_start_time_seconds',
    ])
  })
})

describe.skipIf(!HAS_PROMTOOL)('promtool', () => {
  it('parses every query', async () => {
    const rules = names.flatMap((name) =>
      queriesOf(parsed(name)).map((expr, place) => ({ record: `q:${name}:${place}`, expr: filledIn(expr) })),
    )
    const folder = await mkdtemp(join(tmpdir(), 'sluice-queries-'))
    try {
      await writeFile(
        join(folder, 'queries.yml'),
        yamlText('queries', { groups: [{ name: 'queries', rules }] }),
      )
      expect(await runTool('promtool', ['check', 'rules', 'queries.yml'], folder)).toContain(
        `${rules.length} rules`,
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
