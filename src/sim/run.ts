/** Drives gate and engine models through virtual time: a workload goes in, settlements come out. */
import { createGate, type Gate } from '../core/gate.ts'
import type { GateSettings } from '../core/gate-settings.ts'
import type { Ms } from '../core/units.ts'
import { judge } from '../slo/judge.ts'
import { WORKLOAD_CLASSES } from './classes.ts'
import { type FollowUp, followUpOf } from './clients.ts'
import { EventQueue } from './event-queue.ts'
import { checkFaults, countRatio, isDead, metricsLagMs, pageOf, speedRatioOf, turnsOfFate } from './faults.ts'
import { prefixHashes, toOffer } from './offer.ts'
import { hash32, Rng } from './rng.ts'
import type { SimOptions, SimOutcome, SimResult } from './run-types.ts'
import { type DispatcherEvent, SimDispatcher, type Story } from './sim-dispatcher.ts'
import { type PageReading, ReplicaOfRun } from './sim-replica.ts'
import type { WorkloadRequest } from './workload-types.ts'

const DEFAULT_DRAIN_MS: Ms = 600_000
const POOL = 'model'

type RunEvent =
  | DispatcherEvent
  | { readonly kind: 'arrival'; readonly request: WorkloadRequest }
  | { readonly kind: 'followUp'; readonly followUp: FollowUp }
  | { readonly kind: 'fate'; readonly replicaIndex: number }
  | { readonly kind: 'deathNotice'; readonly replica: ReplicaOfRun }
  | { readonly kind: 'scrape' }
  | { readonly kind: 'page'; readonly replica: ReplicaOfRun; readonly reading: PageReading }
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
  readonly #outcomes: SimOutcome[] = []
  readonly #schedulerName: string
  readonly #promptNoise: Rng
  #arrivalsDone = false
  #followUps = 0
  #offered = 0
  #closesAtMs: Ms
  #nowMs: Ms = 0

  constructor(options: SimOptions) {
    checkFaults(options.faults ?? [], options.replicas.length)
    this.#options = options
    this.#arrivals = options.requests[Symbol.iterator]()
    this.#promptNoise = new Rng(options.seed ?? 1).fork('prompt estimates')
    this.#closesAtMs = options.closesAtMs ?? Number.POSITIVE_INFINITY
    const limitsKnown = options.limitsKnown ?? true
    this.#replicas = options.replicas.map(
      ({ engine, pool = POOL }, index) =>
        new ReplicaOfRun(`r${index}`, { seed: (options.seed ?? 1) + index, ...engine }, pool, limitsKnown),
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
      onOutcome: options.onOutcome ?? ((outcome) => this.#outcomes.push(outcome)),
      onEnd: (story, outcome) => this.#planFollowUp(story, outcome),
    })
  }

  run(): SimResult {
    const { stories } = this.#dispatcher
    for (const { atMs, replicaIndex } of turnsOfFate(this.#faults)) {
      this.#queue.push(atMs, { kind: 'fate', replicaIndex })
    }
    for (const replica of this.#replicas) this.#tellOf(replica)
    this.#nextArrival()
    this.#queue.push(0, { kind: 'scrape' })
    while (!this.#arrivalsDone || stories.size > 0 || this.#followUps > 0) {
      const next = this.#queue.pop()
      if (next === undefined) throw new RangeError(`the run stands still with ${stories.size} open requests`)
      this.#nowMs = next.atMs
      this.#dispatcher.setNow(next.atMs)
      this.#handle(next.item)
    }
    return {
      schedulerName: this.#schedulerName,
      outcomes: this.#outcomes,
      counts: this.#gates.map((gate) => ({ ...gate.counts })),
      engines: this.#replicas.map((replica) => replica.totals()),
      endedAtMs: this.#nowMs,
    }
  }

  get #faults() {
    return this.#options.faults ?? []
  }

  #handle(event: RunEvent): void {
    switch (event.kind) {
      case 'arrival':
        this.#offer({ atMs: this.#nowMs, request: event.request, retryCount: 0 })
        this.#nextArrival()
        break
      case 'followUp':
        this.#followUps--
        this.#offer(event.followUp)
        break
      case 'scrape':
        this.#scrape()
        break
      case 'page':
        if (event.replica.learn(event.reading)) this.#tellOf(event.replica)
        break
      case 'impatient':
        this.#lose(event.requestId)
        break
      case 'drained':
        this.#followUps = 0
        this.#closesAtMs = this.#nowMs
        for (const requestId of [...this.#dispatcher.stories.keys()]) this.#dispatcher.leave(requestId)
        break
      case 'fate':
        this.#meetFate(event.replicaIndex)
        break
      case 'deathNotice':
        if (event.replica.engine === undefined) event.replica.state = 'down'
        this.#tellOf(event.replica)
        break
      default:
        this.#dispatcher.handle(event)
    }
  }

  #tellOf(replica: ReplicaOfRun): void {
    this.#dispatcher.tellAll({ kind: 'replicaChanged', replica: replica.report() })
  }

  /** Makes the replica what its faults say it is now. */
  #meetFate(replicaIndex: number): void {
    const replica = this.#replicas[replicaIndex]
    if (replica === undefined) return
    const dead = isDead(this.#faults, replicaIndex, this.#nowMs)
    if (dead && replica.engine !== undefined) {
      this.#dispatcher.kill(replica)
      const noticeMs = this.#options.deathNoticeMs ?? 1000
      this.#queue.push(this.#nowMs + noticeMs, { kind: 'deathNotice', replica })
    } else if (!dead && replica.engine === undefined) {
      replica.revive()
      this.#tellOf(replica)
    }
    replica.setSpeed(speedRatioOf(this.#faults, replicaIndex, this.#nowMs))
  }

  #nextArrival(): void {
    const next = this.#arrivals.next()
    if (next.done !== true) {
      this.#queue.push(next.value.atMs, { kind: 'arrival', request: next.value })
      return
    }
    this.#arrivalsDone = true
    const { closesAtMs = 0, drainMs = DEFAULT_DRAIN_MS } = this.#options
    this.#queue.push(Math.max(this.#nowMs, closesAtMs) + drainMs, { kind: 'drained' })
  }

  #offer({ request, retryCount, patienceEndsAtMs }: FollowUp): void {
    const { pool = POOL } = request.told ?? {}
    const { classes = WORKLOAD_CLASSES, classFor = (name) => classes[name] } = this.#options
    const slo = classFor(request.className, pool)
    if (slo === undefined)
      throw new RangeError(`request ${request.id} asks for unknown class ${request.className}`)
    const gateIndex = this.#offered++ % this.#gates.length
    const hashes = prefixHashes(request)
    const endsAtMs = patienceEndsAtMs ?? this.#nowMs + (request.patienceMs ?? Number.POSITIVE_INFINITY)
    if (endsAtMs < Number.POSITIVE_INFINITY) {
      this.#queue.push(endsAtMs, { kind: 'impatient', requestId: request.id })
    }
    const story = { request, retryCount, patienceEndsAtMs: endsAtMs, gateIndex, hashes, engineMs: 0 }
    this.#dispatcher.stories.set(request.id, story)
    const { promptErrorRatio = 0 } = this.#options
    const noise = promptErrorRatio === 0 ? 1 : this.#promptNoise.logNormal(1, promptErrorRatio)
    const counted = noise * countRatio(this.#faults, this.#nowMs)
    const intake = { pool, retryCount, hashes, countRatio: counted, receivedAtMs: this.#nowMs }
    this.#dispatcher.offer(gateIndex, toOffer(request, slo, intake))
  }

  #lose(requestId: string): void {
    const story = this.#dispatcher.stories.get(requestId)
    if (story === undefined) return
    const { flight } = story
    // Who does not stream sees nothing before the end.
    if (flight?.firstTokenAtMs === undefined || !flight.offer.streamed) this.#dispatcher.leave(requestId)
  }

  #planFollowUp(story: Story, outcome: Parameters<typeof followUpOf>[1]): void {
    const { request, retryCount } = story
    if (request.next === undefined && request.retry === undefined) return
    const rng = new Rng(hash32(`${request.id}/${retryCount}`, this.#options.seed ?? 1))
    const followUp = followUpOf(story, outcome, story.advice, this.#nowMs, rng)
    if (followUp === undefined || followUp.atMs >= this.#closesAtMs) return
    this.#followUps++
    this.#queue.push(followUp.atMs, { kind: 'followUp', followUp })
  }

  #scrape(): void {
    const { metricsPeriodMs = 500, metricsLagMs: usualLagMs = 0 } = this.#options
    const lagMs = usualLagMs + metricsLagMs(this.#faults, this.#nowMs)
    for (const [index, replica] of this.#replicas.entries()) {
      const page = pageOf(this.#faults, index, this.#nowMs)
      const reading = page === 'lost' ? undefined : replica.readPage(this.#nowMs, page === 'fresh')
      if (reading !== undefined) this.#queue.push(this.#nowMs + lagMs, { kind: 'page', replica, reading })
    }
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
