/** What is read from the running parts at the moment of a scrape or a question, as plain values. */
import type { OfferedStream } from '../core/demand.ts'
import type { EngineLimits, ReplicaGauges, ReplicaState } from '../core/replica.ts'
import type { TrustState } from '../core/scheduler.ts'
import type { Ms, Tokens } from '../core/units.ts'

/** One replica with what the ledger and the last scrape say of it. */
export interface ReplicaSample {
  readonly id: string
  /** The name for labels and people; never a URL. */
  readonly name: string
  readonly models: readonly string[]
  readonly state: ReplicaState
  readonly generation: number
  readonly limits: EngineLimits
  readonly gauges?: ReplicaGauges
  /** Sockets to it that are open: at work, kept warm, or watching it. */
  readonly connections: number
  readonly ledger: LedgerSample
}

export interface LedgerSample {
  readonly inFlightRequests: number
  readonly prefillingRequests: number
  readonly decodingSequences: number
  readonly backlogTokens: Tokens
  readonly contextTokens: Tokens
}

export interface WaitingSample {
  readonly requests: number
  readonly tokens: Tokens
  readonly bytes: number
}

/** What the traffic side holds beside the books. */
export interface HoldingSample {
  /** Connections of clients, idle ones included. */
  readonly clientConnections: number
  /** Bodies of requests that may still be sent, again or at all. */
  readonly bodyBytes: number
}

export interface TrustSample {
  readonly model: string
  readonly state: TrustState
}

/** How late the event loop ran since the last look. */
export interface LoopLag {
  readonly p50Ms: Ms
  readonly p99Ms: Ms
  readonly maxMs: Ms
}

export interface RuntimeSample {
  readonly loopLag: LoopLag
  readonly cpuSec: number
  readonly residentBytes: number
  readonly startedAtUnixSec: number
}

/** One process that relays, where there are several. Counters run from its start. */
export interface WorkerSample {
  /** Its number, for labels. */
  readonly name: string
  /** It is linked to the process that decides. */
  readonly up: boolean
  readonly restarts: number
  readonly cpuSec: number
  readonly residentBytes: number
  readonly loopLagP99Ms: Ms
  readonly requests: number
  /** Requests that it decided on alone, as the decider was away. */
  readonly aloneRequests: number
}

/** Each is asked at a scrape; none may do I/O. */
export interface SamplePorts {
  readonly replicas: () => readonly ReplicaSample[]
  readonly waiting: () => WaitingSample
  readonly holding: () => HoldingSample
  readonly trust: () => readonly TrustSample[]
  readonly runtime: () => RuntimeSample
  /** How many Sluices share the replicas; default 1. */
  readonly instances?: () => number
  /** Absent or empty where one process does everything. */
  readonly workers?: () => readonly WorkerSample[]
  /** Replicas of the model that would carry such a demand, a fraction; undefined when nobody can say. */
  readonly replicasWanted: (model: string, demand: readonly OfferedStream[]) => number | undefined
}
