/** Boils burn rates down to one word per (model, class, product), with hysteresis and a floor of traffic. */
import type { Ms, Ratio } from '../core/units.ts'
import type { Attainment, SeriesKey } from './attainment.ts'
import { type BurnPair, burnPairs, burnRate } from './burn-rate.ts'
import type { WindowName } from './windows.ts'

/** `critical`: a page would fire; `burning`: a ticket would; `unknown`: too little traffic to tell. */
export type HealthState = 'ok' | 'burning' | 'critical' | 'unknown'

export interface SeriesHealth extends SeriesKey {
  readonly state: HealthState
  /** The pair of windows that raised it, e.g. `1h/5m`. */
  readonly raisedBy?: string
  readonly sinceMs: Ms
}

export interface HealthOptions {
  /** Fewer judged requests than this in the long window say nothing. */
  readonly minRequests: number
  /** A raised state falls only when the short window burns below this share of the factor. */
  readonly clearRatio: Ratio
}

/** Fewer say nothing: with an objective of 99 %, one bad request in 20 already burns five times too fast. */
export const MIN_JUDGED_REQUESTS = 20

const DEFAULTS: HealthOptions = { minRequests: MIN_JUDGED_REQUESTS, clearRatio: 0.7 }

interface Raised {
  readonly pairs: Set<string>
  state: HealthState
  sinceMs: Ms
}

export class SloHealth {
  readonly #attainment: Attainment
  readonly #options: HealthOptions
  readonly #raised = new Map<string, Raised>()

  constructor(attainment: Attainment, options: Partial<HealthOptions> = {}) {
    this.#attainment = attainment
    this.#options = { ...DEFAULTS, ...options }
  }

  /** Judges every series with an objective at `nowMs`; remembers what is raised until the next call. */
  evaluate(nowMs: Ms): readonly SeriesHealth[] {
    const keys = this.#attainment.keys().filter((key) => this.#attainment.objectiveRatio(key) !== undefined)
    const ids = new Set(keys.map(idOf))
    for (const id of this.#raised.keys()) if (!ids.has(id)) this.#raised.delete(id)
    return keys.map((key) => this.#judge(key, nowMs))
  }

  #judge(key: SeriesKey, nowMs: Ms): SeriesHealth {
    const raised = this.#raised.get(idOf(key)) ?? { pairs: new Set(), state: 'unknown', sinceMs: nowMs }
    this.#raised.set(idOf(key), raised)
    const pairs = burnPairs(this.#attainment.catalog.periodMs)
    let enough = false
    for (const pair of pairs) {
      const burns = this.#burns(key, pair, nowMs)
      enough ||= burns.requests >= this.#options.minRequests
      const name = nameOf(pair)
      if (raised.pairs.has(name) ? this.#stays(pair, burns) : this.#starts(pair, burns))
        raised.pairs.add(name)
      else raised.pairs.delete(name)
    }
    const worst = pairs.find((pair) => raised.pairs.has(nameOf(pair)))
    const state =
      worst === undefined ? (enough ? 'ok' : 'unknown') : worst.severity === 'page' ? 'critical' : 'burning'
    if (state !== raised.state) raised.sinceMs = nowMs
    raised.state = state
    return {
      ...key,
      state,
      sinceMs: raised.sinceMs,
      ...(worst === undefined ? {} : { raisedBy: nameOf(worst) }),
    }
  }

  #starts(pair: BurnPair, { requests, long, short }: Burns): boolean {
    return requests >= this.#options.minRequests && (long ?? 0) > pair.factor && (short ?? 0) > pair.factor
  }

  /** With no traffic in the short window there is no sign of recovery, so only the long one can clear it. */
  #stays(pair: BurnPair, { long, short }: Burns): boolean {
    if (short === undefined) return (long ?? 0) > pair.factor
    return short >= pair.factor * this.#options.clearRatio
  }

  #burns(key: SeriesKey, pair: BurnPair, nowMs: Ms): Burns {
    const objectiveRatio = this.#attainment.objectiveRatio(key)
    const long = this.#attainment.share(key, 'all', pair.long as WindowName, nowMs)
    const short = this.#attainment.share(key, 'all', pair.short as WindowName, nowMs)
    return {
      requests: long.good + long.bad,
      long: burnRate(long.good, long.bad, objectiveRatio),
      short: burnRate(short.good, short.bad, objectiveRatio),
    }
  }
}

interface Burns {
  readonly requests: number
  readonly long: number | undefined
  readonly short: number | undefined
}

/** The worst state of all; `unknown` when there is nothing to judge. */
export function worstState(all: readonly SeriesHealth[]): HealthState {
  const order: readonly HealthState[] = ['critical', 'burning', 'ok', 'unknown']
  return order.find((state) => all.some((health) => health.state === state)) ?? 'unknown'
}

/** The worst state of each class, over its models and products. */
export function statesByClass(all: readonly SeriesHealth[]): Readonly<Record<string, HealthState>> {
  const names = [...new Set(all.map((health) => health.class))]
  return Object.fromEntries(
    names.map((name) => [name, worstState(all.filter((health) => health.class === name))] as const),
  )
}

function nameOf(pair: BurnPair): string {
  return `${pair.long}/${pair.short}`
}

function idOf(key: SeriesKey): string {
  return `${key.model}\n${key.class}\n${key.product}`
}
