/** One simulated replica: the engine of its present life and the streams open there. */
import type { PermitId } from '../core/events.ts'
import type { ReplicaReport, ReplicaState } from '../core/replica.ts'
import type { Offer, PoolId, ReplicaId } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'
import { EngineModel } from './engine-model.ts'
import type { EngineGauges, EngineOptions } from './engine-types.ts'

/** One permit under way. */
export interface Flight {
  readonly gateIndex: number
  readonly permitId: PermitId
  readonly offer: Offer
  readonly engineId: string
  readonly replica: ReplicaOfRun
  /** Content events that the gate has not been told of. */
  unreportedEvents: number
  contentEvents: number
  cachedTokens: Tokens
  firstTokenAtMs?: Ms
  lastTokenAtMs?: Ms
}

export class ReplicaOfRun {
  readonly id: ReplicaId
  readonly flights = new Map<string, Flight>()
  /** Flights with unreported events; some may have ended since. */
  readonly unreported: Flight[] = []
  /** The engine's next event as already put into the event queue. */
  plannedAtMs: Ms | undefined
  engine: EngineModel | undefined
  state: ReplicaState = 'live'
  readonly #options: EngineOptions
  readonly #pool: PoolId
  readonly #limitsKnown: boolean
  #generation = 0
  #earlierLives: EngineGauges | undefined

  constructor(id: ReplicaId, options: EngineOptions, pool: PoolId, limitsKnown: boolean) {
    this.id = id
    this.#options = options
    this.#pool = pool
    this.#limitsKnown = limitsKnown
    this.engine = new EngineModel(options)
  }

  die(): void {
    this.#earlierLives = this.totals()
    this.engine = undefined
    this.plannedAtMs = undefined
  }

  revive(): void {
    this.engine = new EngineModel(this.#options)
    this.#generation++
    this.state = 'live'
  }

  /** Gauges with counters summed over all lives. */
  totals(): EngineGauges {
    const now = this.engine?.gauges()
    const before = this.#earlierLives
    if (now === undefined || before === undefined)
      return now ?? before ?? new EngineModel(this.#options).gauges()
    const summed = { ...now }
    for (const key of Object.keys(now) as (keyof EngineGauges)[]) {
      if (key.endsWith('Total')) Object.assign(summed, { [key]: now[key] + before[key] })
    }
    return summed
  }

  /** What the gate is told; with gauges when the metrics page was read at `seenAtMs`. */
  report(seenAtMs?: Ms): ReplicaReport {
    const { engine } = this
    const gauges = engine?.gauges()
    return {
      replicaId: this.id,
      pools: [this.#pool],
      groupId: this.#options.profile.id,
      state: this.state,
      limits:
        this.#limitsKnown && engine !== undefined
          ? {
              maxNumSeqs: engine.maxNumSeqs,
              maxNumBatchedTokens: engine.maxNumBatchedTokens,
              kvCapacityTokens: engine.kv.totalBlocks * engine.kv.blockTokens,
              maxModelLenTokens: engine.maxModelLenTokens,
            }
          : {},
      generation: this.#generation,
      ...(gauges === undefined || seenAtMs === undefined
        ? {}
        : {
            gauges: {
              seenAtMs,
              runningRequests: gauges.runningSequences,
              waitingRequests: gauges.waitingSequences,
              kvUsageRatio: gauges.kvUsageRatio,
              preemptionsTotal: gauges.preemptionsTotal,
            },
          }),
    }
  }
}
