/** The gate: the state machine that turns events into effects and is the only mutable owner of decisions. */
import { Advisory } from './advice.ts'
import { decisionRecord } from './decision.ts'
import type { GateEffect, ShedReason } from './effects.ts'
import type { BounceCause, GateEvent, PermitId } from './events.ts'
import { type GateCounts, type GateOptions, zeroCounts } from './gate-options.ts'
import type { GateSettings, TenantLimits } from './gate-settings.ts'
import { newInFlight, Permits } from './permits.ts'
import type { CandidateView, DecisionRecord, Judge, SettleReport, Verdict } from './records.ts'
import type { Offer, ReplicaId } from './request.ts'
import { RerouteBudget } from './reroute-budget.ts'
import type { GateState, Intent, Scheduler } from './scheduler.ts'
import { settleInFlight, settleWaiter } from './settlement.ts'
import { surplusOf } from './surplus.ts'
import { TenantLimiter } from './tenant-limiter.ts'
import type { Ms } from './units.ts'
import { newWaiter, secondWaiter, type Waiter, WaitingRoom } from './waiting-room.ts'

type Refusal = Pick<Intent & { kind: 'shed' }, 'reason' | 'retryAfterMs' | 'candidates'>

/** How long a replica that called itself full is left alone, whatever ends there meanwhile, in ms. */
const ENGINE_FULL_HOLD_MS: Ms = 200
/** Soonest look again, so that a wish for the past can't hold up time. */
const MIN_WAKE_MS: Ms = 1
/** A scheduler that still has intents after so many rounds of one event is broken. */
const MAX_ROUNDS = 100_000

/** A gate with nothing in it yet. */
export function createGate(options: GateOptions): Gate {
  return new Gate(options)
}

export class Gate {
  readonly counts: GateCounts = zeroCounts()
  #scheduler: Scheduler
  readonly #advisory = new Advisory()
  /** Whoever learns from what happens: the scheduler, and the advisor when there is one. */
  #learners: readonly Scheduler[] = []
  readonly #judge: Judge
  #settings: GateSettings
  readonly #waiting = new WaitingRoom()
  readonly #permits = new Permits((replicaId) => {
    for (const learner of this.#learners) learner.replicaReset(replicaId)
  })
  readonly #tenants = new TenantLimiter()
  readonly #reroutes = new RerouteBudget()
  #lastPermitId = 0
  #toldWakeAtMs: Ms | undefined
  #effects: GateEffect[] = []

  constructor(options: GateOptions) {
    this.#settings = options.settings
    this.#judge = options.judge
    this.#scheduler = options.scheduler
    this.adopt(options.scheduler, options.advisor)
  }

  /** Changes who decides and who only advises; a scheduler that stays keeps what it has learnt. */
  adopt(scheduler: Scheduler, advisor?: Scheduler): void {
    this.#scheduler = scheduler
    this.#learners = advisor === undefined ? [scheduler] : [scheduler, advisor]
    this.#advisory.adopt(advisor)
  }

  get state(): GateState {
    return { waiting: this.#waiting, replicas: this.#permits.replicas, instances: this.#settings.instances }
  }

  /** Permits out now. */
  get inFlight(): number {
    return this.#permits.size
  }

  /** Handles one event at `nowMs` and returns what is to be done, in order. Instants never run backwards. */
  handle(event: GateEvent, nowMs: Ms): readonly GateEffect[] {
    this.#effects = []
    this.#permits.assumeFirstTokens(nowMs)
    this.#apply(event, nowMs)
    // Tokens alone change no plan before the instant at which it wants to be looked at again.
    if (event.kind === 'progress' && nowMs < (this.#toldWakeAtMs ?? Number.POSITIVE_INFINITY))
      return this.#effects
    this.#expire(nowMs)
    this.#plan(nowMs)
    return this.#effects
  }

  #apply(event: GateEvent, nowMs: Ms): void {
    switch (event.kind) {
      case 'offer':
        this.#offer(event.offer, nowMs)
        break
      case 'firstToken':
        this.#firstToken(event, nowMs)
        break
      case 'progress':
        this.#progress(event.permitIds, event.contentEvents, nowMs)
        break
      case 'settle':
        this.#settle(event.permitId, event.report, nowMs)
        break
      case 'bounce':
        this.#bounce(event.permitId, event.cause, nowMs)
        break
      case 'cancel':
        this.#cancel(event, nowMs)
        break
      case 'replicaChanged':
        this.#permits.change(event.replica)
        break
      case 'replicaRemoved':
        this.#permits.remove(event.replicaId)
        break
      case 'configured':
        this.#settings = event.settings
        break
      case 'tick':
        // It used up the timer, so a wish that still stands has to be told again.
        this.#toldWakeAtMs = undefined
        break
      default:
        event satisfies never
    }
  }

  #offer(offer: Offer, nowMs: Ms): void {
    this.#waiting.checkNew(offer.requestId)
    this.counts.offered++
    const waiter = newWaiter(offer, nowMs)
    const retryAfterMs = this.#tenants.take(offer.tenant, this.#limitsOf(offer), offer.promptTokens, nowMs)
    if (retryAfterMs !== undefined) {
      this.#refuse(waiter, { reason: 'tenant_limit', retryAfterMs, candidates: [] }, nowMs)
      return
    }
    this.#waiting.add(waiter)
    this.#advisory.ask(offer.requestId, this.state, nowMs)
  }

  #firstToken({ permitId, opaque }: GateEvent & { kind: 'firstToken' }, nowMs: Ms): void {
    const ledger = this.#permits.ledger(permitId)
    const inFlight = ledger.prefilling.get(permitId)
    if (inFlight === undefined) return
    if (opaque === true) inFlight.opaque = true
    for (const learner of this.#learners) learner.firstToken(inFlight, ledger, nowMs)
    ledger.firstToken(permitId, nowMs)
  }

  #progress(permitIds: readonly PermitId[], contentEvents: readonly number[], nowMs: Ms): void {
    for (const [ledger, events] of this.#permits.progress(permitIds, contentEvents, nowMs)) {
      for (const learner of this.#learners) learner.progress(ledger, events, nowMs)
    }
  }

  #settle(permitId: PermitId, report: SettleReport, nowMs: Ms): void {
    const ledger = this.#permits.ledger(permitId)
    const inFlight = this.#permits.release(permitId)
    const settlement = settleInFlight(inFlight, report, this.#judge)
    for (const learner of this.#learners) learner.settled(inFlight, ledger, report, settlement.verdict, nowMs)
    this.#permits.dropIfGone(ledger)
    this.#leave(inFlight.offer)
    this.counts.settled++
    this.#effects.push({ kind: 'settled', settlement })
  }

  #bounce(permitId: PermitId, cause: BounceCause, nowMs: Ms): void {
    const ledger = this.#permits.ledger(permitId)
    const inFlight = this.#permits.release(permitId)
    this.counts.bounced++
    if (cause === 'engine_full') ledger.fullUntilAtMs = nowMs + ENGINE_FULL_HOLD_MS
    for (const learner of this.#learners) learner.bounced(inFlight, ledger, cause, nowMs)
    this.#permits.dropIfGone(ledger)
    const { offer } = inFlight
    const second = this.#permits.secondAttempt(inFlight, cause)
    if (second === undefined || !this.#reroutes.take(this.#settings.rerouteBudgetRatio, nowMs, cause)) {
      this.#leave(offer)
      this.counts.failed++
      this.#effects.push({ kind: 'fail', requestId: offer.requestId, reason: 'upstream_failed' })
      const end = { outcome: 'upstream_failed' } as const
      this.#effects.push({ kind: 'settled', settlement: settleWaiter(inFlight, end, this.#judge, nowMs) })
      return
    }
    this.counts.rerouted++
    this.#waiting.add(secondWaiter(inFlight, second, nowMs))
  }

  #cancel({ requestId, outcome = 'cancelled' }: GateEvent & { kind: 'cancel' }, nowMs: Ms): void {
    const waiter = this.#waiting.remove(requestId)
    if (waiter === undefined) return
    this.#leave(waiter.offer)
    this.#advisory.take(requestId)
    this.counts.cancelled++
    this.#effects.push({ kind: 'drop', requestId })
    const settlement = settleWaiter(waiter, { outcome }, this.#judge, nowMs)
    this.#effects.push({ kind: 'settled', settlement })
  }

  #expire(nowMs: Ms): void {
    const soonest = this.#waiting.nextExpiryAtMs()
    if (soonest === undefined || soonest > nowMs) return
    for (const waiter of [...this.#waiting]) {
      if (waiter.expiresAtMs > nowMs) continue
      this.#shedWaiter(waiter, this.#refusal('wait_expired', waiter.offer, nowMs), nowMs)
    }
  }

  #plan(nowMs: Ms): void {
    let wakeAtMs: Ms | undefined
    for (let round = 0; this.#waiting.requests > 0; round++) {
      if (round > MAX_ROUNDS) throw new RangeError(`scheduler ${this.#scheduler.name} never comes to rest`)
      const plan = this.#scheduler.plan(this.state, nowMs)
      wakeAtMs = plan.wakeAtMs
      if (plan.intents.length === 0) break
      for (const intent of plan.intents) this.#carryOut(intent, nowMs)
    }
    // Only now: who is sent on or refused at once takes no place from anybody.
    for (const waiter of surplusOf(this.#waiting, this.#settings.waiting, nowMs))
      this.#shedWaiter(waiter, this.#refusal('waiting_full', waiter.offer, nowMs), nowMs)
    this.#wake(wakeAtMs, nowMs)
  }

  #wake(planned: Ms | undefined, nowMs: Ms): void {
    if (this.#waiting.requests === 0) {
      this.#toldWakeAtMs = undefined
      return
    }
    const wishes = [planned, this.#waiting.nextExpiryAtMs(), this.#permits.nextAssumedAtMs()]
    let atMs = Math.min(...wishes.map((wish) => wish ?? Number.POSITIVE_INFINITY))
    if (!Number.isFinite(atMs)) return
    atMs = Math.max(atMs, nowMs + MIN_WAKE_MS)
    if (atMs === this.#toldWakeAtMs) return
    this.#toldWakeAtMs = atMs
    this.#effects.push({ kind: 'wakeAt', atMs })
  }

  #carryOut(intent: Intent, nowMs: Ms): void {
    const waiter = this.#waiting.get(intent.requestId)
    if (waiter === undefined)
      throw new RangeError(`${intent.kind} of request ${intent.requestId} that does not wait`)
    if (intent.kind === 'admit') this.#admit(waiter, intent.replicaId, intent.candidates, nowMs)
    else this.#shedWaiter(waiter, intent, nowMs)
  }

  #admit(waiter: Waiter, replicaId: ReplicaId, candidates: readonly CandidateView[], nowMs: Ms): void {
    const { offer, attempt } = waiter
    const ledger = this.#permits.replicas.get(replicaId)
    if (ledger === undefined) throw new RangeError(`admit to unknown replica ${replicaId}`)
    this.#waiting.remove(offer.requestId)
    const chosen =
      this.#advisory.viewOf(waiter, replicaId, this.state, nowMs) ??
      candidates.find((candidate) => candidate.replicaId === replicaId)
    const inFlight = newInFlight(++this.#lastPermitId, waiter, ledger, chosen, nowMs)
    this.#permits.give(inFlight, ledger)
    for (const learner of this.#learners) learner.dispatched(inFlight, ledger, nowMs)
    this.#reroutes.dispatched(nowMs)
    this.counts.dispatched++
    const { permitId } = inFlight
    const record = this.#record(waiter, { kind: 'admit', replicaId, permitId }, candidates, nowMs)
    this.#effects.push({ kind: 'dispatch', requestId: offer.requestId, permitId, replicaId, attempt, record })
  }

  #shedWaiter(waiter: Waiter, refusal: Refusal, nowMs: Ms): void {
    this.#waiting.remove(waiter.offer.requestId)
    this.#leave(waiter.offer)
    this.#refuse(waiter, refusal, nowMs)
  }

  #refuse(waiter: Waiter, refusal: Refusal, nowMs: Ms): void {
    this.counts.shed++
    const { requestId } = waiter.offer
    const { reason, retryAfterMs, candidates } = refusal
    const retry = retryAfterMs === undefined ? {} : { retryAfterMs }
    const record = this.#record(waiter, { kind: 'shed', reason, ...retry }, candidates, nowMs)
    this.#effects.push({ kind: 'shed', requestId, reason, ...retry, record })
    const end = { outcome: 'shed', shedReason: reason } as const
    this.#effects.push({ kind: 'settled', settlement: settleWaiter(waiter, end, this.#judge, nowMs) })
  }

  #record(waiter: Waiter, verdict: Verdict, candidates: readonly CandidateView[], nowMs: Ms): DecisionRecord {
    const { requestId, pool } = waiter.offer
    const advice = this.#advisory.take(requestId)
    const trusted = (this.#advisory.advisor ?? this.#scheduler).trust(pool) !== 'fallback'
    const { configDigest } = this.#settings
    return decisionRecord(waiter, { verdict, candidates, advice, trusted, configDigest }, nowMs)
  }

  #refusal(reason: ShedReason, offer: Offer, nowMs: Ms): Refusal {
    return { reason, retryAfterMs: this.#scheduler.retryAfterMs(this.state, offer, nowMs), candidates: [] }
  }

  #limitsOf(offer: Offer): TenantLimits | undefined {
    return this.#settings.tenants[offer.tenant]
  }

  #leave(offer: Offer): void {
    this.#tenants.release(offer.tenant, this.#limitsOf(offer))
  }
}
