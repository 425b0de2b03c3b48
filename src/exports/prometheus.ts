/** The rule file for Prometheus, and the same as an object of its operator for Kubernetes. */
import { alertGroup } from './alerts.ts'
import type { RuleGroup, RuleOptions } from './rule.ts'
import { sloRuleGroups } from './slo-rules.ts'

/** All groups: what is recorded, then what alerts. */
export function ruleGroups(options: RuleOptions): readonly RuleGroup[] {
  return [...sloRuleGroups(options), alertGroup(options)]
}

export function ruleFile(options: RuleOptions): object {
  return { groups: ruleGroups(options) }
}

/** A `PrometheusRule`; operators choose theirs by labels. */
export function prometheusRule(options: RuleOptions, labels: Readonly<Record<string, string>>): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'sluice', labels: { 'app.kubernetes.io/name': 'sluice', ...labels } },
    spec: ruleFile(options),
  }
}
