/** Burn rates: how fast an error budget is spent, and the pairs of windows that make an alert of it. */
import type { Ms, Ratio } from '../core/units.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from './windows.ts'

export type BurnSeverity = 'page' | 'ticket'

/** Fires while the burn rate is above `factor` over both windows; the short one makes it clear soon after recovery. */
export interface BurnPair {
  readonly severity: BurnSeverity
  /** The windows as Prometheus writes them. */
  readonly long: string
  readonly short: string
  readonly longMs: Ms
  readonly shortMs: Ms
  /** Share of the period's budget that is spent when the long window is full at `factor`. */
  readonly budgetShare: Ratio
  readonly factor: number
}

/**
 * The multiwindow pairs of Google's SRE workbook (chapter "Alerting on SLOs"), with the middle ticket pair that
 * common rule generators add.
 */
const PAIRS: readonly Omit<BurnPair, 'factor'>[] = [
  { severity: 'page', long: '1h', short: '5m', longMs: HOUR_MS, shortMs: 5 * MINUTE_MS, budgetShare: 0.02 },
  {
    severity: 'page',
    long: '6h',
    short: '30m',
    longMs: 6 * HOUR_MS,
    shortMs: 30 * MINUTE_MS,
    budgetShare: 0.05,
  },
  { severity: 'ticket', long: '1d', short: '2h', longMs: DAY_MS, shortMs: 2 * HOUR_MS, budgetShare: 0.1 },
  { severity: 'ticket', long: '3d', short: '6h', longMs: 3 * DAY_MS, shortMs: 6 * HOUR_MS, budgetShare: 0.1 },
]

/** A pair that would fire on less than this is dropped: a budget burnt slower lasts longer than its period. */
const LEAST_FACTOR = 0.9

/**
 * Pairs for an objective that is promised over `periodMs`. factor = budget share x period / long window: 14.4, 6, 3
 * and 1 for 30 days. Shorter periods lose the pairs whose long window is too long for them.
 */
export function burnPairs(periodMs: Ms): readonly BurnPair[] {
  return PAIRS.map((pair) => ({ ...pair, factor: (pair.budgetShare * periodMs) / pair.longMs })).filter(
    (pair) => pair.factor >= LEAST_FACTOR,
  )
}

/**
 * Bad share relative to the share that the objective allows: 1 spends the budget in exactly the period. Undefined
 * without requests or without an objective; infinite when the objective allows nothing and something was bad.
 */
export function burnRate(good: number, bad: number, objectiveRatio: Ratio | undefined): number | undefined {
  const total = good + bad
  if (objectiveRatio === undefined || total === 0) return undefined
  if (bad === 0) return 0
  const allowed = 1 - objectiveRatio
  return allowed <= 0 ? Number.POSITIVE_INFINITY : bad / total / allowed
}

/** Share of the budget left over the period: 1 untouched, 0 spent, below 0 overspent. Undefined like `burnRate`. */
export function budgetRemainingRatio(
  good: number,
  bad: number,
  objectiveRatio: Ratio | undefined,
): number | undefined {
  const burn = burnRate(good, bad, objectiveRatio)
  return burn === undefined ? undefined : 1 - burn
}
