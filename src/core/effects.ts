/** What the gate wants done: serialisable effects, by id; the dispatcher carries them out. */
import type { PermitId } from './events.ts'
import type { DecisionRecord, Settlement } from './records.ts'
import type { ReplicaId, RequestId } from './request.ts'
import type { Ms } from './units.ts'

/** Why we chose not to serve. `infeasible` could not be met even by an idle replica, so a retry is useless. */
export const SHED_REASONS = [
  'slo_unreachable',
  'waiting_full',
  'wait_expired',
  'tenant_limit',
  'infeasible',
  'no_replica',
] as const

export type ShedReason = (typeof SHED_REASONS)[number]

export type GateEffect =
  /** Open the request on that replica under that permit; `record` says why there. */
  | {
      readonly kind: 'dispatch'
      readonly requestId: RequestId
      readonly permitId: PermitId
      readonly replicaId: ReplicaId
      readonly attempt: 1 | 2
      readonly record: DecisionRecord
    }
  /** Refuse it. `retryAfterMs` is computed and not yet jittered; undefined when a retry can't help. */
  | {
      readonly kind: 'shed'
      readonly requestId: RequestId
      readonly reason: ShedReason
      readonly retryAfterMs?: Ms
      readonly record: DecisionRecord
    }
  /** A bounced request has no second chance: answer with the failure of its last attempt. */
  | { readonly kind: 'fail'; readonly requestId: RequestId; readonly reason: 'upstream_failed' }
  /** A waiter left without an answer being owed (its client went away). */
  | { readonly kind: 'drop'; readonly requestId: RequestId }
  /** A request's story is over: the one record that accounting, log and estimators count. Once per request. */
  | { readonly kind: 'settled'; readonly settlement: Settlement }
  /** Call back with a `tick` at that instant unless something happens sooner; replaces any earlier wish. */
  | { readonly kind: 'wakeAt'; readonly atMs: Ms }
