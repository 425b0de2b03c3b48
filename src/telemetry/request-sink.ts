/** Takes requests as they end, with all that is known of each; exporters hang here and cost nothing when there is none. */
import type { DecisionRecord, ExchangeFacts, Settlement } from '../core/records.ts'
import type { TraceFacts } from '../core/trace.ts'

/** One request from its offer to its end. */
export interface EndedRequest {
  readonly settlement: Settlement
  readonly exchange: ExchangeFacts
  /** The last decision made for it; a client that left the waiting room has none. */
  readonly decision?: DecisionRecord | undefined
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
