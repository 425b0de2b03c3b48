/** A gate in a world that only carries out what it says, and checks each effect and all books after every event. */
import type { GateEffect } from '../../src/core/effects.ts'
import type { BounceCause, GateEvent, PermitId } from '../../src/core/events.ts'
import { createGate, type Gate } from '../../src/core/gate.ts'
import { REROUTE_FLOOR_REQUESTS } from '../../src/core/gate-settings.ts'
import type { ReplicaLedger } from '../../src/core/ledger.ts'
import type { SettleOutcome } from '../../src/core/records.ts'
import type { Offer, ReplicaId, RequestId } from '../../src/core/request.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { judge } from '../../src/slo/judge.ts'
import { settingsOf } from '../core/core-rig.ts'

interface Permit {
  readonly permitId: PermitId
  readonly requestId: RequestId
  readonly replicaId: ReplicaId
  readonly offer: Offer
  firstTokenAtMs?: number
  contentEvents: number
}

interface Story {
  readonly offer: Offer
  dispatches: number
  settlements: number
  /** Replicas that it must not see again. */
  readonly barred: Set<ReplicaId>
}

export type Recorded = readonly [event: GateEvent, nowMs: number]

export class GateWorld {
  readonly gate: Gate
  readonly recorded: Recorded[] = []
  readonly effectsJson: string[] = []
  readonly permits = new Map<PermitId, Permit>()
  readonly stories = new Map<RequestId, Story>()
  readonly gone = new Set<ReplicaId>()
  nowMs = 0
  settings = settingsOf()
  #wakeAtMs: number | undefined
  readonly #dispatchedAtMs: number[] = []
  readonly #reroutedAtMs: number[] = []

  constructor(scheduler: Scheduler) {
    this.gate = createGate({ settings: this.settings, scheduler, judge })
  }

  get waiting(): readonly Offer[] {
    return [...this.gate.state.waiting].map(({ offer }) => offer)
  }

  /** Tells the gate, carries out what it says and checks everything. */
  tell(event: GateEvent): readonly GateEffect[] {
    if (event.kind === 'offer') {
      const { offer } = event
      this.stories.set(offer.requestId, { offer, dispatches: 0, settlements: 0, barred: new Set() })
    }
    if (event.kind === 'configured') this.settings = event.settings
    this.recorded.push([structuredClone(event), this.nowMs])
    const effects = this.gate.handle(event, this.nowMs)
    this.effectsJson.push(JSON.stringify(effects))
    for (const effect of effects) this.#obey(effect)
    this.#checkBooks(event)
    return effects
  }

  /** Lets time pass, with a tick at each instant that the gate asked for. */
  pass(spanMs: number): void {
    const untilMs = this.nowMs + spanMs
    for (let turns = 0; this.#wakeAtMs !== undefined && this.#wakeAtMs <= untilMs; turns++) {
      must(turns < 10_000, 'a span has fewer ticks')
      this.nowMs = Math.max(this.nowMs, this.#wakeAtMs)
      this.#wakeAtMs = undefined
      this.tell({ kind: 'tick' })
      for (const { expiresAtMs, offer } of this.gate.state.waiting)
        must(expiresAtMs > this.nowMs, `${offer.requestId} outlived its wait`)
    }
    this.nowMs = untilMs
  }

  firstToken(permit: Permit): void {
    if (permit.firstTokenAtMs === undefined && permit.offer.streamed) permit.firstTokenAtMs = this.nowMs
    this.tell({ kind: 'firstToken', permitId: permit.permitId })
  }

  progress(permits: readonly Permit[], events: number): void {
    for (const permit of permits) if (permit.firstTokenAtMs !== undefined) permit.contentEvents += events
    this.tell({
      kind: 'progress',
      permitIds: permits.map(({ permitId }) => permitId),
      contentEvents: permits.map(() => events),
    })
  }

  settle(permit: Permit, outcome: SettleOutcome): void {
    const { permitId, firstTokenAtMs, contentEvents } = permit
    const first = firstTokenAtMs === undefined ? {} : { firstTokenAtMs, lastTokenAtMs: this.nowMs }
    const usage = outcome === 'completed' ? { usage: { outputTokens: Math.max(1, contentEvents) } } : {}
    const report = { outcome, endedAtMs: this.nowMs, contentEvents, ...first, ...usage }
    this.permits.delete(permitId)
    this.tell({ kind: 'settle', permitId, report })
    this.refuses(() => this.gate.handle({ kind: 'settle', permitId, report }, this.nowMs))
    this.refuses(() => this.gate.handle({ kind: 'bounce', permitId, cause: 'reset' }, this.nowMs))
  }

  bounce(permit: Permit, cause: BounceCause): void {
    const { permitId, requestId, replicaId, offer } = permit
    const others = [...this.gate.state.replicas.values()].filter(
      ({ report }) =>
        report.replicaId !== replicaId &&
        report.pools.includes(offer.pool) &&
        (report.state === 'live' || report.state === 'ramping'),
    )
    this.permits.delete(permitId)
    const story = this.stories.get(requestId)
    if (others.length > 0 || cause !== 'engine_full') story?.barred.add(replicaId)
    const rerouted = this.gate.counts.rerouted
    const effects = this.tell({ kind: 'bounce', permitId, cause })
    if (this.gate.counts.rerouted === rerouted)
      must(effects[0]?.kind === 'fail' && effects[0].requestId === requestId, 'no second chance is a failure')
    else if (cause === 'engine_full') this.#checkBudget(effects)
    this.refuses(() => this.gate.handle({ kind: 'settle', permitId, report: END }, this.nowMs))
  }

  /** The call throws and leaves everything as it was. */
  refuses(call: () => unknown): void {
    const before = this.#books()
    let thrown: unknown
    try {
      call()
    } catch (error) {
      thrown = error
    }
    must(thrown instanceof RangeError, `a second end throws a RangeError, not ${thrown}`)
    must(this.#books() === before, 'a refused call changes nothing')
  }

  /** Ends everything: what runs completes, what waits leaves. */
  drain(): void {
    for (const permit of [...this.permits.values()]) this.settle(permit, 'completed')
    for (const { requestId } of this.waiting) this.tell({ kind: 'cancel', requestId })
    for (const permit of [...this.permits.values()]) this.settle(permit, 'client_left')
    must(this.gate.inFlight === 0, 'no permit is out')
    for (const ledger of this.gate.state.replicas.values()) {
      const { backlogTokens, contextTokens, inFlightSequences, decodingSequences, inFlightRequests } = ledger
      const sums = { backlogTokens, contextTokens, inFlightSequences, decodingSequences, inFlightRequests }
      must(
        Object.values(sums).every((sum) => sum === 0),
        `an idle ledger has ${JSON.stringify(sums)}`,
      )
    }
    const { requests, bytes, tokens } = this.gate.state.waiting
    must(requests === 0 && bytes === 0 && tokens === 0, 'the waiting room is empty')
    for (const [requestId, { settlements }] of this.stories)
      must(settlements === 1, `${requestId} settled ${settlements} times`)
  }

  #obey(effect: GateEffect): void {
    if (effect.kind === 'wakeAt') {
      must(effect.atMs >= this.nowMs, `a wish for ${effect.atMs} at ${this.nowMs}`)
      this.#wakeAtMs = effect.atMs
    } else if (effect.kind === 'dispatch') this.#dispatch(effect)
    else if (effect.kind === 'settled') {
      const story = this.stories.get(effect.settlement.requestId)
      if (story === undefined) throw new Error(`settled unknown ${effect.settlement.requestId}`)
      story.settlements++
      must(story.settlements === 1, `${effect.settlement.requestId} settles once`)
      must(effect.settlement.attempts === story.dispatches, 'attempts are dispatches')
    }
  }

  #dispatch({ requestId, permitId, replicaId, attempt, record }: GateEffect & { kind: 'dispatch' }): void {
    const story = this.stories.get(requestId)
    const report = this.gate.state.replicas.get(replicaId)?.report
    if (story === undefined || report === undefined)
      throw new Error(`dispatched ${requestId} to ${replicaId}`)
    story.dispatches++
    must(attempt === story.dispatches && attempt <= 2, `attempt ${attempt} of ${requestId}`)
    must(story.settlements === 0, `${requestId} goes out before its end`)
    must(!story.barred.has(replicaId), `${requestId} goes not back to ${replicaId}, which had failed it`)
    must(report.state === 'live' || report.state === 'ramping', `${replicaId} is ${report.state}`)
    must(report.pools.includes(story.offer.pool), `${replicaId} serves ${story.offer.pool}`)
    must(!this.permits.has(permitId) && record.waitedMs >= 0, 'the permit is new')
    this.permits.set(permitId, { permitId, requestId, replicaId, offer: story.offer, contentEvents: 0 })
    this.#dispatchedAtMs.push(this.nowMs)
  }

  #checkBooks(event: GateEvent): void {
    const { counts, state, inFlight } = this.gate
    const { offered, shed, cancelled, failed, settled } = counts
    const { waiting } = state
    const ends = shed + cancelled + failed + waiting.requests + inFlight + settled
    must(
      ends === offered,
      `after ${event.kind} the books are ${JSON.stringify(counts)}, ${inFlight} in flight`,
    )
    const parts = [...Object.values(counts), waiting.bytes, waiting.tokens, inFlight]
    must(
      parts.every((count) => count >= 0),
      `nothing is negative: ${parts}`,
    )
    must(this.permits.size === inFlight, `${inFlight} permits are out, and ${this.permits.size} were given`)
    const { requests, bytes, tokens } = this.settings.waiting
    const within = waiting.requests <= requests && waiting.bytes <= bytes && waiting.tokens <= tokens
    must(
      within || [...waiting].every(({ attempt }) => attempt === 2),
      'the room is within its limits, but for second attempts',
    )
    const expiryAtMs = waiting.nextExpiryAtMs() ?? Number.POSITIVE_INFINITY
    const woken =
      !Number.isFinite(expiryAtMs) || (this.#wakeAtMs ?? Number.POSITIVE_INFINITY) <= expiryAtMs + TIMER_MS
    must(woken, `woken at ${this.#wakeAtMs}, but a waiter expires at ${expiryAtMs}`)
    for (const ledger of state.replicas.values()) this.#checkLedger(ledger)
    for (const { permitId, replicaId } of this.permits.values())
      must(state.replicas.has(replicaId), `permit ${permitId} is out at ${replicaId}, which is forgotten`)
    for (const replicaId of this.gone) {
      const used = [...this.permits.values()].some((permit) => permit.replicaId === replicaId)
      must(used || !state.replicas.has(replicaId), `${replicaId} is gone`)
    }
  }

  #checkLedger(ledger: ReplicaLedger): void {
    const { replicaId, backlogTokens, contextTokens } = ledger
    must(backlogTokens >= 0 && contextTokens >= 0, `${replicaId}: ${backlogTokens}, ${contextTokens}`)
    let requests = 0
    let sequences = 0
    for (const permit of this.permits.values()) {
      if (permit.replicaId !== replicaId) continue
      requests++
      sequences += permit.offer.sequences
    }
    must(ledger.inFlightRequests === requests, `requests at ${replicaId}`)
    must(ledger.inFlightSequences === sequences, `sequences at ${replicaId}`)
  }

  /** At most the share of the dispatches of the last ten slots of a second, and never fewer than the floor. */
  #checkBudget(effects: readonly GateEffect[]): void {
    this.#reroutedAtMs.push(this.nowMs)
    const own = effects.filter(({ kind }) => kind === 'dispatch').length
    const recent = (instants: readonly number[]) =>
      instants.filter((atMs) => Math.floor(atMs / 1000) > Math.floor(this.nowMs / 1000) - 10).length
    const dispatches = recent(this.#dispatchedAtMs) - own
    const allowed = Math.max(REROUTE_FLOOR_REQUESTS, this.settings.rerouteBudgetRatio * dispatches)
    must(recent(this.#reroutedAtMs) <= allowed, `no more than ${allowed} reroutes`)
  }

  #books(): string {
    const { counts, inFlight, state } = this.gate
    const { requests, bytes, tokens } = state.waiting
    const ledgers = [...state.replicas.values()].map((ledger) => [
      ledger.replicaId,
      ledger.backlogTokens,
      ledger.contextTokens,
      ledger.inFlightSequences,
      ledger.inFlightRequests,
      ledger.version,
    ])
    return JSON.stringify([counts, inFlight, requests, bytes, tokens, ledgers])
  }
}

/** The gate never asks to be woken sooner than that from now. */
const TIMER_MS = 1

const END = { outcome: 'completed', endedAtMs: 0, contentEvents: 0 } as const

/** Plain, since a run checks millions of these and an assertion library would take most of the time. */
function must(holds: boolean, law: string): void {
  if (!holds) throw new Error(`law broken: ${law}`)
}
