/** The dashboard of the fleet: replicas as Sluice sees them, how well it predicts them, and how Sluice itself does. */
import { LABEL_VALUES } from '../../telemetry/metric-table.ts'
import { select } from '../promql.ts'
import type { Dashboard, Panel, Row } from './panel.ts'
import {
  JOB_VARIABLE,
  MODEL_VARIABLE,
  OF_JOB,
  OF_MODEL,
  OF_REPLICA,
  quantiles,
  REPLICA_VARIABLE,
  rate,
  sumBy,
} from './queries.ts'
import { workers } from './workers-row.ts'

/** States in order of trouble, and what they look like. */
const STATE_COLORS: Readonly<Record<(typeof LABEL_VALUES.replicaState)[number], string>> = {
  live: 'green',
  ramping: 'blue',
  draining: 'purple',
  suspect: 'orange',
  down: 'red',
}
const STATES = Object.entries(STATE_COLORS).map(([text, color], value) => ({ text, color, value }))
const TRUST = LABEL_VALUES.trust.map((text, value) => {
  return { text, value, color: ['green', 'yellow', 'red'][value] ?? 'red' }
})

export const ENGINE_DASHBOARD: Dashboard = {
  uid: 'sluice-engines',
  title: 'Sluice / Engines',
  description: 'Replicas as Sluice sees them, how well it predicts them, and how much it costs.',
  variables: [JOB_VARIABLE, MODEL_VARIABLE, REPLICA_VARIABLE],
  rows: [replicas(), books(), work(), predictor(), itself(), workers()],
}

function lines(title: string, description: string, unit: Panel['unit'], queries: Panel['queries']): Panel {
  return { title, description, kind: 'lines', unit, min: 0, queries }
}

/** The number of the state that is in force, the worst of all Sluices, which the panel turns into its word. */
function stateNumber(
  key: 'replicaState' | 'trust',
  by: 'replica' | 'model',
  words: Panel['words'] = [],
): string {
  const matches = key === 'trust' ? OF_MODEL : OF_REPLICA
  const terms = words.map(({ text, value }) => `${value} * ${select(key, { ...matches, state: text })}`)
  return `max by (${by}) (${terms.join(' or ')})`
}

function replicas(): Row {
  return {
    title: 'Replicas',
    panels: [
      {
        title: 'State of each replica',
        description: 'As the worst of all Sluices sees it.',
        kind: 'states',
        unit: 'none',
        width: 12,
        words: STATES,
        queries: [{ expr: stateNumber('replicaState', 'replica', STATES), legend: '{{replica}}' }],
      },
      {
        title: 'Replicas wanted',
        description:
          'How many would hold the objectives at what is offered now, by the learnt model; absent while trust is fallback.',
        kind: 'lines',
        unit: 'short',
        min: 0,
        width: 12,
        queries: [
          { expr: sumBy(['model'], select('desiredReplicas', OF_MODEL)), legend: 'wanted {{model}}' },
          {
            expr: `sum(max by (replica) (${select('replicaState', { ...OF_JOB, state: { op: '=~', value: 'live|ramping' } })}))`,
            legend: 'taking work',
          },
        ],
      },
    ],
  }
}

function books(): Row {
  const gauge = (key: 'inFlight' | 'backlog' | 'kvUsage' | 'scrapeAge' | 'ledgerDrift') => [
    { expr: sumBy(['replica'], select(key, OF_REPLICA)), legend: '{{replica}}' },
  ]
  const worst = (key: 'kvUsage' | 'scrapeAge') => [
    { expr: `max by (replica) (${select(key, OF_REPLICA)})`, legend: '{{replica}}' },
  ]
  return {
    title: 'Load of each replica',
    panels: [
      lines(
        'Scheduler State: in flight',
        'Requests that hold a permit, by replica.',
        'short',
        gauge('inFlight'),
      ),
      lines(
        'Prefill backlog',
        'Prompt tokens sent and without a first token; about one chunk is meant to be there.',
        'short',
        gauge('backlog'),
      ),
      lines(
        'Cache Utilization',
        "KV cache in use, by the engine's own word.",
        'percentunit',
        worst('kvUsage'),
      ),
      lines(
        'Age of the metrics page',
        'Decisions never wait for it, but KV and foreign traffic are read there.',
        's',
        worst('scrapeAge'),
      ),
      {
        title: 'Requests that are not ours',
        description: 'What the engine reports beyond our books: other clients, other Sluices, or lag.',
        kind: 'lines',
        unit: 'short',
        queries: gauge('ledgerDrift'),
      },
    ],
  }
}

function work(): Row {
  return {
    title: 'Work',
    panels: [
      lines(
        'Bounced and rerouted',
        'Attempts that came back before any content, and those that got a second replica.',
        'reqps',
        [
          { expr: sumBy(['reason'], rate('bounces', OF_JOB)), legend: '{{reason}}' },
          { expr: sumBy([], rate('reroutes', OF_MODEL)), legend: 'rerouted' },
        ],
      ),
      lines('Token Throughput', 'Prompt and output tokens a second.', 'cps', [
        { expr: sumBy(['kind'], rate('tokens', OF_MODEL)), legend: '{{kind}}' },
      ]),
      lines(
        'Scheduler State: waiting here',
        'Requests and prompt tokens that wait in Sluice, where they can still be reordered.',
        'short',
        [
          { expr: sumBy([], select('waitingRequests', OF_JOB)), legend: 'requests' },
          { expr: sumBy([], select('waitingTokens', OF_JOB)), legend: 'tokens' },
        ],
      ),
      lines('Requests', 'All that ended, by model.', 'reqps', [
        { expr: sumBy(['model'], rate('requests', OF_MODEL)), legend: '{{model}}' },
      ]),
    ],
  }
}

function predictor(): Row {
  return {
    title: 'Predictions',
    panels: [
      {
        title: 'Trust',
        description: 'In fallback predictions refuse nobody, while cautious only what misses by far.',
        kind: 'states',
        unit: 'none',
        words: TRUST,
        queries: [{ expr: stateNumber('trust', 'model', TRUST), legend: '{{model}}' }],
      },
      {
        title: 'Coverage',
        description:
          'Share of first tokens that came no later than predicted at that quantile; a calibrated predictor shows the quantile itself.',
        kind: 'lines',
        unit: 'percentunit',
        min: 0,
        max: 1,
        queries: [
          {
            expr: `avg by (model, quantile) (${select('predictionCoverage', OF_MODEL)})`,
            legend: '{{model}} at {{quantile}}',
          },
        ],
      },
      lines(
        'Error of first tokens',
        'Relative to the prediction, for those that came late and those that came early.',
        'percentunit',
        [
          ...(['late', 'early'] as const).flatMap((direction) =>
            quantiles('predictionError', { ...OF_MODEL, direction }, `${direction} `),
          ),
        ],
      ),
    ],
  }
}

function itself(): Row {
  const of = '{{instance}}'
  return {
    title: 'Sluice itself',
    panels: [
      lines(
        'Time of a decision',
        'One event with all its decisions.',
        's',
        quantiles('decisionDuration', OF_JOB),
      ),
      lines('Event loop lag', 'Adds to every first token.', 's', [
        { expr: select('eventLoopLag', { ...OF_JOB, quantile: '0.99' }), legend: `p99 ${of}` },
      ]),
      lines('CPU', 'Cores in use.', 'short', [{ expr: rate('processCpu', OF_JOB), legend: of }]),
      lines('Memory', 'Resident, and bodies of requests in it.', 'decbytes', [
        { expr: select('processMemory', OF_JOB), legend: of },
        { expr: select('bufferedBytes', OF_JOB), legend: `bodies ${of}` },
      ]),
      lines('Connections', 'Open now, idle ones included.', 'short', [
        { expr: select('clientConnections', OF_JOB), legend: `clients ${of}` },
        { expr: sumBy(['replica'], select('upstreamConnections', OF_JOB)), legend: '{{replica}}' },
      ]),
      lines('Weight', 'What balancers upstream are told; informs, never ejects.', 'percentunit', [
        { expr: select('upstreamWeight', OF_JOB), legend: of },
      ]),
      lines('In shadow: good share, estimated', 'Enforced, and as it ran to check that by.', 'percentunit', [
        {
          expr: `max by (class, mode) (${select('shadowEstimate', OF_MODEL)})`,
          legend: '{{class}} {{mode}}',
        },
      ]),
      lines('Never judged', 'Malformed, unauthorised or unknown.', 'reqps', [
        { expr: sumBy(['reason'], rate('rejected', OF_JOB)), legend: '{{reason}}' },
      ]),
      lines('Faults', 'Of Sluice itself; should be 0.', 'short', [
        { expr: `increase(${select('faults', OF_JOB)}[$__rate_interval])`, legend: of },
      ]),
    ],
  }
}
