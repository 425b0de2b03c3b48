/** Sets endings of the same requests side by side: attainment, refusals and goodput by class, and which verdicts changed. */
import type { SloVerdict } from '../core/records.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { nearestRank } from '../sim/nearest-rank.ts'
import type { Endings } from './endings.ts'

/** The same figures for each class and each way that it ended. */
export interface Figures {
  readonly offered: number
  readonly good: number
  readonly bad: number
  readonly excluded: number
  /** Over offered requests; absent while nothing counts. */
  readonly attainmentRatio?: Ratio
  readonly shed: number
  readonly shedByReason: Readonly<Record<string, number>>
  readonly goodPerSec: number
  readonly ttftP50Ms?: Ms
  readonly ttftP99Ms?: Ms
  readonly tpotP50Ms?: Ms
  readonly tpotP99Ms?: Ms
}

/** From one verdict to another, by how many requests. */
export interface VerdictChange {
  readonly from: SloVerdict['kind']
  readonly to: SloVerdict['kind']
  readonly requests: number
}

/** Figures of those requests that have an ending, over that time. */
export function figuresOf(numbers: readonly number[], endings: Endings, spanMs: Ms): Figures {
  const ended = numbers.filter((number) => endings.verdict(number) !== undefined)
  const count = (kind: SloVerdict['kind']) =>
    ended.filter((number) => endings.verdict(number) === kind).length
  const [good, bad, excluded] = [count('good'), count('bad'), count('excluded')]
  const shedByReason = new Map<string, number>()
  for (const number of ended) {
    const reason = endings.shedReason(number)
    if (reason !== undefined) shedByReason.set(reason, (shedByReason.get(reason) ?? 0) + 1)
  }
  const ttft = ranked(ended, (number) => endings.ttftMs(number))
  const tpot = ranked(ended, (number) => endings.tpotMs(number))
  return {
    offered: ended.length,
    good,
    bad,
    excluded,
    ...(good + bad === 0 ? {} : { attainmentRatio: good / (good + bad) }),
    shed: [...shedByReason.values()].reduce((sum, requests) => sum + requests, 0),
    shedByReason: Object.fromEntries([...shedByReason].sort(([a], [b]) => (a < b ? -1 : 1))),
    goodPerSec: (good * 1000) / Math.max(1, spanMs),
    ...named('ttftP50Ms', nearestRank(ttft, 0.5)),
    ...named('ttftP99Ms', nearestRank(ttft, 0.99)),
    ...named('tpotP50Ms', nearestRank(tpot, 0.5)),
    ...named('tpotP99Ms', nearestRank(tpot, 0.99)),
  }
}

/** Requests that both have an ending and not the same verdict, the most frequent change first. */
export function verdictChanges(
  numbers: readonly number[],
  before: Endings,
  after: Endings,
): readonly VerdictChange[] {
  const counts = new Map<string, VerdictChange>()
  for (const number of numbers) {
    const [from, to] = [before.verdict(number), after.verdict(number)]
    if (from === undefined || to === undefined || from === to) continue
    const key = `${from} ${to}`
    counts.set(key, { from, to, requests: (counts.get(key)?.requests ?? 0) + 1 })
  }
  return [...counts.values()].sort((a, b) => b.requests - a.requests)
}

function ranked(numbers: readonly number[], of: (number: number) => Ms | undefined): Float64Array {
  return Float64Array.from(numbers.map(of).filter((value) => value !== undefined)).sort()
}

function named<Key extends string>(key: Key, value: Ms | undefined): { readonly [name in Key]?: Ms } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [name in Key]?: Ms })
}
