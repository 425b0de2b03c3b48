/** The promises of a configuration as a specification for Sloth, which makes rules of its own from it. */
import type { SloCatalog } from '../slo/attainment.ts'
import { DAY_MS } from '../slo/windows.ts'
import { type ClassPromise, promises } from './promises.ts'
import { select } from './promql.ts'
import { runbookAnchor, SLO_SERVICE } from './rule.ts'
import { BURN_ALERTS } from './slo-rules.ts'

/** A document for `sloth generate`. The period is not part of it: see `slothPeriod`. */
export function slothSpec(catalog: SloCatalog, runbook: string): object {
  return {
    version: 'prometheus/v1',
    service: SLO_SERVICE,
    slos: promises(catalog).map((promise) => slo(promise, runbook)),
  }
}

/** What Sloth must be told on its command line. */
export function slothPeriod({ periodMs }: SloCatalog): string {
  return `${periodMs / DAY_MS}d`
}

function slo(promise: ClassPromise, runbook: string): object {
  const { model, className, objectiveRatio } = promise
  const labels = { model, class: className, sli: 'all' } as const
  const rate = (key: 'sloEvents' | 'sloGoodEvents') => `sum(rate(${select(key, labels)}[{{.window}}]))`
  const url = (severity: 'page' | 'ticket') => `${runbook}#${runbookAnchor(BURN_ALERTS[severity])}`
  return {
    name: promise.id,
    objective: promise.objectivePercent,
    description: promise.description,
    labels: { model, class: className },
    sli: {
      events: {
        error_query: `${rate('sloEvents')} - ${rate('sloGoodEvents')}`,
        total_query: rate('sloEvents'),
      },
    },
    alerting: {
      name: 'SluiceSloBurn',
      labels: { model, class: className },
      annotations: {
        summary: `${className} on ${model} burns its error budget (objective ${objectiveRatio})`,
      },
      page_alert: { labels: { severity: 'page' }, annotations: { runbook_url: url('page') } },
      ticket_alert: { labels: { severity: 'ticket' }, annotations: { runbook_url: url('ticket') } },
    },
  }
}
