/** The two records that log, /decisions, console, explain and replay are fed from: why, and how it ended. */
import type { ShedReason } from './effects.ts'
import type { PermitId, Usage } from './events.ts'
import type { Offer, ReplicaId, RequestId } from './request.ts'
import type { TraceFacts } from './trace.ts'
import type { Ms, Ratio, Tokens } from './units.ts'

export const RECORD_VERSION = 1

/** The numbers that a decision saw of one replica. */
export interface CandidateView {
  readonly replicaId: ReplicaId
  /** Median prediction of TTFT, from receipt to first token, in ms; absent where nothing predicts. */
  readonly predictedTtftMs?: Ms
  /** The bound that 80 % of requests keep, in ms. */
  readonly boundTtftMs?: Ms
  readonly uncachedTokens: Tokens
  readonly backlogTokens: Tokens
  readonly runningSequences: number
  /** Predicted peak of KV use if admitted, over the capacity. */
  readonly kvPeakRatio?: Ratio
  /** Prefill stall that the running streams there can still bear, in ms. */
  readonly bearableStallMs?: Ms
  /** Predicted decode step with this request running, in ms. */
  readonly decodeStepMs?: Ms
  /** The gate that refused this replica, or `ok`. */
  readonly gate: GateName | 'ok'
}

export type GateName = 'state' | 'slack' | 'steady' | 'kv' | 'depth' | 'slots'

export type Verdict =
  | { readonly kind: 'admit'; readonly replicaId: ReplicaId; readonly permitId: PermitId }
  | { readonly kind: 'wait'; readonly untilAtMs: Ms }
  | { readonly kind: 'shed'; readonly reason: ShedReason; readonly retryAfterMs?: Ms }

/** One decision with what it saw. Re-deciding a recorded run gives the same bytes. */
export interface DecisionRecord {
  readonly version: typeof RECORD_VERSION
  readonly atMs: Ms
  readonly offer: Offer
  readonly attempt: 1 | 2
  readonly waitedMs: Ms
  readonly trusted: boolean
  readonly candidates: readonly CandidateView[]
  readonly verdict: Verdict
  /** In shadow mode: what enforcing would have done. */
  readonly wouldHave?: Verdict
  readonly configDigest: string
}

/** How a permit's stream can end, as its relay sees it. */
const SETTLE_OUTCOMES = [
  /** Ran to its own end. */
  'completed',
  /** Ended without its end marker, or with an error event, after content. */
  'truncated',
  /** Broke before content and got no second chance. */
  'upstream_failed',
  'upstream_timeout',
  'client_left',
  /** The engine's own 4xx: the client's fault. */
  'client_error',
  /** We ended it while shutting down. */
  'draining',
] as const

export type SettleOutcome = (typeof SETTLE_OUTCOMES)[number]

/** How a request's story can end: as its permit's stream did, or without a permit. */
export const OUTCOMES = [...SETTLE_OUTCOMES, 'shed', 'cancelled'] as const

/** How a request ends that waits no longer though nobody has decided: its client has left, or we end it. */
export type WithdrawnOutcome = 'cancelled' | 'draining' | 'upstream_timeout'

/** What the relay reports when it gives a permit back. Instants are absolute. */
export interface SettleReport {
  readonly outcome: SettleOutcome
  readonly endedAtMs: Ms
  readonly firstTokenAtMs?: Ms
  readonly lastTokenAtMs?: Ms
  readonly contentEvents: number
  readonly usage?: Usage
  /** The client took bytes so slowly that the gaps are its own. */
  readonly slowReader?: boolean
  /** The type that the engine gave an error event inside a stream, cut short. */
  readonly engineError?: string
  /** Frames too long to be looked into; each was taken for one content event. */
  readonly oversizedFrames?: number
}

/** Whether a request counts and how it was judged; `slo/judge` alone makes these. */
export interface SloVerdict {
  readonly kind: 'good' | 'bad' | 'excluded'
  /** Why it is bad or excluded, e.g. `ttft`, `tpot`, `shed`, `failed`, `client_error`. */
  readonly cause?: string
  /** Single indicators; undefined when one does not apply to this request. */
  readonly ttftGood?: boolean
  readonly tpotGood?: boolean
  readonly e2eGood?: boolean
}

/** Everything a verdict depends on; the input of `slo/judge`. */
export interface JudgeFacts {
  readonly offer: Offer
  readonly outcome: Settlement['outcome']
  readonly shedReason?: ShedReason
  /** Receipt of the last body byte to the end of the story, in ms. */
  readonly e2eMs: Ms
  readonly ttftMs?: Ms
  readonly tpotMs?: Ms
  readonly promptTokens: Tokens
  readonly outputTokens: Tokens
  readonly slowReader: boolean
}

/** The one function that judges; handed to the gate so that live traffic and simulator share it. */
export type Judge = (facts: JudgeFacts) => SloVerdict

/** What the log tells of the exchange with the client beside the settlement; nothing is decided or judged by it. */
export interface ExchangeFacts {
  /** The HTTP status that the client got; absent when it left before one. */
  readonly status?: number | undefined
  /** Why the generation ended, in the engine's word. */
  readonly finishReason?: string | undefined
  /** The trace that it belongs to: the client's, as its `traceparent` names it, or a new one where traces are kept. */
  readonly traceId?: string | undefined
  /** Where traces are kept: its place in its trace. */
  readonly trace?: TraceFacts | undefined
}

/** The end of one request's story: timings, tokens and verdict. Written once per request. */
export interface Settlement {
  readonly version: typeof RECORD_VERSION
  readonly requestId: RequestId
  readonly offer: Offer
  readonly outcome: (typeof OUTCOMES)[number]
  readonly shedReason?: ShedReason
  readonly replicaId?: ReplicaId
  readonly attempts: number
  readonly queueMs: Ms
  readonly ttftMs?: Ms
  readonly tpotMs?: Ms
  readonly e2eMs: Ms
  readonly promptTokens: Tokens
  readonly outputTokens: Tokens
  readonly countedBy: 'usage' | 'events' | 'none'
  /** Prompt tokens that the engine says it found in its prefix cache. */
  readonly cachedTokens?: Tokens
  readonly predictedTtftMs?: Ms
  readonly engineError?: string
  readonly oversizedFrames?: number
  readonly verdict: SloVerdict
}
