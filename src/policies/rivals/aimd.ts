/** AIMD: a limit per replica that grows while its requests are in time and falls when they are late, with a timed FIFO. */
import type { ReplicaLedger } from '../../core/ledger.ts'
import { type ReplicaId, ttftTargetMs } from '../../core/request.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import { clamp, type Ms, type Ratio } from '../../core/units.ts'
import { passive } from '../plain/passive.ts'
import { planQueue } from '../plain/queue.ts'
import { emptiestBelow } from './concurrency-limit.ts'

export interface AimdOptions {
  readonly queueMs: Ms
  /** The limit moves once in each window of that length, in ms. */
  readonly windowMs?: Ms
  /** Share of late samples that is borne. */
  readonly lateRatio?: Ratio
  /** Growth in a window without too many late ones, in requests. */
  readonly growth?: number
}

const INITIAL_LIMIT = 20
const MAX_LIMIT = 1024
const BACKOFF_RATIO: Ratio = 0.9

interface Limit {
  limit: number
  windowStartedAtMs: Ms
  samples: number
  late: number
  mostInFlight: number
}

export function createAimd(options: AimdOptions): Scheduler {
  const limits = new Map<ReplicaId, Limit>()
  const sample = ({ replicaId, inFlightRequests }: ReplicaLedger, late: boolean, nowMs: Ms): void => {
    const limit = limits.get(replicaId) ?? newLimit(nowMs)
    limits.set(replicaId, limit)
    limit.samples++
    if (late) limit.late++
    limit.mostInFlight = Math.max(limit.mostInFlight, inFlightRequests)
    moveLimit(limit, options, nowMs)
  }
  return {
    ...passive('aimd', (state, nowMs) =>
      planQueue(state, nowMs, {
        queueMs: options.queueMs,
        choose: (_, ledgers) =>
          emptiestBelow(ledgers, ({ replicaId }) => limits.get(replicaId)?.limit ?? INITIAL_LIMIT),
      }),
    ),
    firstToken({ offer }, ledger, nowMs) {
      const targetMs = ttftTargetMs(offer.slo, offer.promptTokens)
      if (targetMs !== undefined) sample(ledger, nowMs - offer.receivedAtMs > targetMs, nowMs)
    },
    settled(_inFlight, ledger, _report, { tpotGood }, nowMs) {
      if (tpotGood !== undefined) sample(ledger, !tpotGood, nowMs)
    },
    replicaReset: (replicaId) => limits.delete(replicaId),
    snapshot: () => Object.fromEntries([...limits].map(([id, { limit }]) => [id, limit])),
  }
}

function newLimit(nowMs: Ms): Limit {
  return { limit: INITIAL_LIMIT, windowStartedAtMs: nowMs, samples: 0, late: 0, mostInFlight: 0 }
}

function moveLimit(limit: Limit, options: AimdOptions, nowMs: Ms): void {
  const { windowMs = 500, lateRatio = 0.1, growth = 1 } = options
  if (nowMs - limit.windowStartedAtMs < windowMs) return
  const used = limit.mostInFlight * 2 >= limit.limit
  if (limit.late > lateRatio * limit.samples) limit.limit *= BACKOFF_RATIO
  else if (used) limit.limit += growth
  limit.limit = clamp(limit.limit, 1, MAX_LIMIT)
  limit.windowStartedAtMs = nowMs
  limit.samples = 0
  limit.late = 0
  limit.mostInFlight = 0
}
