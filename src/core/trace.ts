/** What a distributed trace is told of one request: its place in the trace, and instants that only spans need. */
import type { BounceCause } from './events.ts'
import type { ReplicaId } from './request.ts'
import type { Ms } from './units.ts'

/** One attempt at a replica. Each has a span of its own, under which the engine hangs its spans. */
export interface AttemptFacts {
  /** 16 hex digits. */
  readonly spanId: string
  /** With the replica it names the decision that sent it. A gate that decides anew counts from 1 again. */
  readonly attempt: 1 | 2
  readonly replicaId: ReplicaId
  readonly sentAtMs: Ms
  /** Set when it came back before any content. */
  readonly bounce?: { readonly atMs: Ms; readonly cause: BounceCause } | undefined
}

/** Ids are lower-case hex, as W3C Trace Context has them. */
export interface TraceFacts {
  /** 32 hex digits: the client's trace, or a new one. */
  readonly traceId: string
  /** 16 hex digits: our span for the whole request. */
  readonly spanId: string
  /** The client's span, when it sent one. */
  readonly parentSpanId?: string | undefined
  /** Whether its spans are recorded. */
  readonly sampled: boolean
  /** The client's `tracestate`, passed on as it came. */
  readonly tracestate?: string | undefined
  /** The route's path. */
  readonly path: string
  /** When the headers were in. */
  readonly arrivedAtMs: Ms
  /** In the order in which they left. */
  readonly attempts: readonly AttemptFacts[]
}
