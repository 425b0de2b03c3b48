/** Drives gate and engine models through virtual time: a workload goes in, settlements come out. */
import { createGate, type Gate } from '../core/gate.ts'
import type { GateSettings } from '../core/gate-settings.ts'
import type { ReplicaReport } from '../core/replica.ts'
import type { Ms } from '../core/units.ts'
import { judge } from '../slo/judge.ts'
import { WORKLOAD_CLASSES } from './classes.ts'
import { EventQueue } from './event-queue.ts'
import { prefixHashes, toOffer } from './offer.ts'
import { Rng } from './rng.ts'
import type { SimOptions, SimReplica, SimResult } from './run-types.ts'
import { type DispatcherEvent, SimDispatcher } from './sim-dispatcher.ts'
import { ReplicaOfRun } from './sim-replica.ts'
import type { WorkloadRequest } from './workload-types.ts'

const DEFAULT_DRAIN_MS: Ms = 600_000
const POOL = 'model'

type FateEvent =
  | { readonly kind: 'death'; readonly replica: ReplicaOfRun }
  | { readonly kind: 'deathNotice'; readonly replica: ReplicaOfRun }
  | { readonly kind: 'revival'; readonly replica: ReplicaOfRun }

type RunEvent =
  | DispatcherEvent
  | FateEvent
  | { readonly kind: 'arrival'; readonly request: WorkloadRequest }
  | { readonly kind: 'scrape' }
  | { readonly kind: 'report'; readonly report: ReplicaReport }
  | { readonly kind: 'impatient'; readonly requestId: string }
  | { readonly kind: 'drained' }

/** Runs the workload to its end. The same options give the same bytes. */
export function simulate(options: SimOptions): SimResult {
  return new SimRun(options).run()
}

class SimRun {
  readonly #options: SimOptions
  readonly #queue = new EventQueue<RunEvent>()
  readonly #arrivals: Iterator<WorkloadRequest>
  readonly #replicas: readonly ReplicaOfRun[]
  readonly #gates: readonly Gate[]
  readonly #dispatcher: SimDispatcher
  readonly #schedulerName: string
  readonly #promptNoise: Rng
  #arrivalsDone = false
  #offered = 0
  #nowMs: Ms = 0

  constructor(options: SimOptions) {
    this.#options = options
    this.#arrivals = options.requests[Symbol.iterator]()
    this.#promptNoise = new Rng(options.seed ?? 1).fork('prompt estimates')
    const limitsKnown = options.limitsKnown ?? true
    this.#replicas = options.replicas.map(
      ({ engine }, index) =>
        new ReplicaOfRun(`r${index}`, { seed: (options.seed ?? 1) + index, ...engine }, POOL, limitsKnown),
    )
    const instances = options.instances ?? 1
    const schedulers = Array.from({ length: instances }, () => options.createScheduler())
    this.#schedulerName = schedulers[0]?.name ?? 'none'
    const settings = defaultSettings(instances, options.settings)
    this.#gates = schedulers.map((scheduler) => createGate({ settings, scheduler, judge }))
    this.#dispatcher = new SimDispatcher({
      gates: this.#gates,
      replicas: this.#replicas,
      queue: this.#queue,
      networkMs: options.networkMs ?? 0,
      reportsProgress: options.reportsProgress ?? true,
      onEffect: options.onEffect ?? (() => {}),
    })
  }

  run(): SimResult {
    const { stories, outcomes } = this.#dispatcher
    for (const replica of this.#replicas) {
      this.#dispatcher.tellAll({ kind: 'replicaChanged', replica: replica.report() })
    }
    this.#options.replicas.forEach((plan, index) => {
      this.#planFate(plan, this.#replicas[index])
    })
    this.#nextArrival()
    this.#queue.push(0, { kind: 'scrape' })
    while (!this.#arrivalsDone || stories.size > 0) {
      const next = this.#queue.pop()
      if (next === undefined) throw new RangeError(`the run stands still with ${stories.size} open requests`)
      this.#nowMs = next.atMs
      this.#dispatcher.setNow(next.atMs)
      this.#handle(next.item)
    }
    return {
      schedulerName: this.#schedulerName,
      outcomes,
      counts: this.#gates.map((gate) => ({ ...gate.counts })),
      engines: this.#replicas.map((replica) => replica.totals()),
      endedAtMs: this.#nowMs,
    }
  }

  #handle(event: RunEvent): void {
    switch (event.kind) {
      case 'arrival':
        this.#offer(event.request)
        break
      case 'scrape':
        this.#scrape()
        break
      case 'report':
        this.#dispatcher.tellAll({ kind: 'replicaChanged', replica: event.report })
        break
      case 'impatient': {
        const story = this.#dispatcher.stories.get(event.requestId)
        if (story?.flight?.firstTokenAtMs === undefined) this.#dispatcher.leave(event.requestId)
        break
      }
      case 'drained':
        for (const requestId of [...this.#dispatcher.stories.keys()]) this.#dispatcher.leave(requestId)
        break
      case 'death':
      case 'deathNotice':
      case 'revival':
        this.#handleFate(event)
        break
      default:
        this.#dispatcher.handle(event)
    }
  }

  #handleFate({ kind, replica }: FateEvent): void {
    if (kind === 'death') {
      this.#dispatcher.kill(replica)
      return
    }
    if (kind === 'revival') replica.revive()
    else if (replica.engine === undefined) replica.state = 'down'
    this.#dispatcher.tellAll({ kind: 'replicaChanged', replica: replica.report() })
  }

  #planFate(plan: SimReplica, replica: ReplicaOfRun | undefined): void {
    if (replica === undefined || plan.diesAtMs === undefined) return
    this.#queue.push(plan.diesAtMs, { kind: 'death', replica })
    this.#queue.push(plan.diesAtMs + (this.#options.deathNoticeMs ?? 1000), { kind: 'deathNotice', replica })
    if (plan.revivesAtMs !== undefined) this.#queue.push(plan.revivesAtMs, { kind: 'revival', replica })
  }

  #nextArrival(): void {
    const next = this.#arrivals.next()
    if (next.done !== true) {
      this.#queue.push(next.value.atMs, { kind: 'arrival', request: next.value })
      return
    }
    this.#arrivalsDone = true
    this.#queue.push(this.#nowMs + (this.#options.drainMs ?? DEFAULT_DRAIN_MS), { kind: 'drained' })
  }

  #offer(request: WorkloadRequest): void {
    const slo = (this.#options.classes ?? WORKLOAD_CLASSES)[request.className]
    if (slo === undefined)
      throw new RangeError(`request ${request.id} asks for unknown class ${request.className}`)
    const gateIndex = this.#offered++ % this.#gates.length
    const hashes = prefixHashes(request)
    this.#dispatcher.stories.set(request.id, { request, gateIndex, hashes, engineMs: 0 })
    const { promptErrorRatio = 0, patienceMs } = this.#options
    const noise = promptErrorRatio === 0 ? 1 : this.#promptNoise.logNormal(1, promptErrorRatio)
    const promptTokens = Math.max(1, Math.round(request.promptTokens * noise))
    const offer = toOffer(request, slo, { pool: POOL, promptTokens, hashes }, this.#nowMs)
    if (patienceMs !== undefined) {
      this.#queue.push(this.#nowMs + patienceMs, { kind: 'impatient', requestId: request.id })
    }
    this.#dispatcher.offer(gateIndex, offer)
    this.#nextArrival()
  }

  #scrape(): void {
    const { metricsPeriodMs = 500, metricsLagMs = 0 } = this.#options
    this.#replicas.forEach((replica, index) => {
      const frozenAtMs = this.#options.replicas[index]?.metricsFrozenAtMs ?? Number.POSITIVE_INFINITY
      if (replica.engine === undefined || this.#nowMs >= frozenAtMs) return
      this.#queue.push(this.#nowMs + metricsLagMs, { kind: 'report', report: replica.report(this.#nowMs) })
    })
    this.#queue.push(this.#nowMs + metricsPeriodMs, { kind: 'scrape' })
  }
}

function defaultSettings(instances: number, overrides: Partial<GateSettings> = {}): GateSettings {
  return {
    waiting: { requests: 2000, bytes: 512 * 2 ** 20, tokens: 8_000_000 },
    rerouteBudgetRatio: 0.1,
    instances,
    tenants: {},
    configDigest: 'simulated',
    ...overrides,
  }
}
