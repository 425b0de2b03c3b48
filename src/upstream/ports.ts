/** How the edge reaches a replica: the only names of this folder that the edge may use. */
import type { ReplicaGauges, ReplicaReport } from '../core/replica.ts'
import type { PoolId, ReplicaId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { EngineAdapter } from '../engines/adapter.ts'

/** What is sent to a replica. `headers` is an allow-list made by the caller; host and content-length are added. */
export interface OpenRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Pieces of the body in order; nothing is copied. */
  readonly body: readonly Uint8Array[]
  /**
   * Limits of this exchange, in ms: until the first byte of the answer's body (engines send their headers before they
   * schedule anything), and between bytes of it. Neither runs while the stream is paused.
   */
  readonly firstByteTimeoutMs: Ms
  readonly betweenBytesTimeoutMs: Ms
}

/** Where an exchange broke. `sent` says whether a byte of the request had left: if not, a retry is always safe. */
export interface UpstreamFault {
  readonly phase: 'connect' | 'headers' | 'body'
  /** `silent`: broken off by us, since nothing showed life in the engine; `aborted`: by its owner. */
  readonly cause: 'refused' | 'reset' | 'silent' | 'timeout' | 'protocol' | 'aborted'
  readonly sent: boolean
  readonly message: string
}

/** A fault that shows in an answer and not in its exchange. */
export interface ToldFault {
  readonly cause: 'status' | 'no_progress'
  readonly message: string
}

/** What a breaker is told. `suspect`: another replica has failed with the request, which may be what fails. */
export type Blame = (UpstreamFault | ToldFault) & { readonly suspect?: boolean }

/** Exactly one of `onEnd` and `onFault` is called, once, and nothing after it. Never called inside `open`. */
export interface UpstreamHandler {
  onHeaders(status: number, headers: Readonly<Record<string, string | string[]>>): void
  /** Bytes of the body as they came, chunk framing removed. */
  onBytes(bytes: Uint8Array): void
  onEnd(): void
  onFault(fault: UpstreamFault): void
}

/** One exchange under way. */
export interface UpstreamStream {
  /** Stops reading, so that the engine feels the client's pace. */
  pause(): void
  resume(): void
  /** Closes the upstream socket now; `onFault` with cause `aborted` follows. Idempotent. */
  abort(): void
}

/** One replica as the edge sees it. */
export interface Replica {
  readonly id: ReplicaId
  /** The name shown to clients and in labels; never a URL. */
  readonly name: string
  readonly adapter: EngineAdapter
  open(request: OpenRequest, handler: UpstreamHandler): UpstreamStream
  /** A fault of the replica itself, for the breaker (client aborts, 429 and 503 are none). */
  reportFault(fault: Blame): void
  /** An exchange that brought its first content, for the ramp. */
  reportContent(): void
  /** An exchange that ended without a fault of the replica, for the breaker; none of a request that is suspect. */
  reportSuccess(): void
}

/** All replicas by model. Changes are told as reports, which the dispatcher hands to the gate. */
export interface Fleet {
  replica(id: ReplicaId): Replica | undefined
  /** Reports of all replicas that serve the pool now. */
  reports(pool?: PoolId): readonly ReplicaReport[]
  gauges(id: ReplicaId): ReplicaGauges | undefined
  /** Upstream sockets open now, of one replica or of all; idle ones included. */
  openSockets(id?: ReplicaId): number
  close(): Promise<void>
}
