/** What one admission gate is: a pure question about one request on one replica. */
import type { GateName } from '../../core/records.ts'
import type { Ms } from '../../core/units.ts'
import type { Job } from '../job.ts'
import type { Outlook } from '../outlook.ts'

/** What a gate may look at: the replica, the request, and what sending it there would mean. */
export interface Candidate {
  readonly view: Outlook
  readonly job: Job
  readonly uncachedTokens: number
  /**
   * Predicted peak of KV use if admitted, 0 to 1; undefined when the capacity is unknown. Costly: asked last, and with
   * `keptMs` by whoever makes do with a view that old.
   */
  readonly kvPeakRatio: (keptMs?: Ms) => number | undefined
  /** Depth of backlog that is kept in the engine, in tokens. */
  readonly depthTokens: number
  /** Part of each room that this request may take: less than 1 for leftovers, and for who is not believed to be in time. */
  readonly roomRatio: number
  readonly nowMs: number
}

/** True when the candidate may pass. Pure, and each stands alone: a fuller replica never passes what it refused. */
export interface AdmissionGate {
  readonly name: GateName
  passes(candidate: Candidate): boolean
}
