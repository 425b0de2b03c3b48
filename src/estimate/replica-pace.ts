/** How much slower each replica of a group is than the others, and whether one, or all of them, has just changed. */
import type { ReplicaId } from '../core/request.ts'
import { clamp } from '../core/units.ts'
import type { StepResidual } from './step-model.ts'

/** What is known of one replica. */
interface ReplicaPace {
  /** ln of its step times over those of the group's model, and how unsure that is. */
  logSlowness: number
  variance: number
  /** Windows since it was new or changed. */
  windows: number
  /** Sums of what came later and sooner than believed, beyond what noise explains (CUSUM). */
  later: number
  sooner: number
}

/** The replicas of one group. Plain values. */
export interface GroupPace {
  readonly replicas: Map<ReplicaId, ReplicaPace>
  sumLogSlowness: number
  /** Rises whenever any slowness may have changed. */
  version: number
}

/** What a window showed: nothing new, one replica that changed, or an engine that is not what was learnt. */
export type PaceChange = 'none' | 'replica' | 'group'

/**
 * A random walk back to the group, learnt by a Kalman filter (decision notes, C5): deviation of a new replica, of one
 * that has just changed, of what may change between two windows, and the part of a difference that a window forgets.
 */
const NEW_VARIANCE = 0.1 ** 2
const CHANGED_VARIANCE = 0.5 ** 2
const DRIFT_VARIANCE = 0.01 ** 2
const FORGET_RATIO = 0.002
/** A replica is believed to be at most three times as slow or as fast as its group. */
const MAX_LOG_SLOWNESS = Math.log(3)
/**
 * A change is called when windows were off by more than one standard deviation each, and by eight in sum: two windows
 * of a replica that halves its speed, a dozen of one that loses a quarter. Of a steady one, less than one in 10⁶.
 */
const ALLOWED_SIGMAS = 1
const CHANGE_SIGMAS = 8
/** One wild window alone is no change. */
const MAX_SIGMAS = 4
/** The first windows of a replica only show how it differs. */
const SETTLING_WINDOWS = 8

export function groupPace(): GroupPace {
  return { replicas: new Map(), sumLogSlowness: 0, version: 0 }
}

/**
 * How many times slower than its group's model: relative to the mean of the group, so that a group's common slowness
 * is the model's to learn. 1 for a replica alone, within 1/3 and 3.
 */
export function slownessOf(pace: GroupPace, replicaId: ReplicaId): number {
  const own = pace.replicas.get(replicaId)
  return own === undefined ? 1 : Math.exp(nearMean(own.logSlowness, pace) - meanOf(pace))
}

/** Takes how far one window of a replica was off, its present slowness being reckoned with. */
export function learnPace(
  pace: GroupPace,
  replicaId: ReplicaId,
  { ratio, sigmaRatio, sigmas }: StepResidual,
): PaceChange {
  pace.version++
  const own = pace.replicas.get(replicaId) ?? newPace(pace, replicaId)
  // While the model itself is unsure, a window says little about the replica.
  const share = own.variance / (own.variance + sigmaRatio * sigmaRatio)
  const back = FORGET_RATIO * (meanOf(pace) - own.logSlowness)
  const moved = nearMean(own.logSlowness + share * Math.log(Math.max(1e-9, ratio)) + back, pace)
  own.variance = Math.min(CHANGED_VARIANCE, (1 - share) * own.variance + DRIFT_VARIANCE)
  pace.sumLogSlowness += moved - own.logSlowness
  own.logSlowness = moved
  own.windows++
  if (own.windows <= SETTLING_WINDOWS) return 'none'
  const off = clamp(sigmas, -MAX_SIGMAS, MAX_SIGMAS)
  own.later = Math.max(0, own.later + off - ALLOWED_SIGMAS)
  own.sooner = Math.max(0, own.sooner - off - ALLOWED_SIGMAS)
  return Math.max(own.later, own.sooner) > CHANGE_SIGMAS ? changed(pace, own) : 'none'
}

/** Until something is seen of it a replica is like the others. */
function newPace(pace: GroupPace, replicaId: ReplicaId): ReplicaPace {
  const fresh = { logSlowness: meanOf(pace), variance: NEW_VARIANCE, windows: 0, later: 0, sooner: 0 }
  pace.sumLogSlowness += fresh.logSlowness
  pace.replicas.set(replicaId, fresh)
  return fresh
}

function meanOf({ replicas, sumLogSlowness }: GroupPace): number {
  return replicas.size === 0 ? 0 : sumLogSlowness / replicas.size
}

function nearMean(logSlowness: number, pace: GroupPace): number {
  const mean = meanOf(pace)
  return clamp(logSlowness, mean - MAX_LOG_SLOWNESS, mean + MAX_LOG_SLOWNESS)
}

/** The replica is new, has restarted or has left: what it was says nothing about what it is. */
export function forgetPace(pace: GroupPace, replicaId: ReplicaId): void {
  pace.version++
  pace.sumLogSlowness -= pace.replicas.get(replicaId)?.logSlowness ?? 0
  pace.replicas.delete(replicaId)
  if (pace.replicas.size === 0) pace.sumLogSlowness = 0
}

/** A replica that changes while another one keeps its pace has changed alone; else the model is wrong. */
function changed(pace: GroupPace, own: ReplicaPace): PaceChange {
  const others = [...pace.replicas.values()].filter((other) => other !== own)
  const settled = others.filter(({ windows }) => windows > SETTLING_WINDOWS)
  const calm = settled.filter(({ later, sooner }) => Math.max(later, sooner) < CHANGE_SIGMAS / 2)
  const alone = calm.length * 2 > settled.length
  for (const each of alone ? [own] : [own, ...others])
    Object.assign(each, { windows: 0, later: 0, sooner: 0 })
  if (alone) own.variance = CHANGED_VARIANCE
  return alone ? 'replica' : 'group'
}
