/** Decides how far predictions are believed: a small state machine over how well the last ones came true. */
import type { TrustState } from '../core/scheduler.ts'
import type { Ms, Ratio } from '../core/units.ts'

/** How the last predictions came true. */
export interface TrustEvidence {
  /** Intervals of prefill that the step model was taught. */
  readonly prefillWindows: number
  /** First tokens compared with their prediction since it began, or began anew. */
  readonly comparisons: number
  /** Mean of |ln(observed/median)|. */
  readonly absLogError: number
  /** Share of the last first tokens that came within the p80 that was said of them. */
  readonly coverageRatio: Ratio
  /** Predictions of a sure miss that were put to the test, and the share of them that came in time all the same. */
  readonly missesTested: number
  readonly falseAlarmRatio: Ratio
}

export interface Trust {
  readonly state: TrustState
  /** Comparisons that are needed to leave `fallback`. */
  readonly neededComparisons: number
}

/** Enough to see that a model is not absurd; and to come back after one was. */
const FIRST_COMPARISONS = 8
const SECOND_CHANCE_COMPARISONS = 200
const MIN_PREFILL_WINDOWS = 4
/** Off by a factor of two on the mean. */
const MAX_ABS_LOG_ERROR = 0.7
const MIN_COVERAGE: Ratio = 0.5
const MAX_FALSE_ALARMS: Ratio = 0.2
const MIN_MISSES_TESTED = 10
/** Coverage and error from so few are chance. */
const MIN_COVERED = 20
/** What earns full trust, and what loses it: apart, so that it does not flap (decision notes, F9). */
const TRUSTED_COMPARISONS = 50
const GOOD_ABS_LOG_ERROR = 0.35
const GOOD_COVERAGE: Ratio = 0.7
const LOSING_ABS_LOG_ERROR = 0.5
const LOSING_COVERAGE: Ratio = 0.6
/** Without a single comparison for so long, what was learnt is believed less, and then not at all, in ms. */
const STALE_AFTER_MS: Ms = 60_000
const UNKNOWN_AFTER_MS: Ms = 600_000

/** Nothing is known yet. */
export const COLD: Trust = { state: 'fallback', neededComparisons: FIRST_COMPARISONS }

/** The state after the evidence. It rises one step at a time and falls as far as it must. */
export function nextTrust(trust: Trust, evidence: TrustEvidence): Trust {
  const { comparisons, prefillWindows } = evidence
  const wrong = isWrong(evidence)
  if (trust.state === 'fallback') {
    const enough = comparisons >= trust.neededComparisons && prefillWindows >= MIN_PREFILL_WINDOWS
    return enough && !wrong ? { ...COLD, state: 'cautious' } : trust
  }
  if (comparisons < FIRST_COMPARISONS) return COLD
  if (wrong) return { state: 'fallback', neededComparisons: SECOND_CHANCE_COMPARISONS }
  const trusted = trust.state === 'trusted' ? !isDoubtful(evidence) : isGood(evidence)
  return { ...COLD, state: trusted ? 'trusted' : 'cautious' }
}

/** The state when nothing was compared for `idleMs`: evidence wears out. */
export function wornTrust({ state }: Trust, idleMs: Ms): TrustState {
  if (idleMs > UNKNOWN_AFTER_MS) return 'fallback'
  return state === 'trusted' && idleMs > STALE_AFTER_MS ? 'cautious' : state
}

/** The least believed of some. */
export function leastTrusted(states: readonly TrustState[]): TrustState {
  return states.reduce((least, state) => (RANK[state] < RANK[least] ? state : least), 'trusted')
}

const RANK: Readonly<Record<TrustState, number>> = { fallback: 0, cautious: 1, trusted: 2 }

/**
 * How many times the time that is left a first token must be predicted to take before it may be called a sure miss and
 * shed: the margin that predictions need. Infinite while they are not believed, so that none of them sheds.
 */
export function sureMissRatio(state: TrustState): number {
  return SURE_MISS[state]
}

const SURE_MISS: Readonly<Record<TrustState, number>> = {
  trusted: 1.25,
  cautious: 2,
  fallback: Number.POSITIVE_INFINITY,
}

function isWrong({ comparisons, absLogError, coverageRatio, missesTested, falseAlarmRatio }: TrustEvidence) {
  return (
    absLogError > MAX_ABS_LOG_ERROR ||
    (comparisons >= MIN_COVERED && coverageRatio < MIN_COVERAGE) ||
    (missesTested >= MIN_MISSES_TESTED && falseAlarmRatio > MAX_FALSE_ALARMS)
  )
}

function isGood({ comparisons, absLogError, coverageRatio }: TrustEvidence): boolean {
  return (
    comparisons >= TRUSTED_COMPARISONS && absLogError <= GOOD_ABS_LOG_ERROR && coverageRatio >= GOOD_COVERAGE
  )
}

function isDoubtful({ absLogError, coverageRatio }: TrustEvidence): boolean {
  return absLogError > LOSING_ABS_LOG_ERROR || coverageRatio < LOSING_COVERAGE
}
