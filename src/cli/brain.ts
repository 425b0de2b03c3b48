/** What decides and keeps the accounts: gate, fleet and observer wired together, for whatever front brings the requests. */
import type { Config } from '../config/config.ts'
import { takesWork } from '../core/eligible.ts'
import type { GateEvent } from '../core/events.ts'
import type { Gate } from '../core/gate.ts'
import type { ReplicaReport, ReplicaState } from '../core/replica.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { Ms } from '../core/units.ts'
import { systemClock } from '../edge/clock.ts'
import type { TraceSampler } from '../edge/request-trace.ts'
import type { Log } from '../telemetry/log.ts'
import { createObserver, type Observer } from '../telemetry/observer.ts'
import type { RequestSink } from '../telemetry/request-sink.ts'
import { type RuntimeMonitor, startRuntimeMonitor } from '../telemetry/runtime.ts'
import type { HoldingSample, SamplePorts, WorkerSample } from '../telemetry/samples.ts'
import { createFleet, type ManagedFleet } from '../upstream/fleet.ts'
import type { Traffic } from '../upstream/traffic.ts'
import { createGateOf, gateSettings, rolesFor } from './gate-parts.ts'
import { loadedFacts, samplePorts, sloCatalog } from './samples.ts'
import { replayInThread, ShadowReplay } from './shadow-replay.ts'
import { packageVersion } from './terminal.ts'

/** Where requests come from: an edge in this process, or workers. */
export interface Front {
  /** Hands the gate an event of the rim, and carries out what it wants. */
  tell(event: GateEvent): void
  configure(config: Config): void
  /** What it holds beside the books. */
  holding(): HoldingSample
  workers?(): readonly WorkerSample[]
  /** Ends what is under way at once, and stops. */
  close(): Promise<void>
}

/** Where OpenTelemetry is turned on: what it wants to know. */
export interface TelemetryPorts {
  readonly sampler?: TraceSampler | undefined
  readonly sink: RequestSink
}

export interface BrainPorts {
  /** Where the exchanges of a replica run, when not in this process. */
  readonly traffic?: (replicaId: ReplicaId) => Traffic
  readonly telemetry?: TelemetryPorts | undefined
  /** How often this process looks at its event loop, in ms. */
  readonly lookEveryMs?: Ms
}

export class Brain {
  readonly gate: Gate
  /** The one that learns and predicts: active in enforce, advising in shadow, absent when off. */
  predictor: Scheduler | undefined
  readonly observer: Observer
  readonly fleet: ManagedFleet
  readonly samples: SamplePorts
  /** Estimates what enforcing would attain, while a shadow watches. */
  readonly shadow: ShadowReplay = this.#shadowReplay()
  readonly #monitor: RuntimeMonitor
  readonly #states = new Map<ReplicaId, ReplicaState>()
  /** The fleet tells of its first replicas while it is being built, before there is a front to tell. */
  readonly #early: ReplicaReport[] = []
  #front: Front | undefined
  #config: Config

  constructor(config: Config, log: Log, { traffic, telemetry, lookEveryMs }: BrainPorts = {}) {
    this.#config = config
    this.#monitor = startRuntimeMonitor(lookEveryMs)
    const roles = rolesFor(config, undefined)
    const gate = createGateOf(roles, config)
    this.gate = gate
    this.predictor = roles.predictor
    this.samples = samplePorts({
      gate,
      predictor: () => this.predictor,
      fleet: () => this.fleet,
      config: () => this.#config,
      monitor: this.#monitor,
      holding: () => this.#front?.holding() ?? { clientConnections: 0, bodyBytes: 0 },
      workers: () => this.#front?.workers?.() ?? [],
    })
    this.observer = createObserver({
      catalog: sloCatalog(config),
      ports: this.samples,
      build: { version: packageVersion(), nodeVersion: process.version },
      log,
      predictionQuantile: '0.5',
      nowMs: systemClock.nowMs,
      unixMs: Date.now,
      onCounted: (settlement) => this.shadow.note(settlement),
      replicaName: (id) => this.fleet.replica(id)?.name ?? id,
      sink: telemetry?.sink,
    })
    this.fleet = createFleet({
      config,
      onReport: (report) => this.#reported(report),
      onRemoved: (replicaId) => this.#removed(replicaId),
      onNotice: (level, message, replica) => log.line(level, 'fleet', { replica, message }),
      ...(traffic === undefined ? {} : { traffic }),
    })
  }

  /** Requests come from that front from now on. Call it once. */
  attach(front: Front): void {
    this.#front = front
    for (const report of this.#early.splice(0)) this.#reported(report)
    this.observer.onLoaded(loadedFacts(this.#config))
  }

  /** The mode in force. */
  get mode(): Config['mode'] {
    return this.#config.mode
  }

  get config(): Config {
    return this.#config
  }

  /** Models without a replica that takes work. */
  downModels(): readonly string[] {
    return this.#config.models
      .map(({ name }) => name)
      .filter((name) => !this.fleet.reports(name).some(takesWork))
  }

  /** Some model has a replica that takes work. */
  get isReady(): boolean {
    return this.downModels().length < this.#config.models.length
  }

  /** Puts a checked configuration into service. What is under way keeps the one it came in under. */
  apply(config: Config, changes: readonly string[] = []): void {
    if (config.mode !== this.mode) {
      const { scheduler, advisor, predictor } = rolesFor(config, this.predictor)
      this.gate.adopt(scheduler, advisor)
      this.predictor = predictor
    }
    this.#config = config
    this.#front?.configure(config)
    this.#front?.tell({ kind: 'configured', settings: gateSettings(config) })
    this.fleet.update(config)
    this.observer.onLoaded(loadedFacts(config), { changes })
  }

  /** Stops everything but the listening sockets, which are their owner's. Ends what is under way at once. */
  async close(): Promise<void> {
    await this.#front?.close()
    await this.fleet.close()
    this.#monitor.close()
    this.observer.close()
  }

  #shadowReplay(): ShadowReplay {
    return new ShadowReplay({
      config: () => this.#config,
      nowMs: systemClock.nowMs,
      run: replayInThread,
      onEstimate: (estimate) => this.observer.onEstimate(estimate),
      onFault: (error) => this.observer.onFault(error),
    })
  }

  #reported(report: ReplicaReport): void {
    if (this.#front === undefined) {
      this.#early.push(report)
      return
    }
    const from = this.#states.get(report.replicaId)
    this.#states.set(report.replicaId, report.state)
    const name = this.fleet.replica(report.replicaId)?.name ?? report.replicaId
    if (from !== report.state) this.observer.onReplicaState(name, from, report.state)
    this.#front.tell({ kind: 'replicaChanged', replica: report })
  }

  #removed(replicaId: ReplicaId): void {
    this.#states.delete(replicaId)
    this.#front?.tell({ kind: 'replicaRemoved', replicaId })
  }
}
