/** The decider's view of exchanges that run in workers: sums and latest instants of what each of them told. */
import type { ReplicaId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { UpstreamStream } from '../upstream/ports.ts'
import type { Traffic } from '../upstream/traffic.ts'
import { OWN_ORIGIN_MS } from './instants.ts'
import type { TrafficSigns } from './wire.ts'

const NEVER = Number.NEGATIVE_INFINITY

/** Asks every worker to end its silent exchanges with a replica. */
export type BreakOff = (replicaId: ReplicaId, quietMs: Ms, message: string) => void

export class ToldTraffic {
  readonly #byWorker = new Map<number, ReadonlyMap<ReplicaId, TrafficSigns>>()
  onBreakOff: BreakOff = () => {}
  /** Permits out at a replica: what has just been dispatched there is not told of yet. */
  permitsAt: (replicaId: ReplicaId) => number = () => 0

  /** What a worker says of all its replicas; replaces what it said before. */
  told(worker: number, signs: readonly TrafficSigns[]): void {
    this.#byWorker.set(worker, new Map(signs.map((sign) => [sign.replicaId, sign])))
  }

  /** The worker is gone, and its sockets with it. */
  forget(worker: number): void {
    this.#byWorker.delete(worker)
  }

  /** The traffic of one replica, always as last told. */
  of(replicaId: ReplicaId): Traffic {
    const signs = (): TrafficSigns[] =>
      [...this.#byWorker.values()].flatMap((told) => told.get(replicaId) ?? [])
    const sum = (of: (sign: TrafficSigns) => number): number =>
      signs().reduce((total, sign) => total + of(sign), 0)
    const permits = () => this.permitsAt(replicaId)
    const own = (machineMs: Ms | undefined): Ms => (machineMs ?? NEVER) - OWN_ORIGIN_MS
    return {
      get inFlight() {
        return Math.max(
          permits(),
          sum(({ inFlight }) => inFlight),
        )
      },
      get awaiting() {
        return sum(({ awaiting }) => awaiting)
      },
      get openSockets() {
        return sum(({ openSockets }) => openSockets)
      },
      get lastBytesAtMs() {
        return Math.max(NEVER, ...signs().map(({ lastBytesAtMs }) => own(lastBytesAtMs)))
      },
      /** The earliest of those that wait: silence is counted from there. */
      get busySinceMs() {
        const waiting = signs().filter(({ awaiting }) => awaiting > 0)
        return waiting.length === 0 ? NEVER : Math.min(...waiting.map(({ busySinceMs }) => own(busySinceMs)))
      },
      open(): UpstreamStream {
        throw new RangeError('exchanges are opened in workers')
      },
      breakOffSilent: (quietMs, message) => this.onBreakOff(replicaId, quietMs, message),
      close: () => Promise.resolve(),
    }
  }
}
