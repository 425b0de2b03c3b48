/** The alerts beside the burn of error budgets: what can be wrong with predictions, replicas, books or Sluice itself. */
import { anyOf, noneOf, select } from './promql.ts'
import { type AlertingRule, type RuleGroup, type RuleOptions, runbookAnchor, type Severity } from './rule.ts'

interface AlertRow {
  readonly alert: string
  readonly severity: Severity
  /** How long it must hold before it fires; absent: at once. */
  readonly for?: string
  readonly expr: string
  readonly summary: string
  readonly description: string
}

/** An engine's page is read every half second; one that is this old is not lagging, it is gone. */
const STALE_SCRAPE_SEC = 30
/** Requests that an engine may have beyond ours (or lack of ours) before it counts as drift: lag alone makes a few. */
const DRIFT_REQUESTS = 5
/** Share of a class that may be refused for a while before somebody should look. */
const SHED_RATIO = 0.05
/** Completed requests in half an hour from which any model should have been learnt. */
const LEARNING_REQUESTS = 50
/** Lag of the event loop that shows in every TTFT. */
const LOOP_LAG_SEC = 0.1

const NOT_TAKING = anyOf('suspect|down')

/** Replicas, and what we know of them. */
const REPLICA_ALERTS: readonly AlertRow[] = [
  {
    alert: 'SluiceModelUnserved',
    severity: 'page',
    for: '2m',
    expr: `sum by (model) (rate(${select('shed', { reason: 'no_replica' })}[2m])) > 0`,
    summary: '{{ $labels.model }} has no replica that takes work',
    description:
      'Requests for {{ $labels.model }} are refused with `no_replica`: each of its replicas is suspect, down or gone.',
  },
  {
    alert: 'SluiceReplicaStuck',
    severity: 'ticket',
    for: '5m',
    expr: `sum by (job, instance, replica) (${select('replicaState', { state: NOT_TAKING })}) > 0`,
    summary: 'Replica {{ $labels.replica }} takes no work',
    description:
      '{{ $labels.instance }} sees {{ $labels.replica }} as suspect or down for 5 minutes: its port is refused, its exchanges fail, or it holds work and nothing moves.',
  },
  {
    alert: 'SluiceScrapeStale',
    severity: 'ticket',
    for: '5m',
    expr: `${select('scrapeAge')} > ${STALE_SCRAPE_SEC}
unless on (job, instance, replica)
${select('replicaState', { state: anyOf('suspect|down|draining') })} == 1`,
    summary: 'The metrics page of {{ $labels.replica }} can not be read',
    description:
      'The replica serves, but its page is more than half a minute old. Decisions go on by our own books; KV, foreign traffic and restarts are not seen.',
  },
  {
    alert: 'SluiceLedgerDrift',
    severity: 'ticket',
    for: '10m',
    expr: `abs(
  avg by (job, replica) (avg_over_time(${select('ledgerDrift')}[10m]) + avg_over_time(${select('inFlight')}[10m]))
  -
  sum by (job, replica) (avg_over_time(${select('inFlight')}[10m]))
) > ${DRIFT_REQUESTS}
unless on (job, replica)
sum by (job, replica) (${select('replicaState', { state: NOT_TAKING })}) > 0`,
    summary:
      'Replica {{ $labels.replica }} has {{ printf "%.0f" $value }} requests more or fewer than we sent',
    description:
      'On average over 10 minutes the engine reports other numbers than the books of all Sluices together: other clients use it, or a request was lost on the way.',
  },
  {
    alert: 'SluicePredictorUntrusted',
    severity: 'ticket',
    for: '15m',
    expr: `${select('trust', { state: 'fallback' })} == 1
and on (job, instance, model)
sum by (job, instance, model) (increase(${select('requests', { outcome: 'completed' })}[30m])) > ${LEARNING_REQUESTS}`,
    summary: 'Predictions for {{ $labels.model }} are not trusted',
    description:
      '{{ $labels.instance }} has had traffic enough to learn {{ $labels.model }} and still does not believe its predictions, so nothing is refused by them: overload is met by bounds on count and age alone.',
  },
]

/** Sluice itself. */
const OWN_ALERTS: readonly AlertRow[] = [
  {
    alert: 'SluiceAbsent',
    severity: 'page',
    for: '5m',
    expr: `absent(${select('buildInfo')})`,
    summary: 'No Sluice is being scraped',
    description:
      'Prometheus has no series of any Sluice: it does not run, or its admin port is not reached. Every other alert is silent meanwhile.',
  },
  {
    alert: 'SluiceReloadFailed',
    severity: 'ticket',
    for: '1m',
    expr: `${select('reloadSuccessful')} == 0`,
    summary: 'The configuration of {{ $labels.instance }} could not be loaded',
    description:
      'The file has a mistake and the one before is still in force. A restart would not come up. `sluice validate` names the place.',
  },
  {
    alert: 'SluiceConfigsDiffer',
    severity: 'ticket',
    for: '30m',
    expr: `count by (job) (count by (job, digest) (${select('configInfo')})) > 1`,
    summary: 'Sluices of {{ $labels.job }} run {{ $value }} different configurations',
    description:
      'They share engines and divide budgets by what their files say, so for more than a rollout they must agree.',
  },
  {
    alert: 'SluiceFaults',
    severity: 'ticket',
    expr: `increase(${select('faults')}[15m]) > 0`,
    summary: 'Sluice {{ $labels.instance }} caught a fault of its own',
    description: 'Lines with event `fault` in its log have the stack. Please report it.',
  },
  {
    alert: 'SluiceLoopLag',
    severity: 'ticket',
    for: '5m',
    expr: `${select('eventLoopLag', { quantile: '0.99' })} > ${LOOP_LAG_SEC}`,
    summary: 'Sluice {{ $labels.instance }} is itself too busy',
    description:
      'Its event loop runs more than a tenth of a second late, which is added to every first token. Give it a core, or run another instance.',
  },
]

/** Fewer requests than `minEvents` in a quarter of an hour say nothing of a share. */
function shedShare(minEvents: number): AlertRow {
  return {
    alert: 'SluiceShedShare',
    severity: 'ticket',
    for: '10m',
    expr: `sum by (model, class) (rate(${select('shed', { reason: noneOf('tenant_limit') })}[15m]))
/
(sum by (model, class) (rate(${select('requests')}[15m])) > 0)
> ${SHED_RATIO}
and
sum by (model, class) (increase(${select('requests')}[15m])) >= ${minEvents}`,
    summary: '{{ $value | humanizePercentage }} of {{ $labels.class }} on {{ $labels.model }} is refused',
    description:
      'More than a twentieth of the requests of the last 15 minutes was refused. The fleet is too small for what is offered, or a target is tighter than it can keep.',
  }
}

export function alertGroup({ runbook, minEvents }: RuleOptions): RuleGroup {
  const rows = [...REPLICA_ALERTS, shedShare(minEvents), ...OWN_ALERTS]
  const rules = rows.map(({ severity, summary, description, ...row }): AlertingRule => {
    const { alert, expr, for: holds } = row
    const annotations = { summary, description, runbook_url: `${runbook}#${runbookAnchor(alert)}` }
    return { alert, expr, ...(holds === undefined ? {} : { for: holds }), labels: { severity }, annotations }
  })
  return { name: 'sluice-alerts', rules }
}
