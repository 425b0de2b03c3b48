/** Keeps the accounts: takes what the edge and the rim tell, and feeds metrics, attainment, /decisions and the log. */
import type { BounceCause } from '../core/events.ts'
import { PassingMap } from '../core/passing-map.ts'
import type { DecisionRecord, ExchangeFacts, Settlement } from '../core/records.ts'
import type { ReplicaState } from '../core/replica.ts'
import type { ReplicaId } from '../core/request.ts'
import type { TraceFacts } from '../core/trace.ts'
import type { Ms } from '../core/units.ts'
import { Attainment, OTHER, type SloCatalog } from '../slo/attainment.ts'
import { type HealthState, type SeriesHealth, SloHealth } from '../slo/slo-health.ts'
import { UpstreamWeight } from '../slo/upstream-weight.ts'
import { DecisionRing } from './decision-ring.ts'
import type { BuildFacts, LoadedFacts } from './global-metrics.ts'
import { Journal } from './journal.ts'
import { bounded, errorFields, type Log, type LogFields } from './log.ts'
import { Metrics } from './metrics.ts'
import { type OpenDecision, REQUEST_EVENT, requestFields } from './request-line.ts'
import type { RequestSink } from './request-sink.ts'
import type { SamplePorts } from './samples.ts'
import type { ShadowEstimate } from './shadow-estimate.ts'
import { Timeline } from './timeline.ts'
import { TtftPairs } from './ttft-pairs.ts'

export interface ObserverOptions {
  readonly catalog: SloCatalog
  readonly ports: SamplePorts
  readonly build: BuildFacts
  readonly log: Log
  /** Monotonic, in ms, the same origin as the records have. */
  readonly nowMs: () => Ms
  /** Wall clock in Unix ms. */
  readonly unixMs: () => Ms
  /** A replica's name for people, from its id. */
  readonly replicaName?: (replicaId: ReplicaId) => string
  /** The quantile of TTFT predictions as a label value. */
  readonly predictionQuantile?: string
  /** Whoever else wants to know how requests end. */
  readonly sink?: RequestSink | undefined
  /** Hears of each settlement once it is counted. */
  readonly onCounted?: (settlement: Settlement) => void
  readonly ring?: { readonly entries: number; readonly bytes: number }
}

/** The configuration that has come into force. */
export interface LoadedConfig extends LoadedFacts {
  readonly catalog: SloCatalog
}

const DEFAULT_RING = { entries: 2000, bytes: 8 * 1024 * 1024 }
/** Requests between decision and settlement whose numbers are kept for their log line. */
const MAX_OPEN_REQUESTS = 20_000

/** A ready observer; see `Observer`. */
export function createObserver(options: ObserverOptions): Observer {
  return new Observer(options)
}

/** Fits the edge's observer port as it stands; no method throws for what traffic brings. */
export class Observer {
  readonly attainment: Attainment
  readonly metrics: Metrics
  readonly decisions: DecisionRing
  readonly timeline: Timeline
  readonly journal = new Journal()
  readonly ttftPairs = new TtftPairs()
  /** What load balancers upstream are told. */
  readonly weight: UpstreamWeight
  readonly log: Log
  readonly #health: SloHealth
  readonly #sink: RequestSink | undefined
  readonly #open = new PassingMap<string, OpenDecision>()
  readonly #onCounted: (settlement: Settlement) => void
  readonly #nowMs: () => Ms
  readonly #unixMs: () => Ms
  readonly #nameOf: (replicaId: ReplicaId) => string
  #estimate: ShadowEstimate | undefined
  #states = new Map<string, HealthState>()

  constructor(options: ObserverOptions) {
    const { catalog, ports, build, predictionQuantile = 'gate', nowMs, ring = DEFAULT_RING } = options
    this.attainment = new Attainment(catalog)
    this.metrics = new Metrics({ attainment: this.attainment, ports, build, predictionQuantile, nowMs })
    this.decisions = new DecisionRing(ring.entries, ring.bytes)
    this.timeline = new Timeline(nowMs())
    this.weight = new UpstreamWeight(nowMs())
    this.metrics.global.weighed(this.weight.ratio)
    this.log = options.log
    this.#health = new SloHealth(this.attainment)
    this.#sink = options.sink
    this.#onCounted = options.onCounted ?? (() => {})
    this.#nowMs = nowMs
    this.#unixMs = options.unixMs
    this.#nameOf = options.replicaName ?? ((replicaId) => replicaId)
  }

  onDecision(record: DecisionRecord): void {
    this.metrics.decided(record)
    const decision = this.decisions.decided(record)
    const { requestId } = record.offer
    const earlier = record.attempt === 1 ? undefined : this.#open.get(requestId)?.decision
    this.#open.set(requestId, { decision, candidatesSeen: record.candidates.length, earlier })
    if (this.#open.size > MAX_OPEN_REQUESTS) this.#forgetOldest()
  }

  onSettled(settlement: Settlement, exchange: ExchangeFacts = {}): void {
    const open = this.#takeOpen(settlement)
    const nowMs = this.#nowMs()
    this.attainment.count(settlement, nowMs)
    this.metrics.settled(settlement)
    const key = this.attainment.keyOf(settlement.offer)
    this.timeline.settled(key, settlement, open?.decision.wouldHave, nowMs)
    this.ttftPairs.settled(settlement, nowMs)
    this.decisions.settled(settlement)
    this.#onCounted(settlement)
    const fields = requestFields(settlement, exchange, this.#nameOf, open)
    this.log.line('info', REQUEST_EVENT, fields)
    const decisions = [open?.earlier, open?.decision].filter((decision) => decision !== undefined)
    this.#sink?.ended({ settlement, exchange, decisions })
  }

  /** The decision of that very request, and not of a later one with its id: an end may be counted late. */
  #takeOpen({ requestId, offer }: Settlement): OpenDecision | undefined {
    const open = this.#open.get(requestId)
    if (open?.decision.offer.receivedAtMs !== offer.receivedAtMs) return undefined
    this.#open.delete(requestId)
    return open
  }

  onBounced(replicaId: ReplicaId, cause: BounceCause, message: string): void {
    this.metrics.global.bounced(cause)
    const fields = { replica: this.#nameOf(replicaId), cause, message: bounded(message) }
    this.#often(`bounce ${cause} ${replicaId}`, 'warn', 'attempt_bounced', fields)
  }

  onRejected(code: string, tenant: string | undefined, trace?: TraceFacts): void {
    this.metrics.global.rejected(code)
    const fields = {
      code,
      tenant: tenant === undefined ? undefined : bounded(tenant),
      trace_id: trace?.traceId,
      span_id: trace?.spanId,
    }
    this.#often(`reject ${code} ${tenant ?? ''}`, 'info', 'request_rejected', fields)
    this.#sink?.rejected({ code, tenant, trace })
  }

  onClamped(tenant: string, asked: string): void {
    this.metrics.global.clamped(this.attainment.catalog.classes.includes(asked) ? asked : OTHER)
    const fields = { tenant: bounded(tenant), asked: bounded(asked) }
    this.#often(`clamp ${tenant}`, 'info', 'class_clamped', fields)
  }

  onDecided(durationMs: Ms): void {
    this.metrics.global.decisionTook(durationMs)
  }

  onFault(error: unknown): void {
    this.metrics.global.faulted()
    const fields = errorFields(error)
    this.#often(`fault ${String(fields.error).slice(0, 80)}`, 'error', 'fault', fields)
  }

  /** A replica's state as the gate sees it has changed. */
  onReplicaState(replica: string, from: ReplicaState | undefined, to: ReplicaState, why = ''): void {
    const level = to === 'down' || to === 'suspect' ? 'warn' : 'info'
    const fields = { replica: bounded(replica), from, to, ...(why === '' ? {} : { why: bounded(why) }) }
    this.journal.add(this.#nowMs(), 'replica_state', fields)
    this.#often(`state ${replica} ${to}`, level, 'replica_state', fields)
  }

  /** A configuration is in force, at start or after a reload. `fields`: what changed, for the log. */
  onLoaded(loaded: LoadedConfig, fields: LogFields = {}): void {
    this.attainment.configure(loaded.catalog)
    this.metrics.configure(loaded.catalog)
    this.metrics.global.loaded(loaded, this.#unixMs())
    this.timeline.configure(loaded.catalog)
    this.#happened('info', 'config_loaded', { digest: loaded.digest, mode: loaded.mode, ...fields })
  }

  /** A reload failed and the old configuration goes on; whoever reloads logs why. */
  onReloadFailed(): void {
    this.metrics.global.reloadFailed()
    this.journal.add(this.#nowMs(), 'reload_failed', {})
  }

  /** Stages of shutting down, and whatever else happens once. */
  onEvent(event: string, fields: LogFields = {}): void {
    this.#happened('info', event, fields)
  }

  /** The state of every series with an objective; a change since the last call is a log line. */
  health(): readonly SeriesHealth[] {
    const now = this.#health.evaluate(this.#nowMs())
    const before = this.#states
    this.#states = new Map()
    for (const { model, class: className, product, state, raisedBy } of now) {
      const id = `${model}\n${className}\n${product}`
      const from = before.get(id) ?? 'unknown'
      this.#states.set(id, state)
      if (from === state) continue
      const level = state === 'critical' ? 'error' : state === 'burning' ? 'warn' : 'info'
      this.#happened(level, 'slo_state', {
        model,
        class: className,
        product,
        from,
        to: state,
        raised_by: raisedBy,
      })
    }
    return now
  }

  /** Weighs the fleet against its demand; to be called every few seconds. */
  reweigh(): void {
    this.weight.update(this.metrics.headroomRatio(), this.#nowMs())
    this.metrics.global.weighed(this.weight.ratio)
  }

  /** What enforcing would have attained, by simulation; undefined while nobody can say. */
  get estimate(): ShadowEstimate | undefined {
    return this.#estimate
  }

  onEstimate(estimate: ShadowEstimate | undefined): void {
    this.#estimate = estimate
    this.metrics.global.estimated(estimate)
  }

  /** Writes out what the log still holds. */
  close(): void {
    this.log.flush()
  }

  #forgetOldest(): void {
    const oldest = this.#open.keys().next().value
    if (oldest !== undefined) this.#open.delete(oldest)
  }

  /** A line that the journal keeps too. */
  #happened(...[level, event, fields]: Required<Parameters<Log['line']>>): void {
    this.journal.add(this.#nowMs(), event, fields)
    this.log.line(level, event, fields)
  }

  #often(...line: Parameters<Log['often']>): void {
    const before = this.log.suppressedLines
    this.log.often(...line)
    if (this.log.suppressedLines > before) this.metrics.global.suppressed()
  }
}
