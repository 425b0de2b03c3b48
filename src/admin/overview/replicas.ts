/** Reads what each replica is doing: its books, its gauges, whether it is predicted well. */
import type { ReplicaState } from '../../core/replica.ts'
import type { TrustState } from '../../core/scheduler.ts'
import type { Ms, Ratio, Tokens } from '../../core/units.ts'
import type { TtftPair } from '../../telemetry/ttft-pairs.ts'
import type { AdminPorts } from '../ports.ts'

export interface ReplicaFigures {
  readonly name: string
  readonly models: readonly string[]
  readonly state: ReplicaState
  readonly inFlightRequests: number
  readonly prefillingRequests: number
  readonly decodingSequences: number
  readonly backlogTokens: Tokens
  readonly kvUsageRatio?: Ratio
  /** What waits inside the engine, by its own page. */
  readonly engineWaitingRequests?: number
  readonly scrapeAgeMs?: Ms
  /** The least of its models' trust; absent where nothing predicts. */
  readonly trust?: TrustState
  /** Medians of the last requests. */
  readonly ttft?: TtftPair
}

const TRUST_ORDER: readonly TrustState[] = ['fallback', 'cautious', 'trusted']

/** Every replica, in the order of the fleet. */
export function replicaFigures({ samples, observer, nowMs }: AdminPorts): readonly ReplicaFigures[] {
  const atMs = nowMs()
  const trusts = new Map(samples.trust().map(({ model, state }) => [model, state]))
  return samples.replicas().map(({ id, name, models, state, ledger, gauges }) => {
    const trust = TRUST_ORDER.find((level) => models.some((model) => trusts.get(model) === level))
    const ttft = observer.ttftPairs.of(id, atMs)
    return {
      name,
      models,
      state,
      inFlightRequests: ledger.inFlightRequests,
      prefillingRequests: ledger.prefillingRequests,
      decodingSequences: ledger.decodingSequences,
      backlogTokens: ledger.backlogTokens,
      ...(gauges?.kvUsageRatio === undefined ? {} : { kvUsageRatio: gauges.kvUsageRatio }),
      ...(gauges === undefined
        ? {}
        : {
            engineWaitingRequests: gauges.waitingRequests,
            scrapeAgeMs: Math.max(0, atMs - gauges.seenAtMs),
          }),
      ...(trust === undefined ? {} : { trust }),
      ...(ttft === undefined ? {} : { ttft }),
    }
  })
}
