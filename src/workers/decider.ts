/** The deciding end of all links: lets workers in by their token, and carries what they tell to gate, fleet and accounts. */
import { timingSafeEqual } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import type { GateEvent } from '../core/events.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import type { HoldingSample, WorkerSample } from '../telemetry/samples.ts'
import type { ManagedFleet } from '../upstream/fleet.ts'
import { Hub, type HubOptions } from './hub.ts'
import { OWN_ORIGIN_MS, shiftTrace } from './instants.ts'
import { LineLink } from './line-link.ts'
import type { Seat } from './seat.ts'
import type { ToldTraffic } from './told-traffic.ts'
import { BEAT_MS } from './uplink.ts'
import type { FromDecider, FromWorker, ReplicaNews, WorkerHealth } from './wire.ts'

export interface DeciderOptions extends HubOptions {
  readonly fleet: Pick<ManagedFleet, 'replica' | 'reports' | 'place'>
  readonly traffic: ToldTraffic
  /** What every worker of this Sluice was given. */
  readonly token: string
  /** How many times what is offered would fit, when it is known. */
  readonly headroom: () => Ratio | undefined
  /** Workers come and go: for the log. */
  readonly onNotice: (event: string, fields: Readonly<Record<string, number | string>>) => void
}

type OfRequest = Extract<FromWorker, { kind: 'offer' | 'cancel' | 'event' | 'facts' | 'aloneSettled' }>

const NO_HEALTH: WorkerHealth = {
  cpuSec: 0,
  residentBytes: 0,
  loopLagP99Ms: 0,
  clientConnections: 0,
  bodyBytes: 0,
  requests: 0,
  aloneRequests: 0,
}
/** A stranger that says nothing is shown the door. */
const GREETING_MS: Ms = 5000

export class Decider {
  readonly hub: Hub
  readonly #options: DeciderOptions
  readonly #server: Server
  readonly #restarts = new Map<number, number>()
  readonly #toldOf = new Map<ReplicaId, string>()
  #stopBeat = () => {}
  #onEmpty = () => {}

  constructor(options: DeciderOptions) {
    this.#options = options
    this.hub = new Hub(options)
    this.#server = createServer((socket) => this.#accept(socket))
    const { traffic, gate } = options
    traffic.permitsAt = (replicaId) => gate.state.replicas.get(replicaId)?.inFlightRequests ?? 0
    traffic.onBreakOff = (replicaId, quietMs, message) =>
      this.hub.broadcast({ kind: 'breakOff', replicaId, quietMs, message })
    this.#beatLater()
  }

  /** The server of the links; its owner has it listen, on loopback. */
  get server(): Server {
    return this.#server
  }

  get underWay(): number {
    return this.hub.underWay
  }

  /** Something happened here: to a replica, to the configuration. */
  tell(event: GateEvent): void {
    this.hub.tell(event)
    if (event.kind === 'replicaChanged') this.#announce(event.replica.replicaId)
    if (event.kind !== 'replicaRemoved') return
    this.#toldOf.delete(event.replicaId)
    this.hub.broadcast({ kind: 'replicaGone', replicaId: event.replicaId })
  }

  /** Every worker that has ever been there, by number. */
  workers(): readonly WorkerSample[] {
    const seats = [...this.hub.seats.values()].sort((a, b) => a.worker - b.worker)
    return seats.map(({ worker, up, health = NO_HEALTH }) => {
      return { name: String(worker), up, restarts: this.#restarts.get(worker) ?? 0, ...health }
    })
  }

  /** What the workers that are there hold together, as last told. */
  holding(): HoldingSample {
    const present = [...this.hub.seats.values()].filter(({ up }) => up)
    const sum = (of: (health: WorkerHealth) => number): number =>
      present.reduce((total, { health = NO_HEALTH }) => total + of(health), 0)
    return {
      clientConnections: sum(({ clientConnections }) => clientConnections),
      bodyBytes: sum(({ bodyBytes }) => bodyBytes),
    }
  }

  /** Resolves when no worker is there any more, at `limitMs` at the latest. */
  async emptied(limitMs: Ms): Promise<void> {
    if (![...this.hub.seats.values()].some(({ up }) => up)) return
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve
      this.#options.clock.after(limitMs, resolve)
    })
  }

  close(): void {
    this.#stopBeat()
    this.#server.close()
    this.hub.close()
  }

  #accept(socket: Socket): void {
    let seat: Seat | undefined
    const link: LineLink<FromDecider, FromWorker> = new LineLink(socket, {
      onMessage: (message) => {
        if (seat !== undefined) this.#heard(seat, message)
        else seat = this.#greet(message, link)
      },
      onClosed: (why) => {
        cancel()
        if (seat !== undefined) this.#lost(seat, why)
      },
    })
    const cancel = this.#options.clock.after(GREETING_MS, () => {
      if (seat === undefined) link.close('it has not said who it is')
    })
  }

  #greet(hello: FromWorker, link: LineLink<FromDecider, FromWorker>): Seat | undefined {
    if (hello.kind !== 'hello' || !isSame(hello.token, this.#options.token)) {
      link.close('it is no worker of this Sluice')
      return undefined
    }
    const { worker, pid } = hello
    const before = this.hub.seats.get(worker)
    if (before !== undefined && before.pid !== pid)
      this.#restarts.set(worker, (this.#restarts.get(worker) ?? 0) + 1)
    const seat = this.hub.seat(worker, pid, link)
    const ids = this.#options.fleet.reports().map(({ replicaId }) => replicaId)
    seat.send({ kind: 'welcome', replicas: ids.flatMap((id) => this.#newsOf(id) ?? []) })
    this.#options.onNotice('worker_joined', { worker, pid })
    return seat
  }

  #lost(seat: Seat, why: string): void {
    const { worker, pid } = seat
    if (this.hub.seats.get(worker) === seat) this.#options.traffic.forget(worker)
    const { waiting, permits } = this.hub.lost(seat)
    this.#options.onNotice('worker_lost', {
      worker,
      pid,
      why,
      ended_waiting: waiting,
      ended_running: permits,
    })
    if (![...this.hub.seats.values()].some(({ up }) => up)) this.#onEmpty()
  }

  #heard(seat: Seat, message: FromWorker): void {
    const { observer, fleet, traffic } = this.#options
    switch (message.kind) {
      case 'hello':
        seat.cut('it has said twice who it is')
        break
      case 'offer':
      case 'cancel':
      case 'event':
      case 'facts':
      case 'aloneSettled':
        this.#heardOfRequest(seat, message)
        break
      case 'bounced':
        observer.onBounced(message.replicaId, message.cause, message.message)
        break
      case 'rejected': {
        const trace = message.trace && shiftTrace(message.trace, -OWN_ORIGIN_MS)
        observer.onRejected(message.code, message.tenant, trace)
        break
      }
      case 'clamped':
        observer.onClamped(message.tenant, message.asked)
        break
      case 'fault':
        observer.onFault(faultOf(message))
        break
      case 'replicaFault':
        fleet.replica(message.replicaId)?.reportFault(message.fault)
        break
      case 'replicaWorked':
        if (message.ended) fleet.replica(message.replicaId)?.reportSuccess()
        else fleet.replica(message.replicaId)?.reportContent()
        break
      case 'traffic':
        traffic.told(seat.worker, message.signs)
        break
      case 'stored':
        this.hub.broadcast(message, seat)
        break
      case 'health':
        seat.health = message.health
        break
      default:
        message satisfies never
    }
  }

  #heardOfRequest(seat: Seat, message: OfRequest): void {
    switch (message.kind) {
      case 'offer':
        this.hub.offered(seat, message)
        break
      case 'cancel':
        this.hub.cancelled(seat, message)
        break
      case 'event':
        this.hub.heard(seat, message.event)
        break
      case 'facts':
        this.hub.facts(seat, message)
        break
      case 'aloneSettled':
        this.hub.aloneSettled(message)
        break
      default:
        message satisfies never
    }
  }

  /** Workers need no gauges, which change with each scrape. */
  #announce(replicaId: ReplicaId): void {
    const news = this.#newsOf(replicaId)
    if (news === undefined) return
    const told = JSON.stringify(news)
    if (this.#toldOf.get(replicaId) === told) return
    this.#toldOf.set(replicaId, told)
    this.hub.broadcast({ kind: 'replica', news })
  }

  #newsOf(replicaId: ReplicaId): ReplicaNews | undefined {
    const { fleet } = this.#options
    const full = fleet.reports().find((report) => report.replicaId === replicaId)
    const place = fleet.place(replicaId)
    if (full === undefined || place === undefined) return undefined
    const { routes: _, gauges: __, ...report } = full
    const { url, key, engine } = place
    return { report, url, engine, ...(key === undefined ? {} : { key }) }
  }

  #beatLater(): void {
    this.#stopBeat = this.#options.clock.after(BEAT_MS, () => {
      const headroom = this.#options.headroom()
      this.hub.broadcast({ kind: 'beat', ...(headroom === undefined ? {} : { headroom }) })
      this.#beatLater()
    })
  }
}

function faultOf({ message, stack }: Extract<FromWorker, { kind: 'fault' }>): Error {
  const error = new Error(message)
  if (stack !== undefined) error.stack = stack
  return error
}

/** Compared in constant time, so that it can't be guessed byte by byte. */
function isSame(offered: string, token: string): boolean {
  const [a, b] = [Buffer.from(offered), Buffer.from(token)]
  return a.length === b.length && timingSafeEqual(a, b)
}
