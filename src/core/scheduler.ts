/** The contract of a scheduler: turns the gate's state into effects. Ours and every rival implement it. */
import type { OfferedStream } from './demand.ts'
import type { ShedReason } from './effects.ts'
import type { EngineAdvice } from './engine-advice.ts'
import type { BounceCause } from './events.ts'
import type { InFlight, ReplicaLedger } from './ledger.ts'
import type { CandidateView, SettleReport, SloVerdict } from './records.ts'
import type { Offer, PoolId, ReplicaId, RequestId, SloClass } from './request.ts'
import type { Ms } from './units.ts'
import type { Waiter, WaitingRoom } from './waiting-room.ts'

/** What a scheduler may read. It owns none of it and changes none of it. */
export interface GateState {
  readonly waiting: WaitingRoom
  readonly replicas: ReadonlyMap<ReplicaId, ReplicaLedger>
  /** How many Sluices share these engines; this one plans with its part of them. */
  readonly instances: number
}

/** One intention of a plan; the gate checks it and turns it into effects with permits and records. */
export type Intent =
  | {
      readonly kind: 'admit'
      readonly requestId: RequestId
      readonly replicaId: ReplicaId
      readonly candidates: readonly CandidateView[]
    }
  | {
      readonly kind: 'shed'
      readonly requestId: RequestId
      readonly reason: ShedReason
      readonly retryAfterMs?: Ms
      readonly candidates: readonly CandidateView[]
    }

/** How far predictions are believed: they may shed, only what misses by far, or nothing at all. */
export type TrustState = 'trusted' | 'cautious' | 'fallback'

export interface Plan {
  readonly intents: readonly Intent[]
  /** When to look again if nothing happens; undefined when only an event can change the plan. */
  readonly wakeAtMs?: Ms
}

/**
 * A scheduler holds learning state of its own and no clock. `plan` is asked until it returns no intents, each call on
 * the state that its earlier intents made, so it may return one decision at a time. `firstToken` is told before it is
 * booked, all else after: the ledger shows a dispatched permit and its progress, and a settled or bounced one no more.
 */
export interface Scheduler {
  readonly name: string
  plan(state: GateState, nowMs: Ms): Plan
  /** How far predictions for that pool are believed now; while `fallback` none of them sheds. */
  trust(pool: PoolId): TrustState
  firstToken(inFlight: InFlight, ledger: ReplicaLedger, nowMs: Ms): void
  /** Decode progress of a replica since the last call: `contentEvents` over all its streams. */
  progress(ledger: ReplicaLedger, contentEvents: number, nowMs: Ms): void
  dispatched(inFlight: InFlight, ledger: ReplicaLedger, nowMs: Ms): void
  settled(
    inFlight: InFlight,
    ledger: ReplicaLedger,
    report: SettleReport,
    verdict: SloVerdict,
    nowMs: Ms,
  ): void
  /** The permit came back before content; the request may be tried elsewhere. */
  bounced(inFlight: InFlight, ledger: ReplicaLedger, cause: BounceCause, nowMs: Ms): void
  /** What it sees of a replica to which somebody else sends the waiter; absent from schedulers that predict nothing. */
  view?(waiter: Waiter, replicaId: ReplicaId, state: GateState, nowMs: Ms): CandidateView | undefined
  /** When one more request of that pool could be served, in ms from now; for refusals that no plan made. */
  retryAfterMs(state: GateState, offer: Offer, nowMs: Ms): Ms
  /** Replicas that would carry such a demand on that pool, a fraction; undefined when it can't say. */
  replicasWanted(state: GateState, pool: PoolId, demand: readonly OfferedStream[]): number | undefined
  /**
   * What it has learnt of the engines of that pool says of their settings and of these classes, once for each kind of
   * engine; absent from schedulers that learn nothing of engines.
   */
  advise?(
    state: GateState,
    pool: PoolId,
    classes: readonly SloClass[],
    demand: readonly OfferedStream[],
  ): readonly EngineAdvice[]
  /** The engine behind it restarted or it went away: forget what was cached there. */
  replicaReset(replicaId: ReplicaId): void
  /** The learnt state as plain JSON, for /replicas, for snapshots and for tests. */
  snapshot(): unknown
}
