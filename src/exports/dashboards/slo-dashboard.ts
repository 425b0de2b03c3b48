/** The dashboard of promises: are they kept, for whom, what is refused and how long people wait. */
import { anyOf, type Match, noneOf, select } from '../promql.ts'
import type { Dashboard, Panel, Row, Threshold } from './panel.ts'
import {
  attained,
  buckets,
  CLASS_VARIABLE,
  JOB_VARIABLE,
  MODEL_VARIABLE,
  OF_CLASS,
  OF_JOB,
  OF_PRODUCT,
  PRODUCT_VARIABLE,
  quantiles,
  rate,
  sumBy,
} from './queries.ts'

const TENANT = { ...OF_JOB, tenant: anyOf('$tenant') } as const
const PER_CLASS = ['model', 'class'] as const
const CLASS_LEGEND = '{{class}} · {{model}}'
/** From where on a page would fire with a period of 30 days: 14.4 in an hour, 6 in six. */
const BURN: readonly Threshold[] = [
  { from: 0, color: 'green' },
  { from: 1, color: 'yellow' },
  { from: 6, color: 'red' },
]
const BUDGET: readonly Threshold[] = [
  { from: -1, color: 'red' },
  { from: 0, color: 'yellow' },
  { from: 0.25, color: 'green' },
]

export const SLO_DASHBOARD: Dashboard = {
  uid: 'sluice-slo',
  title: 'Sluice / Promises',
  description:
    'SLO attainment over all requests offered, by class: the health of the fleet as its users see it.',
  variables: [
    JOB_VARIABLE,
    MODEL_VARIABLE,
    CLASS_VARIABLE,
    PRODUCT_VARIABLE,
    {
      name: 'tenant',
      label: 'Tenant',
      query: `label_values(${select('tenantRequests', OF_JOB)}, tenant)`,
    },
  ],
  rows: [promises(), burning(), demand(), latency(), tenants()],
}

function promises(): Row {
  const objective = `max by (model, class) (${select('sloObjective', OF_CLASS)})`
  return {
    title: 'Are promises kept?',
    panels: [
      number(
        'Attained, last hour',
        attained(PER_CLASS, '1h'),
        'Share of good requests among all that were offered, sheds included.',
        'percentunit',
      ),
      number('Objective', objective, 'What is promised.', 'percentunit'),
      {
        ...number(
          'Error budget left',
          `min by (model, class) (${select('sloBudget', OF_PRODUCT)})`,
          'Of the period; below 0 it is overspent. The product that is worst off counts.',
          'percentunit',
        ),
        thresholds: BUDGET,
      },
      {
        title: 'SLO attainment',
        description: 'Of offered requests, over five minutes. A dip here is what users feel.',
        kind: 'lines',
        unit: 'percentunit',
        max: 1,
        width: 12,
        queries: [
          { expr: attained(PER_CLASS, '5m'), legend: CLASS_LEGEND },
          { expr: objective, legend: 'objective {{class}} · {{model}}' },
        ],
      },
      {
        title: 'Goodput against offered',
        description: 'Good requests a second, and all that were judged. The gap is what the promise cost.',
        kind: 'lines',
        unit: 'reqps',
        min: 0,
        width: 12,
        queries: [
          { expr: sumBy([], rate('sloEvents', { ...OF_PRODUCT, sli: 'all' })), legend: 'offered' },
          { expr: sumBy([], rate('sloGoodEvents', { ...OF_PRODUCT, sli: 'all' })), legend: 'good' },
        ],
      },
    ],
  }
}

function burning(): Row {
  const burn = (window: string) => {
    const worst = `max by (model, class) (${select('sloBurnRate', { ...OF_PRODUCT, sli: 'all', window })})`
    return { expr: worst, legend: `${window} ${CLASS_LEGEND}` }
  }
  return {
    title: 'How fast is the budget spent?',
    panels: [
      {
        title: 'Burn rate, short and long',
        description:
          '1 spends the budget in exactly its period. A page needs the pair of an hour and five minutes, or of six hours and half an hour.',
        kind: 'lines',
        unit: 'none',
        min: 0,
        width: 12,
        thresholds: BURN,
        queries: [burn('5m'), burn('1h'), burn('6h')],
      },
      {
        title: 'Which promise breaks',
        description:
          'Attainment of each indicator over five minutes: the first token, the pace after it, the whole, or all together with refusals.',
        kind: 'lines',
        unit: 'percentunit',
        max: 1,
        width: 12,
        queries: (['all', 'ttft', 'tpot', 'e2e'] as const).map((sli) => ({
          expr: attained([], '5m', sli),
          legend: sli,
        })),
      },
    ],
  }
}

function demand(): Row {
  return {
    title: 'What is done with requests?',
    panels: [
      stack(
        'Finish reason',
        'How requests ended.',
        sumBy(['outcome'], rate('requests', OF_CLASS)),
        '{{outcome}}',
      ),
      stack(
        'Shed, by reason',
        'What Sluice refused, and why.',
        sumBy(['reason'], rate('shed', OF_CLASS)),
        '{{reason}}',
      ),
      {
        title: 'Share refused, by class',
        description: "Of all requests of the class; a tenant's own limit is left out.",
        kind: 'lines',
        unit: 'percentunit',
        min: 0,
        queries: [
          {
            expr: `${sumBy(PER_CLASS, rate('shed', { ...OF_CLASS, reason: noneOf('tenant_limit') }))} / (${sumBy(PER_CLASS, rate('requests', OF_CLASS))} > 0)`,
            legend: CLASS_LEGEND,
          },
        ],
      },
      ...beside(),
      {
        title: 'Waiting now',
        description: 'Requests that Sluice holds back, in all classes together.',
        kind: 'lines',
        unit: 'short',
        min: 0,
        queries: [{ expr: sumBy(['instance'], select('waitingRequests', OF_JOB)), legend: '{{instance}}' }],
      },
    ],
  }
}

/** What is counted beside the verdicts. */
function beside(): readonly Panel[] {
  return [
    stack(
      'Left out of judgement',
      'Requests that say nothing about the service, by cause.',
      sumBy(['cause'], rate('sloExcluded', OF_CLASS)),
      '{{cause}}',
    ),
    stack(
      'In shadow: what enforcing would do',
      'Empty unless the mode is shadow.',
      sumBy(['verdict'], rate('shadowVerdicts', OF_CLASS)),
      '{{verdict}}',
    ),
  ]
}

function latency(): Row {
  const lines = (title: string, description: string, queries: Panel['queries']): Panel => {
    return { title, description, kind: 'lines', unit: 's', min: 0, width: 6, queries }
  }
  return {
    title: 'How long do people wait?',
    panels: [
      lines(
        'Time To First Token Latency',
        'From the last byte of the request to the first generated token. Streams only.',
        quantiles('ttft', OF_CLASS),
      ),
      lines(
        'Inter Token Latency',
        'Mean time per output token of a stream, after the first.',
        quantiles('tpot', OF_CLASS),
      ),
      lines('E2E Request Latency', 'Of completed requests.', quantiles('duration', OF_CLASS)),
      lines('Queue Time', 'In our waiting room, whatever came after it.', quantiles('queueWait', OF_CLASS)),
      {
        title: 'First tokens by time taken',
        description: 'Where the whole of the requests lies; an overload shows as a band that climbs.',
        kind: 'heatmap',
        unit: 's',
        width: 12,
        queries: buckets('ttft', OF_CLASS),
      },
      {
        title: 'Paces by time per token',
        description: 'The same for the tokens after the first.',
        kind: 'heatmap',
        unit: 's',
        width: 12,
        queries: buckets('tpot', OF_CLASS),
      },
    ],
  }
}

function tenants(): Row {
  const took = (of: Readonly<Record<string, Match>>) => {
    const kind = (name: string) => sumBy(['tenant'], rate('tenantTokens', { ...of, kind: name }, '5m'))
    return `(${kind('prompt')} + 2 * ${kind('output')})`
  }
  const due = `max by (tenant) (${select('tenantShare', TENANT)})`
  const judged = (slo: Match) => sumBy(['tenant'], rate('tenantRequests', { ...TENANT, slo }, '5m'))
  return {
    title: 'Who is it for?',
    panels: [
      {
        title: 'Attained, by tenant',
        description: 'Share of good requests among all judged ones, over five minutes.',
        kind: 'lines',
        unit: 'percentunit',
        max: 1,
        width: 8,
        queries: [{ expr: `${judged('good')} / (${judged(noneOf('excluded'))} > 0)`, legend: '{{tenant}}' }],
      },
      {
        ...stack(
          'Tokens, by tenant',
          'Prompt and output tokens that went through replicas.',
          sumBy(['tenant', 'kind'], rate('tenantTokens', TENANT)),
          '{{tenant}} {{kind}}',
        ),
        unit: 'cps',
        width: 8,
      },
      {
        title: 'Tokens over share, by tenant',
        description:
          'Its part of all tokens over the part that its share is due while all want more, an output token for two. Above 1 it is refused first.',
        kind: 'lines',
        unit: 'short',
        min: 0,
        width: 8,
        queries: [
          {
            expr: `${took(TENANT)} / on (tenant) ${due} / scalar(sum(${took(OF_JOB)}) > 0)`,
            legend: '{{tenant}}',
          },
        ],
      },
    ],
  }
}

function number(title: string, expr: string, description: string, unit: Panel['unit']): Panel {
  return { title, description, kind: 'number', unit, width: 8, queries: [{ expr, legend: CLASS_LEGEND }] }
}

function stack(title: string, description: string, expr: string, legend: string): Panel {
  return { title, description, kind: 'stack', unit: 'reqps', min: 0, queries: [{ expr, legend }] }
}
