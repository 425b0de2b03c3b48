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
  /** No decider speaks of them any more, or under other names; something may still run there. */
  readonly #retired = new Set<WorkerReplica>()
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

  /** What the state of replicas follows from. Asked all the time, so what is over is closed here. */
  signs(): readonly TrafficSigns[] {
    for (const retired of this.#retired) if (retired.connection.inFlight === 0) this.#close(retired)
    const all = [...this.#replicas.values()].map(({ signs }) => signs)
    return all.filter(({ openSockets, lastBytesAtMs }) => openSockets > 0 || lastBytesAtMs !== undefined)
  }

  /**
   * All that there are, from a decider that may be a new one: it may count replicas anew, and not have found all of them
   * yet. One that is reached as before keeps its sockets, whatever its name; elsewhere what runs goes on to its end.
   */
  welcome(all: readonly ReplicaNews[]): void {
    const present = new Map(all.map((news) => [news.report.replicaId, news]))
    for (const replica of [...this.#replicas.values()]) {
      const news = present.get(replica.id)
      if (news === undefined || !isSamePlace(replica.news, news)) this.#retire(replica)
    }
    for (const news of all) this.update(news)
  }

  /** A replica came or changed. One that is reached as before keeps its sockets and what runs on them. */
  update(news: ReplicaNews): void {
    const { replicaId } = news.report
    const known = this.#replicas.get(replicaId)
    const stays = known !== undefined && isSamePlace(known.news, news)
    if (known !== undefined && !stays) this.#retire(known)
    const connection = stays ? known.connection : (this.#takeBack(news) ?? this.#connect(news))
    const replica = new WorkerReplica(news, connection, (message) => {
      // By that name the decider may mean another one by now.
      if (this.#replicas.get(replicaId)?.connection === connection) this.#options.send(message)
    })
    this.#replicas.set(replicaId, replica)
    this.#options.onReport(replica.report)
  }

  /** It is gone for good: what still runs there ends. */
  remove(replicaId: ReplicaId): void {
    const replica = this.#replicas.get(replicaId)
    if (replica === undefined) return
    this.#retire(replica)
    this.#close(replica)
  }

  breakOff(replicaId: ReplicaId, quietMs: Ms, message: string): void {
    this.#replicas.get(replicaId)?.connection.breakOffSilent(quietMs, message)
  }

  async close(): Promise<void> {
    for (const id of [...this.#replicas.keys()]) this.remove(id)
    for (const retired of this.#retired) this.#close(retired)
    await Promise.all(this.#closing)
  }

  /** Nothing new goes there. */
  #retire(replica: WorkerReplica): void {
    this.#replicas.delete(replica.id)
    this.#retired.add(replica)
    this.#options.onRemoved(replica.id)
  }

  #close(retired: WorkerReplica): void {
    this.#retired.delete(retired)
    const closing: Promise<void> = retired.connection.close().finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }

  #takeBack(news: ReplicaNews): Connection | undefined {
    for (const retired of this.#retired) {
      if (!isSamePlace(retired.news, news)) continue
      this.#retired.delete(retired)
      return retired.connection
    }
    return undefined
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
