/** Objects for Pyrra: whole by its rules of validation, and its ratio what all and good ones say at the same minutes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { burnCases } from '../../src/exports/burn-cases.ts'
import { pyrraObjects } from '../../src/exports/pyrra.ts'
import { DEFAULT_RULE_OPTIONS } from '../../src/exports/rule.ts'
import type { RuleCase } from '../../src/exports/rule-case.ts'
import { yamlText } from '../../src/exports/yaml-text.ts'
import type { SloCatalog } from '../../src/slo/attainment.ts'
import { sloOf } from '../slo/facts.ts'
import { HAS_PROMTOOL, runTool } from '../support/promtool.ts'

const catalog: SloCatalog = {
  models: ['m'],
  classes: ['chat', 'batch'],
  products: ['none'],
  classFor: (name) =>
    ({ chat: sloOf({ name, ttftMs: 500, objectiveRatio: 0.995 }), batch: sloOf({ name }) })[name],
  periodMs: DEFAULT_RULE_OPTIONS.periodMs,
}

interface Objective {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: object }
  readonly spec: {
    readonly target: string
    readonly window: string
    readonly indicator: { readonly ratio: Record<'errors' | 'total', { readonly metric: string }> }
  }
}

const [rule, ...rest] = pyrraObjects(catalog, { release: 'kps' })
const objectives = rest as Objective[]
const groups = (rule as { readonly spec: object }).spec

describe('the objects for Pyrra', () => {
  it('are an objective for each promise, in the words that it validates', () => {
    expect(objectives.map(({ kind, metadata }) => [kind, metadata.name])).toEqual([
      ['ServiceLevelObjective', 'm-chat'],
    ])
    const spec = objectives[0]?.spec
    // Texts, as Kubernetes has no fractions; a bare selector each, of which the errors' one is recorded.
    expect(spec).toMatchObject({ target: '99.5', window: '30d' })
    expect(spec?.indicator.ratio).toEqual({
      errors: { metric: 'sluice:slo_bad_events_total{model="m", class="chat", sli="all"}' },
      total: { metric: 'sluice_slo_events_total{model="m", class="chat", sli="all"}' },
    })
    expect(objectives[0]?.metadata.labels).toMatchObject({ release: 'kps' })
  })

  it.skipIf(!HAS_PROMTOOL)('divide to what all and good ones say, and promtool takes the rule', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-pyrra-'))
    try {
      await writeFile(join(folder, 'bad.yml'), yamlText('bad', groups))
      const tests = {
        rule_files: ['bad.yml'],
        evaluation_interval: '1m',
        tests: burnCases(DEFAULT_RULE_OPTIONS).filter(countsWhole).map(sideBySide),
      }
      await writeFile(join(folder, 'test.yml'), yamlText('tests', tests))
      expect(await runTool('promtool', ['check', 'rules', 'bad.yml'], folder)).toContain('SUCCESS: 1 rules')
      expect(await runTool('promtool', ['test', 'rules', 'test.yml'], folder)).toContain('SUCCESS')
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

/** Requests are whole, so that the recorded difference is exact; a story with parts of them would see it fall. */
function countsWhole({ input }: RuleCase): boolean {
  return !input.some(({ series, values }) => series.includes('_events_total') && values.includes('.'))
}

/**
 * Pyrra's burn rates: the rate of errors by the rate of all. `rate` looks less far beyond the first sample of a counter
 * that stood at zero there, as errors do before an outage and all requests do not: 2 % are left for that.
 */
function sideBySide({ name, input, firing }: RuleCase): object {
  const { errors, total } = objectives[0]?.spec.indicator.ratio ?? expect.fail('no objective')
  const good = total.metric.replace('_slo_', '_slo_good_')
  const ours = (window: string) =>
    `(1 - sum(rate(${good}[${window}])) / sum(rate(${total.metric}[${window}])))`
  const theirs = (window: string) =>
    `sum(rate(${errors.metric}[${window}])) / sum(rate(${total.metric}[${window}]))`
  const differs = firing.flatMap(([minute]) =>
    ['5m', '1h', '6h'].map((window) => ({
      expr: `abs(${ours(window)} - ${theirs(window)}) > 0.02 * ${ours(window)} + 1e-9`,
      eval_time: `${minute}m`,
      exp_samples: [],
    })),
  )
  const traffic = name.includes('no traffic') ? [] : [{ labels: '{}', value: 1 }]
  const there = { expr: `count(${theirs('5m')} >= 0)`, eval_time: '8m', exp_samples: traffic }
  return { name, interval: '1m', input_series: input, promql_expr_test: [there, ...differs] }
}
