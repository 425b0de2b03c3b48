/** What workers and the decider say to each other: plain values that survive JSON, instants in machine time. */
import type { ShedReason } from '../core/effects.ts'
import type { BounceCause, GateEvent, PermitId } from '../core/events.ts'
import type { DecisionRecord, ExchangeFacts, Settlement, WithdrawnOutcome } from '../core/records.ts'
import type { ReplicaReport } from '../core/replica.ts'
import type { Offer, ReplicaId } from '../core/request.ts'
import type { TraceFacts } from '../core/trace.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { Home } from '../edge/stored-responses.ts'
import type { EngineKind } from '../engines/adapter.ts'
import type { ErrorCode } from '../errors.ts'
import type { Blame } from '../upstream/ports.ts'

/**
 * A worker's own number for one request, from 1, never given twice. On the link it is the request's only name: the id
 * that a client chose may be used again while an answer about its last request is still on its way.
 */
export type Serial = number

/** What a worker tells the gate of its permits; the rest of the gate's events arise at the decider itself. */
export type PermitEvent = Extract<GateEvent, { kind: 'firstToken' | 'progress' | 'settle' | 'bounce' }>

/** A record without what the worker has: the offer, and the replicas that were not chosen. */
export type SlimRecord = Omit<DecisionRecord, 'offer'>

/** A replica as workers need it; gauges change with each scrape and are left out, routes follow from the engine. */
export interface ReplicaNews {
  readonly report: Omit<ReplicaReport, 'routes' | 'gauges'>
  readonly url: string
  readonly key?: string
  readonly engine: EngineKind
}

/** A worker's exchanges with one replica. */
export interface TrafficSigns {
  readonly replicaId: ReplicaId
  readonly inFlight: number
  readonly awaiting: number
  readonly openSockets: number
  /** Machine time; absent for never, since JSON has no infinity. */
  readonly busySinceMs?: Ms
  readonly lastBytesAtMs?: Ms
}

/** How a worker fares. Counters run from its start. */
export interface WorkerHealth {
  readonly cpuSec: number
  readonly residentBytes: number
  readonly loopLagP99Ms: Ms
  readonly clientConnections: number
  readonly bodyBytes: number
  /** Requests offered to the gate, here or there. */
  readonly requests: number
  /** Those of them that it decided alone, without the decider. */
  readonly aloneRequests: number
}

export type FromWorker =
  /** First on each link. `token` proves that it is a child of the same Sluice. */
  | { readonly kind: 'hello'; readonly worker: number; readonly pid: number; readonly token: string }
  | { readonly kind: 'offer'; readonly serial: Serial; readonly offer: Offer }
  | { readonly kind: 'cancel'; readonly serial: Serial; readonly outcome?: WithdrawnOutcome }
  | { readonly kind: 'event'; readonly event: PermitEvent }
  /** What the log is to say of a request that the decider settles; once for each. */
  | { readonly kind: 'facts'; readonly serial: Serial; readonly exchange: ExchangeFacts }
  /** The end of a request that the decider did not see. */
  | { readonly kind: 'aloneSettled'; readonly settlement: Settlement; readonly exchange: ExchangeFacts }
  | {
      readonly kind: 'bounced'
      readonly replicaId: ReplicaId
      readonly cause: BounceCause
      readonly message: string
    }
  | {
      readonly kind: 'rejected'
      readonly code: ErrorCode
      readonly tenant?: string
      readonly trace?: TraceFacts
    }
  | { readonly kind: 'clamped'; readonly tenant: string; readonly asked: string }
  | { readonly kind: 'fault'; readonly message: string; readonly stack?: string }
  | {
      readonly kind: 'replicaFault'
      readonly replicaId: ReplicaId
      readonly fault: Blame
    }
  /** It brought its first content, or an exchange with it ended well. */
  | { readonly kind: 'replicaWorked'; readonly replicaId: ReplicaId; readonly ended: boolean }
  | { readonly kind: 'traffic'; readonly signs: readonly TrafficSigns[] }
  | { readonly kind: 'stored'; readonly id: string; readonly home: Home }
  | { readonly kind: 'health'; readonly health: WorkerHealth }

export type FromDecider =
  /** First on each link: all replicas there are. */
  | { readonly kind: 'welcome'; readonly replicas: readonly ReplicaNews[] }
  | {
      readonly kind: 'dispatch'
      readonly serial: Serial
      readonly permitId: PermitId
      readonly replicaId: ReplicaId
      readonly attempt: 1 | 2
      readonly record: SlimRecord
    }
  | {
      readonly kind: 'shed'
      readonly serial: Serial
      readonly reason: ShedReason
      readonly retryAfterMs?: Ms
      readonly record: SlimRecord
    }
  | { readonly kind: 'fail'; readonly serial: Serial }
  | { readonly kind: 'replica'; readonly news: ReplicaNews }
  | { readonly kind: 'replicaGone'; readonly replicaId: ReplicaId }
  | {
      readonly kind: 'breakOff'
      readonly replicaId: ReplicaId
      readonly quietMs: Ms
      readonly message: string
    }
  | { readonly kind: 'stored'; readonly id: string; readonly home: Home }
  /** A sign of life, with what load reports to clients say: what is offered fits so many times, once that is known. */
  | { readonly kind: 'beat'; readonly headroom?: Ratio }
