/** Error ratios, budgets and burn-rate alerts of every promise, as rules that know no class by name. */
import { burnPairs } from '../slo/burn-rate.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../slo/windows.ts'
import { braced, plainNumber, promDuration, select } from './promql.ts'
import {
  type AlertingRule,
  type RecordingRule,
  type RuleGroup,
  type RuleOptions,
  runbookAnchor,
  type Severity,
  SLO_SERVICE,
} from './rule.ts'

/**
 * Windows that error ratios are recorded over: those of the burn pairs, of which Sloth records the same. Its names and
 * labels (`slo:…`, `sloth_…`) are kept, so that dashboards made for it show our promises.
 */
const WINDOWS_MS = [
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  6 * HOUR_MS,
  DAY_MS,
  3 * DAY_MS,
] as const

/** The indicator that alerts are made on: every request offered, so that shedding can't flatter it. */
const ALERTED_SLI = 'all'

export const BURN_ALERTS: Readonly<Record<Severity, string>> = {
  page: 'SluiceSloBurnFast',
  ticket: 'SluiceSloBurnSlow',
}

/** What we record, and nothing that Sloth records, be it for other services or from our own `export sloth`. */
const OURS = braced({ sloth_service: SLO_SERVICE, sli: { op: '!=', value: '' } })

/** Rules over the counters of judged requests. They hold for whatever classes the file has now or after a reload. */
export function sloRuleGroups(options: RuleOptions): readonly RuleGroup[] {
  return [
    { name: 'sluice-slo-sli-recordings', rules: [...errorRatios(options), periodErrorRatio(options)] },
    { name: 'sluice-slo-meta-recordings', rules: metaRecords(options) },
    { name: 'sluice-slo-alerts', rules: [...burnAlert('page', options), ...burnAlert('ticket', options)] },
  ]
}

/** The labels that make one promise. */
function promiseLabels({ by }: RuleOptions): readonly string[] {
  return ['model', 'class', ...by, 'sli']
}

/** Adds the labels by which Sloth's dashboards tell SLOs apart. */
function named(expr: string, options: RuleOptions): string {
  const parts = promiseLabels(options)
    .map((label) => `"${label}"`)
    .join(', ')
  return `label_replace(
  label_join(
${indented(expr, 4)},
    "sloth_slo", "-", ${parts}
  ),
  "sloth_id", "${SLO_SERVICE}-$1", "sloth_slo", "(.*)"
)`
}

function windowsOf({ periodMs }: RuleOptions): readonly number[] {
  return WINDOWS_MS.filter((windowMs) => windowMs < periodMs)
}

function errorRatios(options: RuleOptions): readonly RecordingRule[] {
  const by = `sum by (${promiseLabels(options).join(', ')})`
  const longs = new Set(burnPairs(options.periodMs).map(({ long }) => long))
  return windowsOf(options).flatMap((windowMs) => {
    const window = promDuration(windowMs)
    const ratio = `1 - (
  ${by} (rate(${select('sloGoodEvents')}[${window}]))
  /
  (${by} (rate(${select('sloEvents')}[${window}])) > 0)
)`
    const labels = { sloth_service: SLO_SERVICE, sloth_window: window }
    const rule = { record: `slo:sli_error:ratio_rate${window}`, expr: named(ratio, options), labels }
    if (!longs.has(window)) return [rule]
    return [
      rule,
      { record: eventsRecord(window), expr: `${by} (increase(${select('sloEvents')}[${window}]))` },
    ]
  })
}

/** How many requests were judged over a window: the floor under which no burn alert speaks. */
function eventsRecord(window: string): string {
  return `sluice:slo_events:increase${window}`
}

/**
 * Over the whole period, weighted by requests as our own accounts are. The counters' rates are kept every interval and
 * summed up, which costs a fraction of reading the counters back over the whole period.
 */
function periodErrorRatio(options: RuleOptions): RecordingRule {
  const window = promDuration(options.periodMs)
  const weight = 'sluice:slo_events:rate5m'
  const ratio = `sum_over_time(sluice:slo_errors:rate5m[${window}])
/
(sum_over_time(${weight}[${window}]) > 0)`
  return {
    record: `slo:sli_error:ratio_rate${window}`,
    expr: named(ratio, options),
    labels: { sloth_service: SLO_SERVICE, sloth_window: window },
  }
}

function metaRecords(options: RuleOptions): readonly RecordingRule[] {
  const labels = promiseLabels(options)
  const events = `sum by (${labels.join(', ')}) (rate(${select('sloEvents')}[5m]))`
  const good = `sum by (${labels.join(', ')}) (rate(${select('sloGoodEvents')}[5m]))`
  const owners = labels.filter((label) => label !== 'sli' && label !== 'product')
  const objective = `group by (${labels.join(', ')}) (${select('sloEvents')})
* on (${owners.join(', ')}) group_left ()
max by (${owners.join(', ')}) (${select('sloObjective')})`
  const period = promDuration(options.periodMs)
  const perBudget = (record: string): string =>
    `max without (sloth_window) (${record}${OURS}) / on (sloth_id) group_left () slo:error_budget:ratio${OURS}`
  const named_ = { sloth_service: SLO_SERVICE }
  return [
    { record: 'sluice:slo_events:rate5m', expr: events },
    { record: 'sluice:slo_errors:rate5m', expr: `${events}\n-\n${good}` },
    { record: 'slo:objective:ratio', expr: named(objective, options), labels: named_ },
    { record: 'slo:error_budget:ratio', expr: `1 - slo:objective:ratio${OURS}` },
    { record: 'slo:time_period:days', expr: `slo:objective:ratio${OURS} * 0 + ${options.periodMs / DAY_MS}` },
    { record: 'slo:current_burn_rate:ratio', expr: perBudget('slo:sli_error:ratio_rate5m') },
    { record: 'slo:period_burn_rate:ratio', expr: perBudget(`slo:sli_error:ratio_rate${period}`) },
    { record: 'slo:period_error_budget_remaining:ratio', expr: `1 - slo:period_burn_rate:ratio${OURS}` },
    {
      record: 'sloth_slo_info',
      expr: `slo:objective:ratio${OURS} * 0 + 1`,
      labels: { sloth_mode: 'sluice', sloth_spec: 'sluice/v1' },
    },
  ]
}

/** None for a period too short for any pair of that severity. */
function burnAlert(severity: Severity, options: RuleOptions): readonly AlertingRule[] {
  const pairs = burnPairs(options.periodMs).filter((pair) => pair.severity === severity)
  const alerted = braced({ sloth_service: SLO_SERVICE, sli: ALERTED_SLI })
  const burn = (window: string): string =>
    `slo:sli_error:ratio_rate${window}${alerted} / on (sloth_id) group_left () slo:error_budget:ratio${alerted}`
  const on = promiseLabels(options).join(', ')
  if (pairs.length === 0) return []
  const terms = pairs.map(({ long, short, factor }) => {
    const limit = plainNumber(factor)
    return `(
  max without (sloth_window) (${burn(long)}) > ${limit}
  and on (sloth_id)
  ${burn(short)} > ${limit}
  and on (${on})
  ${eventsRecord(long)} >= ${options.minEvents}
)`
  })
  const windows = pairs.map(({ long, short }) => `${long}/${short}`).join(' or ')
  const alert = BURN_ALERTS[severity]
  const what = '{{ $labels.class }} on {{ $labels.model }}'
  const rule: AlertingRule = {
    alert,
    expr: terms.join('\nor\n'),
    labels: { severity, sloth_severity: severity },
    annotations: {
      summary: `${what} burns its error budget {{ printf "%.1f" $value }} times faster than its objective allows`,
      description: `Over both windows of a pair (${windows}) more requests of ${what} missed their promise than the objective lets pass. Sheds count as missed. Look at which indicator fails (ttft, tpot or only \`all\`) first.`,
      runbook_url: `${options.runbook}#${runbookAnchor(alert)}`,
    },
  }
  return [rule]
}

function indented(text: string, spaces: number): string {
  return text.replaceAll(/^/gm, ' '.repeat(spaces))
}
