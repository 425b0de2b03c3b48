/** Our rules against those that the real Sloth makes of our specification: the same ratios, the same alerts at the same minutes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { burnCases } from '../../src/exports/burn-cases.ts'
import { ruleFile } from '../../src/exports/prometheus.ts'
import { DEFAULT_RULE_OPTIONS } from '../../src/exports/rule.ts'
import type { RuleCase } from '../../src/exports/rule-case.ts'
import { slothSpec } from '../../src/exports/sloth.ts'
import { yamlText } from '../../src/exports/yaml-text.ts'
import type { SloCatalog } from '../../src/slo/attainment.ts'
import { sloOf } from '../slo/facts.ts'
import { HAS_PROMTOOL, HAS_SLOTH, runTool } from '../support/promtool.ts'

const catalog: SloCatalog = {
  models: ['m'],
  classes: ['chat'],
  products: ['none'],
  classFor: () => sloOf({ name: 'chat', ttftMs: 500, objectiveRatio: 0.99 }),
  periodMs: DEFAULT_RULE_OPTIONS.periodMs,
}

/** Sloth knows no floor of requests, and this catalog has one class. */
const comparable = ({ name }: RuleCase): boolean => !/handful|each class/.test(name)

function sideBySide({ name, input, firing }: RuleCase): object {
  const differ = (window: string): string => {
    const of = (slo: string) => `sum(slo:sli_error:ratio_rate${window}{sloth_slo="${slo}"})`
    return `abs(${of('m-chat-all')} - ${of('m-chat')}) > 1e-9`
  }
  const same = (minute: number) =>
    ['5m', '30m', '1h', '2h', '6h', '1d', '3d'].map((window) => ({
      expr: differ(window),
      eval_time: `${minute}m`,
      exp_samples: [],
    }))
  const alerts = ([minute, fired]: RuleCase['firing'][number]) => ({
    expr: 'count by (sloth_severity) (ALERTS{alertname="SluiceSloBurn",alertstate="firing"})',
    eval_time: `${minute}m`,
    exp_samples: fired.map((alert) => ({
      labels: `{sloth_severity="${alert.includes('Fast') ? 'page' : 'ticket'}"}`,
      value: 1,
    })),
  })
  const both = { expr: 'count(slo:sli_error:ratio_rate5m{sloth_slo=~"m-chat(-all)?"})', eval_time: '8m' }
  const traffic = name.includes('no traffic') ? [] : [{ ...both, exp_samples: [{ labels: '{}', value: 2 }] }]
  return {
    name,
    interval: '1m',
    input_series: input,
    promql_expr_test: [...traffic, ...firing.flatMap((each) => [...same(each[0]), alerts(each)])],
  }
}

it.skipIf(!HAS_PROMTOOL || !HAS_SLOTH)(
  "agrees with Sloth's own rules, which may stand beside ours",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-sloth-'))
    try {
      await writeFile(join(folder, 'spec.yml'), yamlText('spec', slothSpec(catalog, 'runbook.md')))
      await runTool('sloth', ['generate', '-i', 'spec.yml', '-o', 'theirs.yml'], folder)
      await writeFile(join(folder, 'ours.yml'), yamlText('ours', ruleFile(DEFAULT_RULE_OPTIONS)))
      const tests = {
        rule_files: ['ours.yml', 'theirs.yml'],
        evaluation_interval: '1m',
        tests: burnCases(DEFAULT_RULE_OPTIONS).filter(comparable).map(sideBySide),
      }
      await writeFile(join(folder, 'test.yml'), yamlText('tests', tests))
      expect(await runTool('promtool', ['test', 'rules', 'test.yml'], folder)).toContain('SUCCESS')
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)
