/** The exported rules: they name what exists, say what to do, and do what they say by promtool's own word. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ruleFile, ruleGroups } from '../../src/exports/prometheus.ts'
import { promDuration } from '../../src/exports/promql.ts'
import { type AlertingRule, DEFAULT_RULE_OPTIONS, isAlert, type RuleOptions } from '../../src/exports/rule.ts'
import { ruleTests } from '../../src/exports/rule-tests.ts'
import { yamlText } from '../../src/exports/yaml-text.ts'
import { DAY_MS } from '../../src/slo/windows.ts'
import { queryParts } from '../support/promql.ts'
import { HAS_PROMTOOL, runTool } from '../support/promtool.ts'
import { unknownNames } from './known-series.ts'

const alertsOf = (options: RuleOptions): readonly AlertingRule[] =>
  ruleGroups(options).flatMap(({ rules }) => rules.filter(isAlert))
const recordsOf = (options: RuleOptions): readonly string[] =>
  ruleGroups(options).flatMap(({ rules }) => rules.flatMap((rule) => (isAlert(rule) ? [] : [rule.record])))
const days = (count: number): RuleOptions => ({ ...DEFAULT_RULE_OPTIONS, periodMs: count * DAY_MS })

describe('the rules', () => {
  const rules = ruleGroups(DEFAULT_RULE_OPTIONS).flatMap((group) => group.rules)

  it.each(rules.map((rule) => ({ name: isAlert(rule) ? rule.alert : rule.record, expr: rule.expr })))(
    '$name names only series and labels that there are',
    ({ expr }) => {
      expect(unknownNames(expr)).toEqual([])
    },
  )

  it('record what Sloth records, under its names', () => {
    const windows = ['5m', '30m', '1h', '2h', '6h', '1d', '3d', '30d']
    const sloth = [
      ...windows.map((window) => `slo:sli_error:ratio_rate${window}`),
      'slo:objective:ratio',
      'slo:error_budget:ratio',
      'slo:time_period:days',
      'slo:current_burn_rate:ratio',
      'slo:period_burn_rate:ratio',
      'slo:period_error_budget_remaining:ratio',
      'sloth_slo_info',
    ]
    expect(recordsOf(DEFAULT_RULE_OPTIONS).filter((name) => name.startsWith('slo'))).toEqual(sloth)
    expect(recordsOf(days(28))).toContain('slo:sli_error:ratio_rate4w')
  })

  it('leave alone what Sloth records for other services under the same names', () => {
    const open = rules.flatMap(({ expr }) =>
      queryParts(expr).selectors.filter(
        ({ metric, labels }) =>
          metric.startsWith('slo:') && !(labels.includes('sloth_service') && labels.includes('sli')),
      ),
    )
    expect(open).toEqual([])
  })

  it('name no class, so that a reload leaves them right', () => {
    expect(JSON.stringify(rules)).not.toMatch(/class=/)
  })
})

describe('the alerts', () => {
  it('are told by name once, with severity, summary, description and an anchor', () => {
    const alerts = alertsOf({ ...DEFAULT_RULE_OPTIONS, runbook: 'https://wiki/run' })
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length)
    for (const { alert, labels, annotations } of alerts) {
      expect(alert).toMatch(/^Sluice[A-Z]/)
      expect(['page', 'ticket']).toContain(labels.severity)
      expect(annotations.summary.length, alert).toBeGreaterThan(15)
      expect(annotations.description, alert).toMatch(/\.$/)
      expect(annotations.runbook_url).toBe(`https://wiki/run#${alert.toLowerCase()}`)
    }
  })

  it('put labels that their expression keeps into their words, and no others', () => {
    for (const { alert, expr, annotations } of alertsOf(DEFAULT_RULE_OPTIONS)) {
      const named = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(
        ([, label]) => label ?? '',
      )
      const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(', ')
      if (kept !== undefined)
        expect(
          named.filter((label) => !kept.includes(label)),
          alert,
        ).toEqual([])
    }
  })

  it('burn at factors that follow from the period, with a floor of requests', () => {
    const [fast] = alertsOf(days(28))
    expect(fast?.expr).toContain('> 13.44')
    expect(fast?.expr).toContain('> 5.6')
    const [floored] = alertsOf({ ...DEFAULT_RULE_OPTIONS, minEvents: 77 })
    expect(floored?.expr.match(/sluice:slo_events:increase\w+ >= 77/g)).toHaveLength(2)
  })

  it('leave out pairs that a short period has no room for', () => {
    const names = (count: number) => alertsOf(days(count)).map(({ alert }) => alert)
    expect(names(30)).toEqual(expect.arrayContaining(['SluiceSloBurnFast', 'SluiceSloBurnSlow']))
    expect(names(7)).not.toContain('SluiceSloBurnSlow')
    expect(names(1)).not.toContain('SluiceSloBurnFast')
    expect(recordsOf(days(1))).not.toContain('slo:sli_error:ratio_rate3d')
  })

  it('are all seen to fire in the tests that are exported with them', () => {
    const tests = JSON.stringify(ruleTests(DEFAULT_RULE_OPTIONS, 'rules.yml'))
    const silent = alertsOf(DEFAULT_RULE_OPTIONS).filter(
      ({ alert }) => !tests.includes(`alertname=\\"${alert}\\"`),
    )
    expect(silent.map(({ alert }) => alert)).toEqual([])
  })
})

describe('promDuration', () => {
  it('writes what Prometheus writes', () => {
    expect([30, 28, 7, 1].map((count) => promDuration(count * DAY_MS))).toEqual(['30d', '4w', '1w', '1d'])
    expect([45 * 3_600_000, 5_400_000, 90_000].map(promDuration)).toEqual(['45h', '90m', '90s'])
    expect(() => promDuration(1500)).toThrow(RangeError)
  })
})

describe.skipIf(!HAS_PROMTOOL)('promtool', () => {
  const check = async (
    options: RuleOptions,
    change: (rules: string) => string = (rules) => rules,
    only = /./,
  ): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-rules-'))
    const told = ruleTests(options, 'rules.yml')
    try {
      await writeFile(join(folder, 'rules.yml'), change(yamlText('rules', ruleFile(options))))
      await writeFile(
        join(folder, 'test.yml'),
        yamlText('tests', { ...told, tests: told.tests.filter(({ name }) => only.test(name)) }),
      )
      await runTool('promtool', ['check', 'rules', 'rules.yml'], folder)
      return await runTool('promtool', ['test', 'rules', 'test.yml'], folder)
    } finally {
      await rm(folder, { recursive: true })
    }
  }

  it('finds the rules sound, and sees each alert fire and clear', async () => {
    expect(await check(DEFAULT_RULE_OPTIONS)).toContain('SUCCESS')
  })

  it('finds those of a short period sound that keeps products and clusters apart', async () => {
    const options = { ...days(2), by: ['product', 'cluster'], minEvents: 5 }
    expect(await check(options)).toContain('SUCCESS')
  })

  it.each([
    ['lost its floor', /increase(\w+) >= 5$/gm, 'increase$1 >= 0', /handful/],
    ['burns later', /> 0.96$/gm, '> 96', /each class/],
  ])('sees a rule that %s', async (_, right, wrong, only) => {
    const broken = (rules: string) => {
      expect(rules).toMatch(right)
      return rules.replaceAll(right, wrong)
    }
    await expect(check({ ...days(2), minEvents: 5 }, broken, only)).rejects.toThrow(/FAILED/)
  })
})
