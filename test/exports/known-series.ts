/** Which series and labels a query of ours may name: those of the metric table, and what our own rules record. */
import { ruleGroups } from '../../src/exports/prometheus.ts'
import { TARGET_LABELS } from '../../src/exports/promql.ts'
import { DEFAULT_RULE_OPTIONS, isAlert } from '../../src/exports/rule.ts'
import { METRIC_ROWS } from '../../src/telemetry/metric-table.ts'
import { queryParts } from '../support/promql.ts'

const SLOTH_LABELS = ['sloth_id', 'sloth_service', 'sloth_slo', 'sloth_window']
const RECORD_LABELS = ['model', 'class', 'sli', ...SLOTH_LABELS]

const table = new Map<string, readonly string[]>(
  METRIC_ROWS.flatMap(([, { name, type, labels }]): [string, readonly string[]][] =>
    type === 'histogram'
      ? [
          [`${name}_bucket`, [...labels, 'le']],
          [`${name}_sum`, labels],
          [`${name}_count`, labels],
        ]
      : [[name, labels]],
  ),
)
const records = ruleGroups(DEFAULT_RULE_OPTIONS).flatMap(({ rules }) =>
  rules.flatMap((rule) => (isAlert(rule) ? [] : [rule.record])),
)
for (const record of records) table.set(record, RECORD_LABELS)

/** What is wrong with the names in a query; empty when nothing is. */
export function unknownNames(expr: string): readonly string[] {
  const { selectors, groupLabels } = queryParts(expr)
  if (selectors.length === 0) return [`selects nothing: ${expr}`]
  const offered = new Set<string>(TARGET_LABELS)
  const wrong = selectors.flatMap(({ metric, labels }) => {
    const known = table.get(metric)
    if (known === undefined) return [`no metric ${metric}`]
    for (const label of known) offered.add(label)
    const allowed = new Set<string>([...known, ...TARGET_LABELS])
    return labels.filter((label) => !allowed.has(label)).map((label) => `${metric} has no label ${label}`)
  })
  return [
    ...wrong,
    ...groupLabels.filter((label) => !offered.has(label)).map((label) => `no series has ${label}`),
  ]
}
