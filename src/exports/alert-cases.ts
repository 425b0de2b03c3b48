/** Stories for the alerts that are not about error budgets: each fires on its trouble, not before, and clears. */
import { braced, select } from './promql.ts'
import type { RuleOptions } from './rule.ts'
import { ALIVE, type InputSeries, type RuleCase } from './rule-case.ts'

const TARGET = { job: 'sluice', instance: 's1' } as const
const OTHER_TARGET = { job: 'sluice', instance: 's2' } as const
const REPLICA = { replica: 'r1', ...TARGET } as const
const CLASS = { model: 'm', class: 'chat', ...TARGET } as const

/** A gauge that holds each value for so many minutes. */
function held(...spans: readonly (readonly [value: number | '_', minutes: number])[]): string {
  return spans.map(([value, minutes]) => `${value}x${value === '_' ? minutes : minutes - 1}`).join(' ')
}

/** A counter that grows by each step for so many minutes. */
function growing(...spans: readonly (readonly [perMinute: number, minutes: number])[]): string {
  let value = 0
  const parts = spans.map(([perMinute, minutes]) => {
    const from = value + perMinute
    value += perMinute * minutes
    return `${from}+${perMinute}x${minutes - 1}`
  })
  return `0 ${parts.join(' ')}`
}

function firing(alertname: string, labels: Readonly<Record<string, string>> = {}): readonly string[] {
  return [braced({ alertname, ...labels })]
}

function state(name: 'live' | 'down' | 'suspect', values: string): InputSeries {
  return { series: select('replicaState', { ...REPLICA, state: name }), values }
}

export function alertCases({ minEvents }: RuleOptions): readonly RuleCase[] {
  return [
    ...sluiceCases(),
    ...loopCases(),
    ...replicaCases(),
    ...driftCases(),
    ...predictorCases(),
    ...shedCases(minEvents),
  ]
}

function sluiceCases(): readonly RuleCase[] {
  const reload = select('reloadSuccessful', TARGET)
  const digest = (target: typeof TARGET | typeof OTHER_TARGET, name: string, values: string) => ({
    series: select('configInfo', { ...target, digest: name, mode: 'enforce' }),
    values,
  })
  return [
    {
      name: 'a Sluice that is gone is missed, until it is back',
      input: [{ series: ALIVE.series, values: held([1, 10], ['_', 20], [1, 20]) }],
      firing: [
        [12, []],
        [25, firing('SluiceAbsent')],
        [35, []],
      ],
    },
    {
      name: 'a reload that failed is told until one succeeds',
      input: [ALIVE, { series: reload, values: held([1, 10], [0, 20], [1, 20]) }],
      firing: [
        [9, []],
        [15, firing('SluiceReloadFailed')],
        [33, []],
      ],
    },
    {
      name: 'configurations may differ for the time of a rollout and no longer',
      input: [
        ALIVE,
        digest(TARGET, 'a', held([1, 100])),
        digest(OTHER_TARGET, 'a', held([1, 10], ['_', 60], [1, 30])),
        digest(OTHER_TARGET, 'b', held(['_', 10], [1, 60])),
      ],
      firing: [
        [30, []],
        [50, firing('SluiceConfigsDiffer')],
        [80, []],
      ],
    },
  ]
}

function loopCases(): readonly RuleCase[] {
  const lag = select('eventLoopLag', { ...TARGET, quantile: '0.99' })
  return [
    {
      name: 'a fault is told once and forgotten',
      input: [ALIVE, { series: select('faults', TARGET), values: growing([0, 10], [1, 1], [0, 40]) }],
      firing: [
        [9, []],
        [13, firing('SluiceFaults')],
        [40, []],
      ],
    },
    {
      name: 'a busy loop is told when it stays so',
      input: [
        ALIVE,
        { series: lag, values: held([0.002, 10], [0.3, 2], [0.002, 10], [0.3, 20], [0.002, 20]) },
      ],
      firing: [
        [14, []],
        [32, firing('SluiceLoopLag')],
        [45, []],
      ],
    },
  ]
}

function replicaCases(): readonly RuleCase[] {
  const age = select('scrapeAge', REPLICA)
  return [
    {
      name: 'a replica that takes no work is stuck, whichever way',
      input: [
        ALIVE,
        state('live', held([1, 10], [0, 20], [1, 20])),
        state('suspect', held([0, 10], [1, 3], [0, 37])),
        state('down', held([0, 13], [1, 17], [0, 20])),
      ],
      firing: [
        [9, []],
        [20, firing('SluiceReplicaStuck', { replica: 'r1' })],
        [32, []],
      ],
    },
    {
      name: 'a stale page of a replica that serves is told',
      input: [
        ALIVE,
        state('live', held([1, 60])),
        { series: age, values: held([0.5, 10], [120, 20], [0.5, 20]) },
      ],
      firing: [
        [9, []],
        [20, firing('SluiceScrapeStale', { replica: 'r1' })],
        [32, []],
      ],
    },
    {
      name: 'a stale page of a replica that is down is no news',
      input: [ALIVE, state('down', held([1, 40])), { series: age, values: held([900, 40]) }],
      firing: [[30, firing('SluiceReplicaStuck', { replica: 'r1' })]],
    },
  ]
}

function driftCases(): readonly RuleCase[] {
  const drift = (target: typeof TARGET | typeof OTHER_TARGET, driftValues: string, inFlight: string) => [
    { series: select('ledgerDrift', { ...target, replica: 'r1' }), values: driftValues },
    { series: select('inFlight', { ...target, replica: 'r1' }), values: inFlight },
  ]
  return [
    {
      name: 'requests of strangers on an engine are drift',
      input: [ALIVE, ...drift(TARGET, held([0, 10], [12, 40], [0, 40]), held([4, 90]))],
      firing: [
        [9, []],
        [40, firing('SluiceLedgerDrift', { replica: 'r1' })],
        [75, []],
      ],
    },
    {
      name: 'requests of another Sluice are none',
      input: [
        ALIVE,
        ...drift(TARGET, held([20, 60]), held([8, 60])),
        ...drift(OTHER_TARGET, held([8, 60]), held([20, 60])),
      ],
      firing: [[50, []]],
    },
  ]
}

function predictorCases(): readonly RuleCase[] {
  const untrusted = (values: string) => ({
    series: select('trust', { ...TARGET, model: 'm', state: 'fallback' }),
    values,
  })
  const completed = (perMinute: number) => ({
    series: select('requests', { ...CLASS, outcome: 'completed' }),
    values: growing([perMinute, 120]),
  })
  return [
    {
      name: 'a predictor that does not learn from traffic is told until it does',
      input: [ALIVE, untrusted(held([1, 60], [0, 60])), completed(30)],
      firing: [
        [5, []],
        [40, firing('SluicePredictorUntrusted', { model: 'm' })],
        [65, []],
      ],
    },
    {
      name: 'a predictor without traffic has nothing to learn from',
      input: [ALIVE, untrusted(held([1, 120])), completed(0)],
      firing: [[100, []]],
    },
  ]
}

function shedCases(minEvents: number): readonly RuleCase[] {
  const requests = (outcome: 'completed' | 'shed', values: string) => ({
    series: select('requests', { ...CLASS, outcome }),
    values,
  })
  const shed = (reason: string, values: string) => ({ series: select('shed', { ...CLASS, reason }), values })
  const burst = growing([0, 10], [20, 30], [0, 40])
  const share = { class: 'chat', model: 'm' }
  return [
    {
      name: 'a class of which more than a twentieth is refused is told',
      input: [
        ALIVE,
        requests('completed', growing([80 + minEvents, 80])),
        requests('shed', burst),
        shed('slo_unreachable', burst),
      ],
      firing: [
        [9, []],
        [38, firing('SluiceShedShare', share)],
        [65, []],
      ],
    },
    {
      name: "a tenant's own limit is its own affair",
      input: [
        ALIVE,
        requests('completed', growing([100, 80])),
        requests('shed', burst),
        shed('tenant_limit', burst),
      ],
      firing: [[38, []]],
    },
    {
      name: 'a model without a replica is told while somebody asks for it',
      input: [
        ALIVE,
        requests('completed', growing([100000, 80])),
        requests('shed', burst),
        shed('no_replica', burst),
      ],
      firing: [
        [9, []],
        [20, firing('SluiceModelUnserved', { model: 'm' })],
        [50, []],
      ],
    },
  ]
}
