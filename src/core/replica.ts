/** What the gate is told about a replica: one state, derived at the rim from breaker, scrape, probe and config. */
import type { PoolId, ReplicaId } from './request.ts'
import type { Ms, Ratio, Tokens } from './units.ts'

/**
 * `live` takes work; `ramping` has just come (back) and takes little; `suspect` is silent or failing fast and takes
 * nothing new; `down` is refused by the breaker; `draining` finishes what it has and then goes.
 */
export type ReplicaState = 'live' | 'ramping' | 'suspect' | 'down' | 'draining'

/** Gauges read from the engine's metrics page. They lag, so they correct the ledger and never replace it. */
export interface ReplicaGauges {
  readonly seenAtMs: Ms
  readonly runningRequests: number
  readonly waitingRequests: number
  /** KV blocks in use, 0 to 1; absent when the engine has no such gauge. */
  readonly kvUsageRatio?: Ratio
  /** Preemptions since the engine's start; a fall means a restart. */
  readonly preemptionsTotal?: number
}

/** Limits of the engine, from config, from `/server_info`, from metrics labels, or absent and then learnt. */
export interface EngineLimits {
  readonly maxNumSeqs?: number
  readonly maxNumBatchedTokens?: Tokens
  readonly kvCapacityTokens?: Tokens
  readonly maxModelLenTokens?: Tokens
  /**
   * Engines behind the address that compute prompts only while others there make the answers (disaggregated prefill);
   * the other limits are then those of one of them and of all that answer. Absent: one engine does both.
   */
  readonly prefillEngines?: number
}

/** A replica as shown to the gate. `groupId` joins replicas with one step model (same model, GPU and arguments). */
export interface ReplicaReport {
  readonly replicaId: ReplicaId
  readonly pools: readonly PoolId[]
  readonly groupId: string
  readonly state: ReplicaState
  /** Keys of the routes that its engine has; absent: all. In a mixed pool not every engine has every route. */
  readonly routes?: ReadonlySet<string>
  readonly limits: EngineLimits
  readonly gauges?: ReplicaGauges
  /** Rises with each (re)start of the engine behind the URL; what was cached and in flight there is gone. */
  readonly generation: number
}
