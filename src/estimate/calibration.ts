/** Turns a prediction into quantiles that keep what they say: online conformal over observed/predicted, by load. */
import { clamp, type Ms, type Ratio } from '../core/units.ts'

export type Level = 'p50' | 'p80' | 'p95'

/** Rising, and what each of them promises. */
const LEVELS: readonly Level[] = ['p50', 'p80', 'p95']
const PROMISED: readonly Ratio[] = [0.5, 0.8, 0.95]

/** The last errors of one kind of load, as ln(observed/predicted), with the ranks at which quantiles are read. */
interface ErrorWindow {
  /** By age, oldest first; the first `seeds` of them are only assumed. */
  readonly aged: number[]
  readonly sorted: number[]
  /** One for each level. */
  readonly ranks: Ratio[]
  seeds: number
  learntAtMs: Ms
}

/** Errors of all loads together and of each class of load. Plain values. */
export interface Calibration {
  pool: ErrorWindow
  /** By class of load; absent where nothing was seen lately. */
  classes: (ErrorWindow | undefined)[]
}

/** Errors that a window keeps: about the last minute of a busy replica. */
const WINDOW_SAMPLES = 200
/** A class is read by its own errors from so many on, else by those of the pool. */
const CLASS_MIN_SAMPLES = 50
/** Until samples come: a median that is right, and 0.27 of deviation (decision notes, C5: 30 % without harm). */
const SEEDS: readonly number[] = [0, 0.08, -0.08, 0.16, -0.16, 0.26, -0.26, 0.43, -0.43]
/** Step of a rank after each hit or miss (adaptive conformal inference, Gibbs and Candès 2021: 0.005 to 0.02). */
const RANK_STEP: Ratio = 0.02
/** Ranks stay put while a window holds fewer, since its quantiles are still coarse. */
const RANK_MIN_SAMPLES = 20
const MIN_RANK: Ratio = 0.02
const MAX_RANK: Ratio = 0.995
/** A single error counts for no more than this, either way. */
const MAX_LOG_RATIO = Math.log(100)
/** Factors stay within this, either way. */
const MAX_LOG_FACTOR = Math.log(5)
/** Errors of a class that got none for so long are stale: what it refused meanwhile can't tell otherwise, in ms. */
const STALE_AFTER_MS: Ms = 60_000

export function calibration(): Calibration {
  return { pool: errorWindow(SEEDS), classes: [] }
}

/** Takes one pair, both in ms, finite and above 0; others are ignored. `loadClass` is a small index from 0. */
export function learnError(
  calibration: Calibration,
  loadClass: number,
  observedMs: Ms,
  predictedMs: Ms,
  nowMs: Ms,
): void {
  if (!(observedMs > 0) || !(predictedMs > 0) || !Number.isFinite(observedMs + predictedMs)) return
  const logRatio = clamp(Math.log(observedMs / predictedMs), -MAX_LOG_RATIO, MAX_LOG_RATIO)
  take(calibration.pool, logRatio, nowMs)
  const known = calibration.classes[loadClass]
  const own = known === undefined || isStale(known, nowMs) ? errorWindow([]) : known
  calibration.classes[loadClass] = own
  take(own, logRatio, nowMs)
}

/**
 * What a prediction must be multiplied by so that the truth stays below it at that level. Never less at a higher level.
 * While nothing was learnt for a minute, what it adds to the prediction fades: half in each minute more.
 */
export function factor(calibration: Calibration, loadClass: number, level: Level, nowMs: Ms): number {
  const own = calibration.classes[loadClass]
  const usable = own !== undefined && own.aged.length >= CLASS_MIN_SAMPLES && !isStale(own, nowMs)
  const window = usable ? own : calibration.pool
  const logFactor = clamp(logQuantile(window, LEVELS.indexOf(level)), -MAX_LOG_FACTOR, MAX_LOG_FACTOR)
  const staleMs = Math.max(0, nowMs - window.learntAtMs - STALE_AFTER_MS)
  return Math.exp(logFactor > 0 ? logFactor * 0.5 ** (staleMs / STALE_AFTER_MS) : logFactor)
}

/** Forgets all errors: they are those of an engine that is no more. */
export function restart(calibration: Calibration): void {
  calibration.pool = errorWindow(SEEDS)
  calibration.classes = []
}

/** Errors learnt and still remembered. */
export function remembered({ pool }: Calibration): number {
  return pool.aged.length - pool.seeds
}

function errorWindow(seeds: readonly number[]): ErrorWindow {
  return {
    aged: [...seeds],
    sorted: [...seeds].sort((a, b) => a - b),
    ranks: [...PROMISED],
    seeds: seeds.length,
    learntAtMs: Number.POSITIVE_INFINITY,
  }
}

function isStale(window: ErrorWindow, nowMs: Ms): boolean {
  return nowMs - window.learntAtMs > STALE_AFTER_MS
}

function take(window: ErrorWindow, logRatio: number, nowMs: Ms): void {
  const { aged, sorted, ranks } = window
  if (aged.length >= RANK_MIN_SAMPLES) {
    for (const [level, promised] of PROMISED.entries()) {
      const missed = logRatio > logQuantile(window, level) ? 1 : 0
      ranks[level] = clamp((ranks[level] ?? 0) + RANK_STEP * (promised - 1 + missed), MIN_RANK, MAX_RANK)
    }
  }
  if (window.seeds > 0 || aged.length >= WINDOW_SAMPLES) {
    const oldest = aged.shift() ?? 0
    sorted.splice(placeOf(sorted, oldest), 1)
    if (window.seeds > 0) window.seeds--
  }
  aged.push(logRatio)
  sorted.splice(placeOf(sorted, logRatio), 0, logRatio)
  window.learntAtMs = nowMs
}

/** The error at the rank of the level with that index, between neighbours; at least that of every lower level. */
function logQuantile({ sorted, ranks }: ErrorWindow, level: number): number {
  let highest = Number.NEGATIVE_INFINITY
  for (let each = 0; each <= level; each++) highest = Math.max(highest, atRank(sorted, ranks[each] ?? 0))
  return highest
}

/** Conformal: the k-th of n errors bounds the next one with probability k/(n + 1). */
function atRank(sorted: readonly number[], rank: Ratio): number {
  const last = sorted.length - 1
  const place = clamp(rank * (sorted.length + 1) - 1, 0, last)
  const below = Math.floor(place)
  const low = sorted[below] ?? 0
  return low + (place - below) * ((sorted[below + 1] ?? low) - low)
}

/** The first place in an ascending list whose value is not below `value`. */
function placeOf(sorted: readonly number[], value: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}
