/** The replicas of a worker: its own sockets to each, and what the decider says of their state. */
import type { ReplicaReport } from '../core/replica.ts'
import type { PoolId, ReplicaId } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { EngineAdapter } from '../engines/adapter.ts'
import { engineAdapter } from '../engines/registry.ts'
import { type Clock, systemClock } from '../upstream/clock.ts'
import { Connection } from '../upstream/connection.ts'
import type { Blame, OpenRequest, Replica, UpstreamHandler, UpstreamStream } from '../upstream/ports.ts'
import { OWN_ORIGIN_MS } from './instants.ts'
import type { FromWorker, ReplicaNews, TrafficSigns } from './wire.ts'

export interface WorkerFleetOptions {
  readonly connectTimeoutMs: () => Ms
  readonly send: (message: FromWorker) => void
  /** For the gate of this worker, which decides when the decider is away. */
  readonly onReport: (report: ReplicaReport) => void
  readonly onRemoved: (replicaId: ReplicaId) => void
  readonly clock?: Clock
}

class WorkerReplica implements Replica {
  readonly id: ReplicaId
  readonly name: string
  readonly adapter: EngineAdapter
  readonly news: ReplicaNews
  readonly connection: Connection
  readonly report: ReplicaReport
  readonly #send: (message: FromWorker) => void

  constructor(news: ReplicaNews, connection: Connection, send: (message: FromWorker) => void) {
    this.id = news.report.replicaId
    this.name = this.id
    this.news = news
    this.adapter = engineAdapter(news.engine)
    this.report = { ...news.report, routes: new Set(this.adapter.routes) }
    this.connection = connection
    this.#send = send
  }

  open(request: OpenRequest, handler: UpstreamHandler): UpstreamStream {
    return this.connection.open(request, handler)
  }

  reportFault(fault: Blame): void {
    if (fault.cause !== 'aborted') this.#send({ kind: 'replicaFault', replicaId: this.id, fault })
  }

  reportContent(): void {
    this.#send({ kind: 'replicaWorked', replicaId: this.id, ended: false })
  }

  reportSuccess(): void {
    this.#send({ kind: 'replicaWorked', replicaId: this.id, ended: true })
  }

  get signs(): TrafficSigns {
    const { inFlight, awaiting, openSockets, busySinceMs, lastBytesAtMs } = this.connection
    return {
      replicaId: this.id,
      inFlight,
      awaiting,
      openSockets,
      ...(Number.isFinite(busySinceMs) ? { busySinceMs: busySinceMs + OWN_ORIGIN_MS } : {}),
      ...(Number.isFinite(lastBytesAtMs) ? { lastBytesAtMs: lastBytesAtMs + OWN_ORIGIN_MS } : {}),
    }
  }
}

export class WorkerFleet {
  readonly #options: WorkerFleetOptions
  readonly #replicas = new Map<ReplicaId, WorkerReplica>()
  readonly #closing = new Set<Promise<void>>()

  constructor(options: WorkerFleetOptions) {
    this.#options = options
  }

  replica(id: ReplicaId): Replica | undefined {
    return this.#replicas.get(id)
  }

  reports(pool?: PoolId): readonly ReplicaReport[] {
    const reports = [...this.#replicas.values()].map(({ report }) => report)
    return pool === undefined ? reports : reports.filter(({ pools }) => pools.includes(pool))
  }

  /** What the state of replicas follows from. */
  signs(): readonly TrafficSigns[] {
    const all = [...this.#replicas.values()].map(({ signs }) => signs)
    return all.filter(({ openSockets, lastBytesAtMs }) => openSockets > 0 || lastBytesAtMs !== undefined)
  }

  /** All that there are, from a decider that may be a new one. */
  welcome(all: readonly ReplicaNews[]): void {
    const present = new Set(all.map(({ report }) => report.replicaId))
    for (const id of [...this.#replicas.keys()]) if (!present.has(id)) this.remove(id)
    for (const news of all) this.update(news)
  }

  /** A replica came or changed. One that is reached as before keeps its sockets and what runs on them. */
  update(news: ReplicaNews): void {
    const { replicaId } = news.report
    const known = this.#replicas.get(replicaId)
    const stays = known !== undefined && isSamePlace(known.news, news)
    if (known !== undefined && !stays) this.remove(replicaId)
    const connection = stays ? known.connection : this.#connect(news)
    const replica = new WorkerReplica(news, connection, this.#options.send)
    this.#replicas.set(replicaId, replica)
    this.#options.onReport(replica.report)
  }

  /** It is gone for good: what still runs there ends. */
  remove(replicaId: ReplicaId): void {
    const replica = this.#replicas.get(replicaId)
    if (replica === undefined) return
    this.#replicas.delete(replicaId)
    const closing: Promise<void> = replica.connection.close().finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
    this.#options.onRemoved(replicaId)
  }

  breakOff(replicaId: ReplicaId, quietMs: Ms, message: string): void {
    this.#replicas.get(replicaId)?.connection.breakOffSilent(quietMs, message)
  }

  async close(): Promise<void> {
    for (const id of [...this.#replicas.keys()]) this.remove(id)
    await Promise.all(this.#closing)
  }

  #connect({ url, key }: ReplicaNews): Connection {
    const connectTimeoutMs = this.#options.connectTimeoutMs()
    const options = { url, connectTimeoutMs, ...(key === undefined ? {} : { key }) }
    return new Connection(options, this.#options.clock ?? systemClock)
  }
}

function isSamePlace(a: ReplicaNews, b: ReplicaNews): boolean {
  return a.url === b.url && a.key === b.key && a.engine === b.engine
}
