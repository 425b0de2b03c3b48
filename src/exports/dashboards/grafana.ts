/** Turns a dashboard into the JSON that Grafana reads: layout, datasource variable and the manners of each panel. */
import type { Dashboard, Panel, Query, Row, Threshold, Variable } from './panel.ts'

/** Read by Grafana 10 and later. */
const SCHEMA_VERSION = 39
const DATASOURCE = { type: 'prometheus', uid: `\${DS_PROMETHEUS}` }
const COLUMNS = 24
const PANEL_HEIGHT = 8
const NUMBER_HEIGHT = 4
const DEFAULT_WIDTH = 8

export function grafanaJson({ uid, title, description, variables, rows }: Dashboard): object {
  return {
    id: null,
    uid,
    title,
    description,
    tags: ['sluice', 'llm', 'slo'],
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    links: [
      {
        type: 'dashboards',
        tags: ['sluice'],
        title: 'Sluice',
        asDropdown: true,
        includeVars: true,
        keepTime: true,
      },
    ],
    annotations: { list: [reloads()] },
    templating: { list: [datasource(), ...variables.map(dropDown)] },
    panels: laidOut(rows),
  }
}

/** Marks the moments at which another configuration came into force. */
function reloads(): object {
  return {
    name: 'Configuration loaded',
    datasource: DATASOURCE,
    enable: true,
    iconColor: 'blue',
    expr: 'changes(sluice_config_last_reload_success_timestamp_seconds[2m]) > 0',
    titleFormat: 'configuration loaded',
    textFormat: '{{instance}}',
    step: '60s',
  }
}

function datasource(): object {
  return {
    name: 'DS_PROMETHEUS',
    label: 'Datasource',
    type: 'datasource',
    query: 'prometheus',
    current: {},
    hide: 0,
  }
}

function dropDown({ name, label, query }: Variable): object {
  return {
    name,
    label,
    type: 'query',
    datasource: DATASOURCE,
    query: { query, refId: name },
    definition: query,
    includeAll: true,
    allValue: '.*',
    multi: true,
    current: { selected: true, text: ['All'], value: ['$__all'] },
    refresh: 2,
    sort: 1,
    hide: 0,
  }
}

/** Rows under each other, and their panels beside each other as far as they fit. */
function laidOut(rows: readonly Row[]): readonly object[] {
  const placed: object[] = []
  let y = 0
  let id = 1
  for (const { title, panels } of rows) {
    placed.push({
      id: id++,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
    })
    y += 1
    let x = 0
    let lineHeight = 0
    for (const panel of panels) {
      const w = panel.width ?? DEFAULT_WIDTH
      const h = panel.kind === 'number' ? NUMBER_HEIGHT : PANEL_HEIGHT
      if (x + w > COLUMNS) {
        y += lineHeight
        x = 0
        lineHeight = 0
      }
      placed.push({ id: id++, ...panelJson(panel), gridPos: { x, y, w, h } })
      x += w
      lineHeight = Math.max(lineHeight, h)
    }
    y += lineHeight
  }
  return placed
}

const TYPES: Readonly<Record<Panel['kind'], string>> = {
  lines: 'timeseries',
  stack: 'timeseries',
  number: 'stat',
  heatmap: 'heatmap',
  states: 'state-timeline',
}

function panelJson(panel: Panel): object {
  const { title, description, kind, queries } = panel
  return {
    type: TYPES[kind],
    title,
    description,
    datasource: DATASOURCE,
    fieldConfig: { defaults: fieldDefaults(panel), overrides: [] },
    options: optionsOf(panel),
    targets: queries.map((query, place) => target(query, kind, place)),
  }
}

function target({ expr, legend }: Query, kind: Panel['kind'], place: number): object {
  const instant = kind === 'number'
  return {
    refId: String.fromCharCode(65 + place),
    datasource: DATASOURCE,
    editorMode: 'code',
    expr,
    legendFormat: legend,
    format: kind === 'heatmap' ? 'heatmap' : 'time_series',
    range: !instant,
    instant,
  }
}

function fieldDefaults({ kind, unit, min, max, thresholds, words }: Panel): object {
  return {
    unit,
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    color: { mode: kind === 'number' || kind === 'states' ? 'thresholds' : 'palette-classic' },
    thresholds: { mode: 'absolute', steps: steps(thresholds ?? []) },
    mappings: (words ?? []).map(({ value, text, color }, index) => ({
      type: 'value',
      options: { [value]: { text, color, index } },
    })),
    custom: customOf(kind, thresholds !== undefined),
  }
}

function customOf(kind: Panel['kind'], limited: boolean): object {
  if (kind === 'states') return { fillOpacity: 80, lineWidth: 0 }
  if (kind !== 'lines' && kind !== 'stack') return {}
  return {
    drawStyle: 'line',
    lineWidth: 1,
    fillOpacity: kind === 'stack' ? 40 : 8,
    showPoints: 'never',
    spanNulls: false,
    thresholdsStyle: { mode: limited ? 'dashed' : 'off' },
    stacking: { mode: kind === 'stack' ? 'normal' : 'none', group: 'A' },
  }
}

function optionsOf({ kind, unit }: Panel): object {
  if (kind === 'number') {
    return {
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      colorMode: 'value',
      graphMode: 'none',
      textMode: 'auto',
      justifyMode: 'auto',
    }
  }
  if (kind === 'heatmap') {
    return {
      calculate: false,
      color: { mode: 'scheme', scheme: 'Spectral', steps: 64 },
      yAxis: { unit, axisPlacement: 'left' },
      cellGap: 1,
      tooltip: { mode: 'single', yHistogram: true },
      legend: { show: true },
    }
  }
  const legend = { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] }
  if (kind === 'states') return { showValue: 'auto', rowHeight: 0.8, mergeValues: true, legend }
  return { legend, tooltip: { mode: 'multi', sort: 'desc' } }
}

function steps(thresholds: readonly Threshold[]): readonly object[] {
  if (thresholds.length === 0) return [{ color: 'green', value: null }]
  return thresholds.map(({ from, color }, place) => ({ color, value: place === 0 ? null : from }))
}
