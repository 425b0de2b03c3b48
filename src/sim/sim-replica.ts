/** One simulated replica: the engine of its present life and the streams open there. */
import type { PermitId } from '../core/events.ts'
import type { ReplicaGauges, ReplicaReport, ReplicaState } from '../core/replica.ts'
import type { Offer, PoolId, ReplicaId } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { createEngine } from './engine-pools.ts'
import type { EngineGauges, ReplicaEngineOptions, SimEngine } from './engine-types.ts'

/** One permit under way. */
export interface Flight {
  readonly gateIndex: number
  readonly permitId: PermitId
  readonly offer: Offer
  readonly engineId: string
  readonly replica: ReplicaOfRun
  /** Content events that the gate has not been told of. */
  unreportedEvents: number
  contentEvents: number
  outputTokens: Tokens
  cachedTokens: Tokens
  firstTokenAtMs?: Ms
  lastTokenAtMs?: Ms
}

/** What was read from a metrics page. */
export interface PageReading {
  readonly seenAtMs: Ms
  readonly generation: number
  readonly gauges: EngineGauges
}

export class ReplicaOfRun {
  readonly id: ReplicaId
  readonly flights = new Map<string, Flight>()
  /** Flights with unreported events; some may have ended since. */
  readonly unreported: Flight[] = []
  /** The engine's next event as already put into the event queue. */
  plannedAtMs: Ms | undefined
  engine: SimEngine | undefined
  state: ReplicaState = 'live'
  readonly #options: ReplicaEngineOptions
  readonly #pool: PoolId
  readonly #limitsKnown: boolean
  #generation = 0
  #speedRatio = 1
  /** What the metrics page said last. */
  #page: EngineGauges | undefined
  /** What of it the gate knows. */
  #known: PageReading | undefined
  #earlierLives: EngineGauges | undefined

  constructor(id: ReplicaId, options: ReplicaEngineOptions, pool: PoolId, limitsKnown: boolean) {
    this.id = id
    this.#options = options
    this.#pool = pool
    this.#limitsKnown = limitsKnown
    this.engine = createEngine(options)
  }

  die(): void {
    this.#earlierLives = this.totals()
    this.engine = undefined
    this.plannedAtMs = undefined
  }

  /** An empty process takes the place of the dead one. */
  revive(): void {
    this.engine = createEngine(this.#options)
    this.#page = undefined
    this.#known = undefined
    this.#generation++
    this.state = 'live'
    this.setSpeed(this.#speedRatio)
  }

  /** Steps that begin from now on run that many times as fast as the engine's options say. */
  setSpeed(ratio: Ratio): void {
    this.#speedRatio = ratio
    this.engine?.setSpeed((this.#options.speedRatio ?? 1) * ratio)
  }

  /** Reads the metrics page: as it is, or as it was when it was last read; undefined when nobody answers. */
  readPage(nowMs: Ms, fresh: boolean): PageReading | undefined {
    if (this.engine === undefined) return undefined
    if (fresh || this.#page === undefined) this.#page = this.engine.gauges()
    return { seenAtMs: nowMs, generation: this.#generation, gauges: this.#page }
  }

  /** Takes a reading for the gate; false when it is of an earlier life, or older than one that is known. */
  learn(reading: PageReading): boolean {
    if (reading.generation !== this.#generation || this.engine === undefined) return false
    if (this.#known !== undefined && this.#known.seenAtMs > reading.seenAtMs) return false
    this.#known = reading
    return true
  }

  /** Gauges with counters summed over all lives. */
  totals(): EngineGauges {
    const now = this.engine?.gauges()
    const before = this.#earlierLives
    if (now === undefined || before === undefined)
      return now ?? before ?? createEngine(this.#options).gauges()
    const summed = { ...now }
    for (const key of Object.keys(now) as (keyof EngineGauges)[]) {
      if (key.endsWith('Total')) Object.assign(summed, { [key]: now[key] + before[key] })
    }
    return summed
  }

  /** What the gate is told. */
  report(): ReplicaReport {
    const { engine } = this
    return {
      replicaId: this.id,
      pools: [this.#pool],
      groupId: this.#options.profile.id,
      state: this.state,
      limits: this.#limitsKnown && engine !== undefined ? engine.limits : {},
      generation: this.#generation,
      ...(this.#known === undefined ? {} : { gauges: toReplicaGauges(this.#known) }),
    }
  }
}

function toReplicaGauges({ seenAtMs, gauges }: PageReading): ReplicaGauges {
  return {
    seenAtMs,
    runningRequests: gauges.runningSequences,
    waitingRequests: gauges.waitingSequences,
    kvUsageRatio: gauges.kvUsageRatio,
    preemptionsTotal: gauges.preemptionsTotal,
  }
}
