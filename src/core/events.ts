/** What happens to the gate: serialisable events, each handled at an instant that the caller names. */
import type { GateSettings } from './gate-settings.ts'
import type { SettleReport, WithdrawnOutcome } from './records.ts'
import type { ReplicaReport } from './replica.ts'
import type { Offer, ReplicaId, RequestId } from './request.ts'
import type { Tokens } from './units.ts'

/** One right to occupy a replica. A rerouted request holds two in turn, never at once. */
export type PermitId = number

/** Why a dispatched request may come back before any content: the replica's fault, or it was merely full. */
export const BOUNCE_CAUSES = [
  'connect_failed',
  /** The engine closed or broke the connection, or ended the stream. */
  'reset',
  /** We ended it: nothing showed life in the replica any more. */
  'silent',
  'engine_full',
  'engine_error',
] as const

export type BounceCause = (typeof BOUNCE_CAUSES)[number]

export type GateEvent =
  | { readonly kind: 'offer'; readonly offer: Offer }
  /** The first generated token of a permit reached us; `opaque` when no other of it will be told. */
  | { readonly kind: 'firstToken'; readonly permitId: PermitId; readonly opaque?: boolean }
  /** Content events since the last report, for many permits at once (parallel arrays; never one event a token). */
  | {
      readonly kind: 'progress'
      readonly permitIds: readonly PermitId[]
      readonly contentEvents: readonly number[]
    }
  /** The permit's stream ended, whatever way. Its second settle is a caller's bug and throws. */
  | { readonly kind: 'settle'; readonly permitId: PermitId; readonly report: SettleReport }
  /** The permit failed before content: give it back and try another replica, within the budget. */
  | { readonly kind: 'bounce'; readonly permitId: PermitId; readonly cause: BounceCause }
  /** The client left while its request waited; with `outcome`, we ended it. */
  | { readonly kind: 'cancel'; readonly requestId: RequestId; readonly outcome?: WithdrawnOutcome }
  | { readonly kind: 'replicaChanged'; readonly replica: ReplicaReport }
  | { readonly kind: 'replicaRemoved'; readonly replicaId: ReplicaId }
  /** The configuration changed; what waits or runs is untouched. */
  | { readonly kind: 'configured'; readonly settings: GateSettings }
  /** Time has passed: nothing else happened. */
  | { readonly kind: 'tick' }

/** What the engine itself said of a finished request's size. */
export interface Usage {
  readonly promptTokens?: Tokens
  readonly outputTokens?: Tokens
  readonly cachedTokens?: Tokens
}
