/** What a rule file of Prometheus is made of, and what an operator may choose about it. */
import type { Ms } from '../core/units.ts'
import type { BurnSeverity } from '../slo/burn-rate.ts'
import { MIN_JUDGED_REQUESTS } from '../slo/slo-health.ts'
import { DAY_MS } from '../slo/windows.ts'

export type Severity = BurnSeverity

export interface RecordingRule {
  readonly record: string
  readonly expr: string
  readonly labels?: Readonly<Record<string, string>>
}

export interface AlertingRule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>> & { readonly severity: Severity }
  readonly annotations: {
    readonly summary: string
    readonly description: string
    readonly runbook_url: string
  }
}

export interface RuleGroup {
  readonly name: string
  readonly rules: readonly (RecordingRule | AlertingRule)[]
}

export interface RuleOptions {
  /** The period that objectives are promised for; `slo.window` of the file. */
  readonly periodMs: Ms
  /** Fewer judged requests in the long window of a burn alert than this say nothing. */
  readonly minEvents: number
  /** More labels that tell promises apart besides model and class, e.g. `product` or `cluster`. */
  readonly by: readonly string[]
  /** Where the runbook is read; alerts add `#` and their name in lower case. */
  readonly runbook: string
}

export const DEFAULT_RULE_OPTIONS: RuleOptions = {
  periodMs: 30 * DAY_MS,
  minEvents: MIN_JUDGED_REQUESTS,
  by: [],
  runbook: 'docs/runbook.md',
}

/** The label values under which Sloth's dashboards list us. */
export const SLO_SERVICE = 'sluice'

/** The heading of an alert in the runbook, as an anchor. */
export function runbookAnchor(alert: string): string {
  return alert.toLowerCase()
}

export function isAlert(rule: RecordingRule | AlertingRule): rule is AlertingRule {
  return 'alert' in rule
}
