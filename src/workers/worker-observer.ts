/** A worker's accounts: all of it is told to the decider, which counts and logs for the whole Sluice. */
import type { BounceCause } from '../core/events.ts'
import type { ExchangeFacts, Settlement } from '../core/records.ts'
import type { ReplicaId } from '../core/request.ts'
import type { TraceFacts } from '../core/trace.ts'
import type { EdgeObserver } from '../edge/observer.ts'
import type { ErrorCode } from '../errors.ts'
import { OWN_ORIGIN_MS, shiftTrace } from './instants.ts'
import type { FromWorker } from './wire.ts'

export interface WorkerObserverOptions {
  readonly send: (message: FromWorker) => void
  readonly onSettled: (settlement: Settlement, exchange: ExchangeFacts) => void
  /** Faults go to the worker's own log too: the decider may be part of them. */
  readonly onFault: (error: unknown) => void
}

export class WorkerObserver implements EdgeObserver {
  readonly #options: WorkerObserverOptions

  constructor(options: WorkerObserverOptions) {
    this.#options = options
  }

  /** The decider has the record already, in full. */
  onDecision(): void {}

  onSettled(settlement: Settlement, exchange: ExchangeFacts): void {
    this.#options.onSettled(settlement, exchange)
  }

  onBounced(replicaId: ReplicaId, cause: BounceCause, message: string): void {
    this.#options.send({ kind: 'bounced', replicaId, cause, message })
  }

  onRejected(code: ErrorCode, tenant: string | undefined, trace?: TraceFacts): void {
    this.#options.send({
      ...{ kind: 'rejected', code },
      ...(tenant === undefined ? {} : { tenant }),
      ...(trace === undefined ? {} : { trace: shiftTrace(trace, OWN_ORIGIN_MS) }),
    })
  }

  onClamped(tenant: string, asked: string): void {
    this.#options.send({ kind: 'clamped', tenant, asked })
  }

  /** The decider measures its own decisions; an event costs a worker next to nothing. */
  onDecided(): void {}

  onFault(error: unknown): void {
    this.#options.onFault(error)
    const { message, stack } = error instanceof Error ? error : new Error(String(error))
    this.#options.send({ kind: 'fault', message, ...(stack === undefined ? {} : { stack }) })
  }
}
