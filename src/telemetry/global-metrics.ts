/** The metrics of replicas, predictor and process: counted as things happen, sampled when scraped. */
import type { OfferedStream } from '../core/demand.ts'
import type { BounceCause } from '../core/events.ts'
import type { Settlement } from '../core/records.ts'
import type { Ms, Ratio } from '../core/units.ts'
import {
  type GlobalKey,
  globalInstruments,
  type InstrumentSet,
  observeSeconds,
  setOrRemove,
} from './instruments.ts'
import { BASE_BOUNDS, LABEL_VALUES } from './metric-table.ts'
import type { ReplicaSample, SamplePorts } from './samples.ts'
import type { ShadowEstimate } from './shadow-estimate.ts'
import type { BoundHistogram } from './span-histogram.ts'
import { TenantMetrics } from './tenant-metrics.ts'
import { WorkerMetrics } from './worker-metrics.ts'

export interface BuildFacts {
  readonly version: string
  readonly nodeVersion: string
}

/** What is told of a configuration in force. */
export interface LoadedFacts {
  readonly digest: string
  readonly mode: string
  /** By model, the name that its engines know it by. */
  readonly servedNames?: Readonly<Record<string, string>>
}

/** First tokens that the coverage of a model looks back on. */
const COVERAGE_SAMPLES = 1000

/** Whether each of the last first tokens came in time, newest overwriting oldest. */
interface Coverage {
  readonly hits: Uint8Array
  samples: number
  covered: number
}

export class GlobalMetrics {
  readonly tenants: TenantMetrics
  readonly #workers: WorkerMetrics
  readonly #set: InstrumentSet<GlobalKey>
  readonly #ports: SamplePorts
  readonly #quantile: string
  readonly #decisionDuration: BoundHistogram
  readonly #coverage = new Map<string, Coverage>()
  readonly #shownReplicas = new Set<string>()
  #models: readonly string[] = []
  #cpuSec = 0

  /** `quantile` names the one that predictions are made at, e.g. `0.8`. */
  constructor(ports: SamplePorts, build: BuildFacts, quantile: string) {
    this.#set = globalInstruments(BASE_BOUNDS)
    this.#ports = ports
    this.#quantile = quantile
    const { on } = this.#set
    this.#decisionDuration = on.decisionDuration.labels({})
    this.tenants = new TenantMetrics(on)
    this.#workers = new WorkerMetrics(on)
    on.buildInfo.set({ version: build.version, node_version: build.nodeVersion }, 1)
    for (const reason of LABEL_VALUES.bounce) on.bounces.inc({ reason }, 0)
  }

  get registry(): InstrumentSet<GlobalKey>['registry'] {
    return this.#set.registry
  }

  /** Series per model start at 0; those of models that are gone go. */
  configure(models: readonly string[], classes: readonly string[]): void {
    const { on } = this.#set
    this.#models = models
    on.desiredReplicas.reset()
    for (const model of this.#coverage.keys()) if (!models.includes(model)) this.#coverage.delete(model)
    on.reroutes.reset()
    on.predictionError.reset()
    on.clamped.reset()
    for (const model of models) {
      on.reroutes.inc({ model }, 0)
      for (const direction of LABEL_VALUES.direction) on.predictionError.labels({ model, direction })
    }
    for (const className of classes) on.clamped.inc({ class: className }, 0)
  }

  rerouted(model: string): void {
    this.#set.on.reroutes.inc({ model })
  }

  bounced(reason: BounceCause): void {
    this.#set.on.bounces.inc({ reason })
  }

  oversized(frames: number): void {
    this.#set.on.oversizedFrames.inc(frames)
  }

  rejected(reason: string): void {
    this.#set.on.rejected.inc({ reason })
  }

  clamped(className: string): void {
    this.#set.on.clamped.inc({ class: className })
  }

  faulted(): void {
    this.#set.on.faults.inc()
  }

  suppressed(): void {
    this.#set.on.logSuppressed.inc()
  }

  decisionTook(durationMs: Ms): void {
    observeSeconds(this.#decisionDuration, durationMs)
  }

  /** The weight that load balancers upstream are told. */
  weighed(ratio: Ratio): void {
    this.#set.on.upstreamWeight.set(ratio)
  }

  /** Only what can be said is shown. */
  estimated(estimate: ShadowEstimate | undefined): void {
    const { shadowEstimate } = this.#set.on
    shadowEstimate.reset()
    for (const { model, class: className, shadowRatio, enforcedRatio } of estimate?.classes ?? []) {
      setOrRemove(shadowEstimate, { model, class: className, mode: 'shadow' }, shadowRatio)
      setOrRemove(shadowEstimate, { model, class: className, mode: 'enforce' }, enforcedRatio)
    }
  }

  /** The configuration in force, and whether the last attempt to load one went well. */
  loaded(config: LoadedFacts, atUnixMs: Ms): void {
    const { on } = this.#set
    on.configInfo.reset()
    on.configInfo.set({ digest: config.digest, mode: config.mode }, 1)
    on.modelInfo.reset()
    for (const [model, name] of Object.entries(config.servedNames ?? {}))
      on.modelInfo.set({ model, served_name: name }, 1)
    on.reloadSuccessful.set(1)
    on.reloadTimestamp.set(atUnixMs / 1000)
  }

  reloadFailed(): void {
    this.#set.on.reloadSuccessful.set(0)
  }

  /** Compares a first token with its prediction. */
  predicted(settlement: Settlement, model: string): void {
    const { ttftMs, predictedTtftMs } = settlement
    if (ttftMs === undefined || predictedTtftMs === undefined || !(predictedTtftMs > 0)) return
    const errorRatio = ttftMs / predictedTtftMs - 1
    if (!Number.isFinite(errorRatio)) return
    const direction = errorRatio > 0 ? 'late' : 'early'
    this.#set.on.predictionError.labels({ model, direction }).observe(Math.abs(errorRatio))
    const found = this.#coverage.get(model)
    const coverage = found ?? { hits: new Uint8Array(COVERAGE_SAMPLES), samples: 0, covered: 0 }
    if (found === undefined) this.#coverage.set(model, coverage)
    const slot = coverage.samples % COVERAGE_SAMPLES
    coverage.covered += (errorRatio <= 0 ? 1 : 0) - (coverage.hits[slot] ?? 0)
    coverage.hits[slot] = errorRatio <= 0 ? 1 : 0
    coverage.samples++
  }

  /**
   * Work that reads the ports into the gauges, in pieces of a millisecond at most, after each of which the page is whole;
   * `demandOf` tells what was offered to a model, undefined while nobody knows.
   */
  *refreshing(
    nowMs: Ms,
    demandOf: (model: string) => readonly OfferedStream[] | undefined,
  ): Generator<() => void> {
    yield () => this.tenants.refresh()
    for (const model of this.#models) yield () => this.#refreshDesired(model, demandOf(model))
    yield () => this.#refreshRest()
    yield () => this.#workers.refresh(this.#ports.workers?.() ?? [])
    const replicas = this.#ports.replicas()
    const names = new Set(replicas.map(({ name }) => name))
    for (const name of this.#shownReplicas) if (!names.has(name)) yield () => this.#forgetReplica(name)
    for (const replica of replicas) yield () => this.#refreshReplica(replica, nowMs)
  }

  #refreshDesired(model: string, demand: readonly OfferedStream[] | undefined): void {
    const wanted = demand === undefined ? undefined : this.#ports.replicasWanted(model, demand)
    setOrRemove(this.#set.on.desiredReplicas, { model }, wanted)
  }

  #refreshRest(): void {
    const { on } = this.#set
    const waiting = this.#ports.waiting()
    on.waitingRequests.set(finiteOrZero(waiting.requests))
    on.waitingTokens.set(finiteOrZero(waiting.tokens))
    on.waitingBytes.set(finiteOrZero(waiting.bytes))
    const holding = this.#ports.holding()
    on.clientConnections.set(finiteOrZero(holding.clientConnections))
    on.bufferedBytes.set(finiteOrZero(holding.bodyBytes))
    this.#refreshPredictor()
    const runtime = this.#ports.runtime()
    on.eventLoopLag.set({ quantile: '0.5' }, finiteOrZero(runtime.loopLag.p50Ms / 1000))
    on.eventLoopLag.set({ quantile: '0.99' }, finiteOrZero(runtime.loopLag.p99Ms / 1000))
    on.eventLoopLag.set({ quantile: '1' }, finiteOrZero(runtime.loopLag.maxMs / 1000))
    on.processCpu.inc(Math.max(0, runtime.cpuSec - this.#cpuSec))
    this.#cpuSec = Math.max(this.#cpuSec, runtime.cpuSec)
    on.processMemory.set(runtime.residentBytes)
    on.processStart.set(runtime.startedAtUnixSec)
  }

  #refreshPredictor(): void {
    const { on } = this.#set
    on.predictionCoverage.reset()
    for (const [model, { samples, covered }] of this.#coverage) {
      const share = covered / Math.min(samples, COVERAGE_SAMPLES)
      on.predictionCoverage.set({ model, quantile: this.#quantile }, share)
    }
    on.trust.reset()
    for (const { model, state } of this.#ports.trust()) {
      for (const other of LABEL_VALUES.trust) on.trust.set({ model, state: other }, other === state ? 1 : 0)
    }
  }

  #refreshReplica({ name: replica, state, ledger, gauges, connections }: ReplicaSample, nowMs: Ms): void {
    const { on } = this.#set
    this.#shownReplicas.add(replica)
    on.inFlight.set({ replica }, finiteOrZero(ledger.inFlightRequests))
    on.backlog.set({ replica }, finiteOrZero(ledger.backlogTokens))
    on.upstreamConnections.set({ replica }, finiteOrZero(connections))
    for (const other of LABEL_VALUES.replicaState) {
      on.replicaState.set({ replica, state: other }, other === state ? 1 : 0)
    }
    const { seenAtMs, runningRequests = 0, waitingRequests = 0, kvUsageRatio } = gauges ?? {}
    const seen = (value: number): number | undefined =>
      gauges === undefined ? undefined : finiteOrZero(value)
    setOrRemove(on.scrapeAge, { replica }, seen(Math.max(0, nowMs - (seenAtMs ?? nowMs)) / 1000))
    const drift = runningRequests + waitingRequests - ledger.inFlightRequests
    setOrRemove(on.ledgerDrift, { replica }, seen(drift))
    setOrRemove(on.kvUsage, { replica }, kvUsageRatio === undefined ? undefined : seen(kvUsageRatio))
  }

  #forgetReplica(replica: string): void {
    const { on } = this.#set
    this.#shownReplicas.delete(replica)
    const { inFlight, backlog, kvUsage, scrapeAge, ledgerDrift, upstreamConnections } = on
    for (const gauge of [inFlight, backlog, kvUsage, scrapeAge, ledgerDrift, upstreamConnections])
      gauge.remove({ replica })
    for (const state of LABEL_VALUES.replicaState) on.replicaState.remove({ replica, state })
  }
}

function finiteOrZero(value: number): number {
  return Number.isFinite(value) ? value : 0
}
