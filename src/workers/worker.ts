/** A relay worker put together: an edge on its own sockets whose gate, accounts and replicas are at the decider. */
import type { GateEffect } from '../core/effects.ts'
import { takesWork } from '../core/eligible.ts'
import type { ReplicaReport } from '../core/replica.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Ms, Ratio } from '../core/units.ts'
import { systemClock } from '../edge/clock.ts'
import { Edge } from '../edge/edge.ts'
import type { GatePort } from '../edge/gate-port.ts'
import type { TraceSampler } from '../edge/request-trace.ts'
import type { EdgeSettings } from '../edge/settings.ts'
import { StoredResponses } from '../edge/stored-responses.ts'
import { createTokenRatio } from '../estimate/prompt-tokens.ts'
import { systemClock as timers } from '../upstream/clock.ts'
import { RemoteGate } from './remote-gate.ts'
import { type DeciderPlace, Uplink } from './uplink.ts'
import type { FromDecider, FromWorker, WorkerHealth } from './wire.ts'
import { WorkerFleet } from './worker-fleet.ts'
import { WorkerObserver } from './worker-observer.ts'

export interface WorkerSettings extends EdgeSettings {
  readonly timeouts: EdgeSettings['timeouts'] & { readonly connectMs: Ms }
}

export interface WorkerOptions {
  /** From 1. */
  readonly worker: number
  /** This worker's share of them. */
  readonly settings: WorkerSettings
  /** Decides while the decider is away. */
  readonly alone: GatePort
  /** Where traces are kept. Spans are made by the decider, which has the decisions. */
  readonly sampler?: TraceSampler | undefined
  readonly health: () => Pick<WorkerHealth, 'cpuSec' | 'residentBytes' | 'loopLagP99Ms'>
  /** Once the first decider has told of its replicas: there is something to serve with. */
  readonly onWelcome: () => void
  readonly onNotice: (event: string, fields: Readonly<Record<string, unknown>>) => void
  readonly onFault: (error: unknown) => void
}

const SIGNS_MS: Ms = 500
const HEALTH_MS: Ms = 1000

export class Worker {
  readonly edge: Edge
  readonly gate: RemoteGate
  readonly observer: WorkerObserver
  readonly #options: WorkerOptions
  readonly #uplink: Uplink
  readonly #fleet: WorkerFleet
  readonly #stored: StoredResponses
  readonly #stops: (() => void)[]
  #settings: WorkerSettings
  /** As the decider last knew it. */
  #headroom: Ratio | undefined

  constructor(options: WorkerOptions) {
    const { worker, settings, alone, sampler, onFault } = options
    this.#options = options
    this.#settings = settings
    const send = (message: FromWorker) => this.#uplink.send(message)
    this.gate = new RemoteGate({
      alone,
      carryOut: (effects) => this.#carryOut(effects),
      nowMs: systemClock.nowMs,
    })
    this.observer = new WorkerObserver({
      send,
      onSettled: (settlement, exchange) => this.gate.settled(settlement, exchange),
      onFault,
    })
    this.#stored = new StoredResponses((id, home) => send({ kind: 'stored', id, home }))
    this.#fleet = new WorkerFleet({
      connectTimeoutMs: () => this.#settings.timeouts.connectMs,
      send,
      onReport: (replica: ReplicaReport) => this.edge.dispatcher.tell({ kind: 'replicaChanged', replica }),
      onRemoved: (replicaId: ReplicaId) => this.edge.dispatcher.tell({ kind: 'replicaRemoved', replicaId }),
    })
    this.edge = new Edge({
      settings,
      gate: this.gate,
      fleet: this.#fleet,
      clock: systemClock,
      observer: this.observer,
      ratio: createTokenRatio(),
      rng: Math.random,
      ready: () => this.#fleet.reports().some(takesWork),
      stored: this.#stored,
      sampler,
      headroom: () => this.#headroom,
    })
    this.#uplink = new Uplink({
      worker,
      clock: systemClock,
      onUp: (tell) => this.#up(tell),
      onMessage: (message) => this.#heard(message),
      onDown: (why) => this.#down(why),
    })
    this.#stops = [
      timers.every(SIGNS_MS, () => send({ kind: 'traffic', signs: this.#fleet.signs() })),
      timers.every(HEALTH_MS, () => send({ kind: 'health', health: this.#health() })),
    ]
  }

  goTo(place: DeciderPlace): void {
    this.#uplink.goTo(place)
  }

  /** From now on requests come in under these; those under way keep theirs. */
  configure(settings: WorkerSettings): void {
    this.#settings = settings
    this.edge.configure(settings)
  }

  /** Ends what is under way at once, tells what is left to tell, and closes every socket but those of the server. */
  async close(): Promise<void> {
    this.edge.drain.now()
    await this.edge.drain.begin(0)
    this.edge.dispatcher.close()
    for (const stop of this.#stops) stop()
    await this.#uplink.close()
    await this.#fleet.close()
  }

  /** A fault with one answer must not end the link, which brings those of all others. */
  #carryOut(effects: readonly GateEffect[]): void {
    try {
      this.edge.dispatcher.carryOut(effects)
    } catch (error) {
      this.observer.onFault(error)
    }
  }

  #health(): WorkerHealth {
    const { clientConnections, buffers } = this.edge
    const holding = { clientConnections, bodyBytes: buffers.heldBytes }
    return { ...this.#options.health(), ...holding, ...this.gate.counts }
  }

  #up(send: (message: FromWorker) => void): void {
    this.gate.connected(send)
    send({ kind: 'traffic', signs: this.#fleet.signs() })
    send({ kind: 'health', health: this.#health() })
    this.#options.onWelcome()
  }

  #down(why: string): void {
    this.#headroom = undefined
    this.#options.onNotice('decider_lost', { why, under_way: this.edge.underWay })
    this.gate.disconnected()
  }

  #heard(message: FromDecider): void {
    switch (message.kind) {
      case 'welcome':
        this.#fleet.welcome(message.replicas)
        break
      case 'dispatch':
      case 'shed':
      case 'fail':
        this.gate.answered(message)
        break
      case 'replica':
        this.#fleet.update(message.news)
        break
      case 'replicaGone':
        this.#fleet.remove(message.replicaId)
        break
      case 'breakOff':
        this.#fleet.breakOff(message.replicaId, message.quietMs, message.message)
        break
      case 'stored':
        this.#stored.keep(message.id, message.home)
        break
      case 'beat':
        this.#headroom = message.headroom
        break
      default:
        message satisfies never
    }
  }
}
