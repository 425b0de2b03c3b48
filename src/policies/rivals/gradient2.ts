/** Netflix's Gradient2: a limit per replica that follows the ratio of long-term to recent latency, with a timed FIFO. */
import type { InFlight } from '../../core/ledger.ts'
import type { ReplicaId } from '../../core/request.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import { clamp, type Ms, type Ratio } from '../../core/units.ts'
import { passive } from '../plain/passive.ts'
import { planQueue } from '../plain/queue.ts'
import { emptiestBelow } from './concurrency-limit.ts'

/**
 * Constants and rule: Netflix/concurrency-limits at 78a74b9, `Gradient2Limit`. Latency there is that of similar calls;
 * here it is the time from dispatch to first token over what that prompt would take alone, since prompts differ in
 * cost by a factor of a thousand.
 */
export interface Gradient2Options {
  readonly queueMs: Ms
  /** A prompt alone: base + per token; only the ratio of the two matters. */
  readonly soloBaseMs?: Ms
  readonly soloPerTokenMs?: Ms
  /** Recent latency may be this many times the long-term one before the limit falls. */
  readonly toleranceRatio?: Ratio
  readonly minLimit?: number
  readonly maxLimit?: number
}

/** An 8B model on a current GPU. */
const SOLO_BASE_MS: Ms = 22
const SOLO_PER_TOKEN_MS: Ms = 0.02
const INITIAL_LIMIT = 20
/** Growth at each sample, in requests. */
const QUEUE_SIZE = 4
const SMOOTHING: Ratio = 0.2
const LONG_SAMPLES = 600
const WARM_UP_SAMPLES = 10

interface Limit {
  limit: number
  longRatio: number
  samples: number
}

export function createGradient2(options: Gradient2Options): Scheduler {
  const { soloBaseMs = SOLO_BASE_MS, soloPerTokenMs = SOLO_PER_TOKEN_MS } = options
  const limits = new Map<ReplicaId, Limit>()
  const limitOf = (replicaId: ReplicaId): number => limits.get(replicaId)?.limit ?? INITIAL_LIMIT
  return {
    ...passive('gradient2', (state, nowMs) =>
      planQueue(state, nowMs, {
        queueMs: options.queueMs,
        choose: (_, ledgers) => emptiestBelow(ledgers, ({ replicaId }) => Math.floor(limitOf(replicaId))),
      }),
    ),
    firstToken(inFlight: InFlight, { replicaId, inFlightRequests }, nowMs) {
      const soloMs = soloBaseMs + soloPerTokenMs * inFlight.uncachedTokens
      const known = limits.get(replicaId) ?? { limit: INITIAL_LIMIT, longRatio: 0, samples: 0 }
      limits.set(
        replicaId,
        sampled(known, (nowMs - inFlight.dispatchedAtMs) / soloMs, inFlightRequests, options),
      )
    },
    replicaReset: (replicaId) => limits.delete(replicaId),
    snapshot: () => Object.fromEntries([...limits].map(([id, { limit }]) => [id, limit])),
  }
}

function sampled(known: Limit, shortRatio: number, inFlight: number, options: Gradient2Options): Limit {
  const { toleranceRatio = 1.5, minLimit = 20, maxLimit = 200 } = options
  const samples = known.samples + 1
  const share = samples <= WARM_UP_SAMPLES ? 1 / samples : 2 / (LONG_SAMPLES + 1)
  let longRatio = known.longRatio + share * (shortRatio - known.longRatio)
  // After an overload the long-term latency must come down by itself.
  if (longRatio > 2 * shortRatio) longRatio *= 0.95
  // A limit that is not used says nothing.
  if (inFlight < known.limit / 2) return { limit: known.limit, longRatio, samples }
  const gradient = clamp((toleranceRatio * longRatio) / shortRatio, 0.5, 1)
  const aimed = gradient * known.limit + QUEUE_SIZE
  const limit = clamp(known.limit * (1 - SMOOTHING) + aimed * SMOOTHING, minLimit, maxLimit)
  return { limit, longRatio, samples }
}
