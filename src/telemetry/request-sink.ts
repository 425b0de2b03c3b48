/** Takes requests as they end, with all that is known of each; exporters hang here and cost nothing when there is none. */
import type { DecisionRecord, ExchangeFacts, Settlement } from '../core/records.ts'
import type { TraceFacts } from '../core/trace.ts'

/** One request from its offer to its end. */
export interface EndedRequest {
  readonly settlement: Settlement
  readonly exchange: ExchangeFacts
  /** The decisions made for it, in order; none for a client that left the waiting room. */
  readonly decisions: readonly DecisionRecord[]
}

/** A request that never became an offer. */
export interface RejectedRequest {
  readonly code: string
  /** When it is known. */
  readonly tenant?: string | undefined
  /** Where traces are kept. */
  readonly trace?: TraceFacts | undefined
}

/** No method may throw for what traffic brings. */
export interface RequestSink {
  ended(request: EndedRequest): void
  rejected(request: RejectedRequest): void
}
