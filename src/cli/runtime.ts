/** Puts one Sluice together: gate, fleet, edge and observer, wired and not yet listening. */
import type { Config } from '../config/config.ts'
import { takesWork } from '../core/eligible.ts'
import type { Gate } from '../core/gate.ts'
import type { ReplicaReport, ReplicaState } from '../core/replica.ts'
import type { ReplicaId } from '../core/request.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { systemClock } from '../edge/clock.ts'
import { Edge } from '../edge/edge.ts'
import type { TraceSampler } from '../edge/request-trace.ts'
import { createTokenRatio } from '../estimate/prompt-tokens.ts'
import type { Log } from '../telemetry/log.ts'
import { createObserver, type Observer } from '../telemetry/observer.ts'
import type { RequestSink } from '../telemetry/request-sink.ts'
import { type RuntimeMonitor, startRuntimeMonitor } from '../telemetry/runtime.ts'
import type { SamplePorts } from '../telemetry/samples.ts'
import { createFleet, type ManagedFleet } from '../upstream/fleet.ts'
import { createGateOf, gateSettings, rolesFor } from './gate-parts.ts'
import { loadedFacts, samplePorts, sloCatalog } from './samples.ts'
import { replayInThread, ShadowReplay } from './shadow-replay.ts'
import { packageVersion } from './terminal.ts'

/** Where OpenTelemetry is turned on: what it wants to know. */
export interface TelemetryPorts {
  readonly sampler?: TraceSampler | undefined
  readonly sink: RequestSink
}

export class Runtime {
  readonly gate: Gate
  /** The one that learns and predicts: active in enforce, advising in shadow, absent when off. */
  predictor: Scheduler | undefined
  readonly observer: Observer
  readonly fleet: ManagedFleet
  readonly edge: Edge
  readonly samples: SamplePorts
  /** Estimates what enforcing would attain, while a shadow watches. */
  readonly shadow: ShadowReplay = this.#shadowReplay()
  readonly #monitor: RuntimeMonitor = startRuntimeMonitor()
  readonly #states = new Map<ReplicaId, ReplicaState>()
  #config: Config

  constructor(config: Config, log: Log, telemetry?: TelemetryPorts) {
    this.#config = config
    const roles = rolesFor(config, undefined)
    this.gate = createGateOf(roles, config)
    this.predictor = roles.predictor
    this.samples = samplePorts({
      gate: this.gate,
      predictor: () => this.predictor,
      fleet: () => this.fleet,
      edge: () => this.edge,
      config: () => this.#config,
      monitor: this.#monitor,
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
    // The fleet tells of its first replicas while it is being built, before there is an edge to tell.
    const early: ReplicaReport[] = []
    let onReport = (report: ReplicaReport): void => void early.push(report)
    this.fleet = createFleet({
      config,
      onReport: (report) => onReport(report),
      onRemoved: (replicaId) => this.#removed(replicaId),
      onNotice: (level, message, replica) => log.line(level, 'fleet', { replica, message }),
    })
    this.edge = new Edge({
      settings: config,
      gate: this.gate,
      fleet: this.fleet,
      clock: systemClock,
      observer: this.observer,
      ratio: createTokenRatio(),
      rng: Math.random,
      ready: () => this.downModels().length < this.#config.models.length,
      sampler: telemetry?.sampler,
      headroom: () => this.observer.weight.headroom,
    })
    onReport = (report) => this.#reported(report)
    for (const report of early) this.#reported(report)
    this.observer.onLoaded(loadedFacts(config))
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

  /** Puts a checked configuration into service. What is under way keeps the one it came in under. */
  apply(config: Config, changes: readonly string[] = []): void {
    if (config.mode !== this.mode) {
      const { scheduler, advisor, predictor } = rolesFor(config, this.predictor)
      this.gate.adopt(scheduler, advisor)
      this.predictor = predictor
    }
    this.#config = config
    this.edge.configure(config)
    this.edge.dispatcher.tell({ kind: 'configured', settings: gateSettings(config) })
    this.fleet.update(config)
    this.observer.onLoaded(loadedFacts(config), { changes })
  }

  /** Stops everything but the listening sockets, which are their owner's. Ends what is under way at once. */
  async close(): Promise<void> {
    this.edge.drain.now()
    await this.edge.drain.begin(0)
    this.edge.dispatcher.close()
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
    const from = this.#states.get(report.replicaId)
    this.#states.set(report.replicaId, report.state)
    const name = this.fleet.replica(report.replicaId)?.name ?? report.replicaId
    if (from !== report.state) this.observer.onReplicaState(name, from, report.state)
    this.edge.dispatcher.tell({ kind: 'replicaChanged', replica: report })
  }

  #removed(replicaId: ReplicaId): void {
    this.#states.delete(replicaId)
    this.edge.dispatcher.tell({ kind: 'replicaRemoved', replicaId })
  }
}
