/**
 * The gate in a state that is held: so many replicas with so many streams each and so many requests waiting, driven as
 * the dispatcher drives it, over simulated engines. Whoever listens sees how long each event took.
 */
import { createGate } from '../../dist/core/gate.js'
import { createSluice } from '../../dist/policies/sluice.js'
import { WORKLOAD_CLASSES } from '../../dist/sim/classes.js'
import { createEngine } from '../../dist/sim/engine-pools.js'
import { EventQueue } from '../../dist/sim/event-queue.js'
import { prefixHashes, toEngineRequest, toOffer } from '../../dist/sim/offer.js'
import { profile } from '../../dist/sim/profiles.js'
import { Rng } from '../../dist/sim/rng.js'
import { workloadSource } from '../../dist/sim/source.js'
import { namedWorkload } from '../../dist/sim/workloads.js'
import { judge } from '../../dist/slo/judge.js'

const POOL = 'model'
const SCRAPE_MS = 500
const SWEEP_MS = 100
/** Arrivals come at that many times a first guess of the capacity while too few wait, and hardly at all otherwise. */
const HURRY = 3
const SETTINGS = {
  waiting: { requests: 10_000, bytes: 2 ** 30, tokens: 100_000_000 },
  rerouteBudgetRatio: 0.1,
  instances: 1,
  tenants: {},
  configDigest: 'bench',
}

/** `seed` makes lengths, gaps and step times; `clock` tells µs. Whoever sets `listen` hears kind and cost of each event. */
export class Stage {
  #queue = new EventQueue()
  #flights = new Map()
  #requests = new Map()
  #wish = 0
  #nowMs = 0
  #moved = new Set()

  constructor({ replicas, streams, waiting, ratePerReplica, profileId, seed, clock }) {
    this.wanted = waiting
    this.clock = clock
    this.perSec = replicas * ratePerReplica
    this.rng = new Rng(seed)
    this.requests = workloadSource(namedWorkload('mixed')).streamAt(1000, 1e9, seed)[Symbol.iterator]()
    this.gate = createGate({ settings: SETTINGS, scheduler: createSluice(), judge })
    this.replicas = Array.from({ length: replicas }, (_, index) => ({
      id: `r${index}`,
      engine: createEngine({
        profile: profile(profileId),
        maxNumSeqs: streams,
        jitterRatio: 0.05,
        seed: seed + index,
      }),
      moved: new Set(),
      plannedAtMs: undefined,
    }))
    for (const [index, replica] of this.replicas.entries()) {
      this.#tell({ kind: 'replicaChanged', replica: this.#report(replica) })
      // Real scrapes are staggered.
      this.#queue.push((SCRAPE_MS * index) / replicas, { kind: 'scrape', replica })
    }
    this.#queue.push(0, { kind: 'arrival' })
    this.#queue.push(SWEEP_MS, { kind: 'sweep' })
  }

  get waiting() {
    return this.gate.state.waiting.requests
  }

  get streams() {
    return this.gate.inFlight
  }

  /** Runs until that instant of simulated time. */
  runUntil(untilMs) {
    while (this.#nowMs < untilMs) {
      const { atMs, item } = this.#queue.pop()
      this.#nowMs = atMs
      this[item.kind](item)
    }
  }

  arrival() {
    const { value: request } = this.requests.next()
    this.#progressOf(this.#moved)
    const slo = WORKLOAD_CLASSES[request.className]
    const hashes = prefixHashes(request)
    const receivedAtMs = this.#nowMs
    const offer = toOffer(request, slo, { pool: POOL, retryCount: 0, hashes, countRatio: 1, receivedAtMs })
    this.#requests.set(offer.requestId, { request, hashes })
    this.#tell({ kind: 'offer', offer })
    const perSec = this.perSec * (this.waiting < this.wanted ? HURRY : 0.3)
    this.#queue.push(this.#nowMs + this.rng.exponential(1000 / perSec), { kind: 'arrival' })
  }

  scrape({ replica }) {
    this.#tell({ kind: 'replicaChanged', replica: this.#report(replica) })
    this.#queue.push(this.#nowMs + SCRAPE_MS, { kind: 'scrape', replica })
  }

  sweep() {
    this.#progressOf(this.#moved)
    this.#queue.push(this.#nowMs + SWEEP_MS, { kind: 'sweep' })
  }

  wake({ wish }) {
    if (wish === this.#wish) this.#tell({ kind: 'tick' })
  }

  engine({ replica }) {
    replica.plannedAtMs = undefined
    replica.engine.advanceTo(this.#nowMs, (report) => this.#step(replica, report))
    this.#planEngine(replica)
  }

  #step(replica, report) {
    for (const { requestId } of report.emitted) {
      const flight = this.#flights.get(requestId)
      if (flight === undefined) continue
      flight.events += 1
      if (flight.events === 1) {
        this.#progressOf(replica.moved)
        flight.firstTokenAtMs = this.#nowMs
        this.#tell({ kind: 'firstToken', permitId: flight.permitId })
      }
      if (flight.unreported === 0) this.#note(flight)
      flight.unreported += 1
    }
    for (const { requestId } of report.finished) this.#finish(replica, requestId)
  }

  #note(flight) {
    flight.replica.moved.add(flight)
    this.#moved.add(flight)
  }

  /** Tells of what these streams have brought, and of no other. */
  #progressOf(flights) {
    if (flights.size === 0) return
    const moved = [...flights]
    const event = {
      kind: 'progress',
      permitIds: moved.map(({ permitId }) => permitId),
      contentEvents: moved.map(({ unreported }) => unreported),
    }
    for (const flight of moved) this.#forget(flight)
    this.#tell(event)
  }

  #forget(flight) {
    flight.unreported = 0
    flight.replica.moved.delete(flight)
    this.#moved.delete(flight)
  }

  #finish(replica, engineId) {
    const flight = this.#flights.get(engineId)
    if (flight === undefined) return
    this.#progressOf(replica.moved)
    this.#flights.delete(engineId)
    const { events, firstTokenAtMs, permitId, request } = flight
    const nowMs = this.#nowMs
    this.#tell({
      kind: 'settle',
      permitId,
      report: {
        outcome: 'completed',
        endedAtMs: nowMs,
        firstTokenAtMs,
        lastTokenAtMs: nowMs,
        contentEvents: events,
        usage: { promptTokens: request.promptTokens, outputTokens: events },
      },
    })
  }

  #tell(event) {
    const started = this.clock()
    const effects = this.gate.handle(event, this.#nowMs)
    this.listen?.(event.kind, this.clock() - started)
    for (const effect of effects) {
      if (effect.kind === 'dispatch') this.#dispatch(effect)
      else if (effect.kind === 'wakeAt') this.#queue.push(effect.atMs, { kind: 'wake', wish: ++this.#wish })
      else if (effect.kind === 'settled') this.#requests.delete(effect.settlement.requestId)
    }
  }

  #dispatch({ requestId, permitId, replicaId }) {
    const { request, hashes } = this.#requests.get(requestId)
    const replica = this.replicas[Number(replicaId.slice(1))]
    const id = String(permitId)
    this.#flights.set(id, { permitId, request, replica, events: 0, unreported: 0 })
    replica.engine.advanceTo(this.#nowMs, (report) => this.#step(replica, report))
    replica.engine.submit(toEngineRequest(request, id, hashes), this.#nowMs)
    this.#planEngine(replica)
  }

  #planEngine(replica) {
    const atMs = replica.engine.nextEventAtMs()
    if (atMs === undefined || atMs === replica.plannedAtMs) return
    replica.plannedAtMs = atMs
    this.#queue.push(atMs, { kind: 'engine', replica })
  }

  #report({ id, engine }) {
    const { runningSequences, waitingSequences, kvUsageRatio, preemptionsTotal } = engine.gauges()
    return {
      replicaId: id,
      pools: [POOL],
      groupId: 'bench',
      state: 'live',
      limits: engine.limits,
      generation: 0,
      gauges: {
        seenAtMs: this.#nowMs,
        runningRequests: runningSequences,
        waitingRequests: waitingSequences,
        kvUsageRatio,
        preemptionsTotal,
      },
    }
  }
}
