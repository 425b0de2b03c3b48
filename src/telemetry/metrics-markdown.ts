/** Writes docs/metrics.md from the metric table, so that the page can't lag behind the code. */
import { EXCLUSION_CAUSES, VERDICT_CAUSES } from '../slo/judge.ts'
import { BASE_BOUNDS, type BoundsName, LABEL_VALUES, METRIC_ROWS, type MetricRow } from './metric-table.ts'

const INTRO = `# Metrics

Served on the admin port under \`/metrics\`, as Prometheus text, or as OpenMetrics to whoever accepts that.
This page is generated from \`src/telemetry/metric-table.ts\`; change that, then run \`npm run docs:gen\`.

- Label values are names from your file or fixed words. A name that the file lacks becomes \`other\`; requests that no
  product rule matches have the product \`none\`. No request can create a series.
- Counters of every model, class, product and SLI stand at 0 from the start and from each reload on, so that
  \`rate()\` sees the first event. What a reload removes disappears.
- Alert on \`sluice_slo_events_total\` and \`sluice_slo_good_events_total\`: sum, then divide. The ratio gauges are for
  people; they can't be added up.
- Each class target is a bucket bound of its histogram, so a latency SLO read from buckets is exact. Targets that
  grow with the prompt appear with their value at zero prompt tokens; use the counters for those.
- A scrape is written in slices between which traffic goes on.
`

const HEAD = '| metric | type | unit | labels | question it answers |\n|---|---|---|---|---|\n'

/** The whole page, ending in a newline. */
export function metricsMarkdown(): string {
  const rows = METRIC_ROWS.map(([, row]) => row)
  const section = (title: string, scope: MetricRow['scope']): string =>
    `\n## ${title}\n\n${HEAD}${rows
      .filter((row) => row.scope === scope)
      .map(tableRow)
      .join('')}`
  return [
    INTRO,
    section('Per model and class: counted', 'class'),
    section('Per model and class: read off the rolling windows', 'window'),
    section('Global and per replica', 'global'),
    `\n## Label values\n\n| label | values |\n|---|---|\n${labelRows().join('')}`,
    `\n## Bucket bounds\n\n| bounds | metrics | values, before class targets |\n|---|---|---|\n${boundRows(rows).join('')}`,
    `\n## Causes of a verdict\n\n| cause | meaning | counts as |\n|---|---|---|\n${causeRows().join('')}`,
  ].join('')
}

function tableRow({ name, type, unit, labels, help }: MetricRow): string {
  const shown = labels.length === 0 ? '-' : labels.map((label) => `\`${label}\``).join(', ')
  return `| \`${name}\` | ${type} | ${unit} | ${shown} | ${help} |\n`
}

function labelRows(): string[] {
  const fixed: ReadonlyArray<readonly [string, readonly string[]]> = [
    ['`sli`', ['all', 'ttft', 'tpot', 'e2e']],
    ['`window`', ['5m', '30m', '1h', '2h', '6h', '1d', '3d', 'period']],
    ['`outcome`', LABEL_VALUES.outcome],
    ['`reason` of `sluice_shed_total`', LABEL_VALUES.reason],
    ['`reason` of `sluice_upstream_bounces_total`', LABEL_VALUES.bounce],
    ['`reason` of `sluice_rejected_requests_total`', ['the codes of docs/errors.md']],
    ['`cause`', EXCLUSION_CAUSES],
    ['`state` of `sluice_replica_state`', LABEL_VALUES.replicaState],
    ['`state` of `sluice_predictor_trust`', LABEL_VALUES.trust],
    ['`direction`', LABEL_VALUES.direction],
    ['`verdict`', LABEL_VALUES.verdict],
    ['`kind`', LABEL_VALUES.kind],
    ['`slo`', LABEL_VALUES.slo],
  ]
  return fixed.map(([label, values]) => `| ${label} | ${values.join(', ')} |\n`)
}

function boundRows(rows: readonly MetricRow[]): string[] {
  return (Object.keys(BASE_BOUNDS) as BoundsName[]).map((bounds) => {
    const users = rows.filter((row) => row.bounds === bounds).map((row) => `\`${row.name}\``)
    return `| ${bounds} | ${users.join(', ')} | ${BASE_BOUNDS[bounds].join(' ')} |\n`
  })
}

function causeRows(): string[] {
  const excluding: readonly string[] = EXCLUSION_CAUSES
  return Object.entries(VERDICT_CAUSES).map(([cause, meaning]) => {
    return `| \`${cause}\` | ${meaning} | ${excluding.includes(cause) ? 'excluded' : 'bad'} |\n`
  })
}
