/** Stories for the burn alerts: outages, slow leaks, and the traffic that must leave people alone. */
import type { Ratio } from '../core/units.ts'
import { burnPairs } from '../slo/burn-rate.ts'
import { braced, plainNumber, select } from './promql.ts'
import type { RuleOptions } from './rule.ts'
import { ALIVE, type InputSeries, type RuleCase } from './rule-case.ts'
import { BURN_ALERTS } from './slo-rules.ts'

/** A stretch of steady traffic. */
interface Phase {
  readonly minutes: number
  readonly perMinute: number
  readonly badRatio: Ratio
}

const STRICT = { class: 'chat', objective: 0.99 }
const LAX = { class: 'agent', objective: 0.9 }
const PER_MINUTE = 1000
/** Minutes after which the short window of every pair has forgotten: 30 of a page's, 360 of a ticket's. */
const PAGE_FORGETS_MIN = 31
const TICKET_FORGETS_MIN = 361
const MARGIN_MIN = 4

const healthy = (minutes: number): Phase => ({ minutes, perMinute: PER_MINUTE, badRatio: 0 })
const silent = (minutes: number): Phase => ({ minutes, perMinute: 0, badRatio: 0 })
const burning = (minutes: number, badRatio: Ratio): Phase => ({ minutes, perMinute: PER_MINUTE, badRatio })

/** Every case for the pairs of that period, which must have at least one. */
export function burnCases(options: RuleOptions): readonly RuleCase[] {
  const pairs = burnPairs(options.periodMs)
  const least = (severity: 'page' | 'ticket'): number =>
    Math.min(...pairs.filter((pair) => pair.severity === severity).map(({ factor }) => factor))
  const tickets = Number.isFinite(least('ticket'))
  const fast = firing(BURN_ALERTS.page)
  const slow = tickets ? [firing(BURN_ALERTS.ticket)] : []
  return [
    outage(options, fast, slow),
    ...(tickets ? [slowLeak(options, Math.sqrt(least('ticket') * least('page')))] : []),
    objectives(options, 1.2 * least('page'), fast, slow),
    endsInSilence(options, fast, slow),
    ...quiet(options, Math.min(...pairs.map(({ factor }) => factor))),
  ]
}

/**
 * After so long a healthy time the longer pair of windows is slow to notice, so the shorter one must page; and it is
 * the longer one that must hold on when the outage goes on.
 */
function outage(options: RuleOptions, fast: string, slow: readonly string[]): RuleCase {
  const healthyMin = 360
  const [first] = burnPairs(options.periodMs)
  const noticedMin = Math.ceil(0.8 * (first?.factor ?? 0)) + MARGIN_MIN
  const endMin = healthyMin + noticedMin + 30
  return {
    name: 'an outage pages, and clears after the short windows have seen it end',
    input: story(options, STRICT, [healthy(healthyMin), burning(endMin - healthyMin, 1), healthy(600)]),
    firing: [
      [healthyMin - 1, []],
      [healthyMin + noticedMin, [fast, ...slow]],
      [endMin - 1, [fast, ...slow]],
      [endMin + PAGE_FORGETS_MIN + MARGIN_MIN, slow],
      [endMin + TICKET_FORGETS_MIN + MARGIN_MIN, []],
    ],
  }
}

function slowLeak(options: RuleOptions, burn: number): RuleCase {
  return {
    name: 'a leak too slow for a page makes a ticket',
    input: story(options, STRICT, [healthy(10), burning(30, burn * (1 - STRICT.objective)), healthy(600)]),
    firing: [
      [9, []],
      [39, [firing(BURN_ALERTS.ticket)]],
      [40 + TICKET_FORGETS_MIN + MARGIN_MIN, []],
    ],
  }
}

function objectives(options: RuleOptions, burn: number, fast: string, slow: readonly string[]): RuleCase {
  const phases = [burning(60, burn * (1 - STRICT.objective))]
  const lax = story(options, LAX, phases).filter(({ series }) => series !== ALIVE.series)
  return {
    name: 'each class is held to its own objective',
    input: [...story(options, STRICT, phases), ...lax],
    firing: [[59, [fast, ...slow]]],
  }
}

function endsInSilence(options: RuleOptions, fast: string, slow: readonly string[]): RuleCase {
  return {
    name: 'an outage after which nobody asks any more clears too',
    input: story(options, STRICT, [burning(30, 1), silent(60)]),
    firing: [
      [29, [fast, ...slow]],
      [30 + PAGE_FORGETS_MIN + MARGIN_MIN, slow],
    ],
  }
}

function quiet(options: RuleOptions, leastFactor: number): readonly RuleCase[] {
  const nothing = (...minutes: number[]) => minutes.map((minute) => [minute, []] as const)
  const few = Math.max(1, Math.floor((options.minEvents - 1) / 2))
  const within = 0.8 * leastFactor * (1 - STRICT.objective)
  const restarted = story(options, STRICT, [healthy(30)]).map(({ series, values }) =>
    series === ALIVE.series ? { series, values } : { series, values: `${values} ${values}` },
  )
  return [
    {
      name: 'a budget spent slower than its period says nothing',
      input: story(options, STRICT, [burning(120, within)]),
      firing: nothing(30, 120),
    },
    ...(options.minEvents > 2
      ? [
          {
            name: 'a handful of requests says nothing, however they end',
            input: story(options, STRICT, [
              silent(5),
              { minutes: few, perMinute: 1, badRatio: 1 },
              silent(60),
            ]),
            firing: nothing(5, 5 + few, 5 + few + MARGIN_MIN, 60),
          },
        ]
      : []),
    {
      name: 'no traffic says nothing',
      input: story(options, STRICT, [silent(60)]),
      firing: nothing(10, 60),
    },
    {
      name: 'a restart, from which counters begin anew, says nothing',
      input: restarted,
      firing: nothing(31, 40, 59),
    },
  ]
}

function firing(alert: string): string {
  return braced({ alertname: alert, class: STRICT.class, model: 'm' })
}

/** The counters of one class over the phases, with what else a running Sluice shows. */
function story(
  { by }: RuleOptions,
  { class: className, objective }: typeof STRICT,
  phases: readonly Phase[],
): readonly InputSeries[] {
  const extra = Object.fromEntries(by.map((label) => [label, 'x']))
  const { product: _, ...owner } = extra
  const target = { model: 'm', class: className, job: 'sluice', instance: 's1' } as const
  const counted = { ...target, product: 'none', sli: 'all', ...extra } as const
  const minutes = phases.reduce((sum, phase) => sum + phase.minutes, 0)
  return [
    ALIVE,
    {
      series: select('sloObjective', { ...target, ...owner }),
      values: `${objective}x${minutes}`,
    },
    { series: select('sloEvents', counted), values: counter(phases, ({ perMinute }) => perMinute) },
    {
      series: select('sloGoodEvents', counted),
      values: counter(phases, ({ perMinute, badRatio }) => perMinute * (1 - badRatio)),
    },
  ]
}

/** A counter that stands at 0 in minute 0 and then grows as each phase says. */
function counter(phases: readonly Phase[], perMinuteOf: (phase: Phase) => number): string {
  let value = 0
  const parts = phases.map((phase) => {
    const step = Number(plainNumber(perMinuteOf(phase)))
    const from = value + step
    value += step * phase.minutes
    return `${exactly(from)}+${step}x${phase.minutes - 1}`
  })
  return `0 ${parts.join(' ')}`
}

/** Without the noise that adding up fractions leaves. */
function exactly(value: number): string {
  return String(Number(value.toPrecision(12)))
}
