/** The promtool tests of the rules: what each alert needs to fire and to clear, and what must never raise one. */
import { burnPairs } from '../slo/burn-rate.ts'
import { alertCases } from './alert-cases.ts'
import { burnCases } from './burn-cases.ts'
import type { RuleOptions } from './rule.ts'

/** Groups alerts that are firing by what tells them apart here. */
const FIRING = 'count by (alertname, model, class, replica) (ALERTS{alertstate="firing"})'

export interface RuleTestFile {
  readonly rule_files: readonly string[]
  readonly evaluation_interval: string
  readonly tests: readonly { readonly name: string; readonly [field: string]: unknown }[]
}

/** Every other minute is often enough for the windows and halves the time that a run takes. */
const EVALUATION_INTERVAL = '2m'

/** A test file for `promtool test rules`; `ruleFile` is the path of the rules from where the test file stands. */
export function ruleTests(options: RuleOptions, ruleFile: string): RuleTestFile {
  const cases = [
    ...(burnPairs(options.periodMs).length === 0 ? [] : burnCases(options)),
    ...alertCases(options),
  ]
  return {
    rule_files: [ruleFile],
    evaluation_interval: EVALUATION_INTERVAL,
    tests: cases.map(({ name, input, firing }) => ({
      name,
      interval: '1m',
      input_series: input,
      promql_expr_test: firing.map(([minute, alerts]) => ({
        expr: FIRING,
        eval_time: `${minute}m`,
        exp_samples: alerts.map((labels) => ({ labels, value: 1 })),
      })),
    })),
  }
}
