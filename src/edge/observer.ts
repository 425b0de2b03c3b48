/** What the edge tells whoever keeps accounts: decisions, ends, refusals and its own faults. */
import type { BounceCause } from '../core/events.ts'
import type { DecisionRecord, ExchangeFacts, Settlement } from '../core/records.ts'
import type { ReplicaId } from '../core/request.ts'
import type { TraceFacts } from '../core/trace.ts'
import type { Ms } from '../core/units.ts'
import type { ErrorCode } from '../errors.ts'

export interface EdgeObserver {
  /** A dispatch or a shed, with what it saw. */
  onDecision(record: DecisionRecord): void
  /** The end of a request's story, once. */
  onSettled(settlement: Settlement, exchange: ExchangeFacts): void
  /** An attempt that came back before content. */
  onBounced(replicaId: ReplicaId, cause: BounceCause, message: string): void
  /** A request that never became an offer. `tenant` when it was known, `trace` where traces are kept. */
  onRejected(code: ErrorCode, tenant: string | undefined, trace?: TraceFacts): void
  /** A class that its tenant may not use was asked for. */
  onClamped(tenant: string, asked: string): void
  /** One event with all its effects. */
  onDecided(durationMs: Ms): void
  /** A fault of ours: to be logged, never to be hidden. */
  onFault(error: unknown): void
}
