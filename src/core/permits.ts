/** Every permit that is out and the ledger it stands in; replicas come, change and go here. */
import type { Draft } from './draft.ts'
import { mayServe, takesWork } from './eligible.ts'
import type { BounceCause, PermitId } from './events.ts'
import { type InFlight, ReplicaLedger } from './ledger.ts'
import { PassingMap } from './passing-map.ts'
import type { CandidateView } from './records.ts'
import type { ReplicaReport } from './replica.ts'
import type { ReplicaId } from './request.ts'
import type { Ms } from './units.ts'
import type { Waiter } from './waiting-room.ts'

/** When an answer that does not stream is assumed to decode if nothing was predicted, in ms after dispatch. */
const ASSUMED_PREFILL_MS: Ms = 500

interface Permit {
  readonly inFlight: InFlight
  readonly ledger: ReplicaLedger
}

export class Permits {
  readonly #replicas = new Map<ReplicaId, ReplicaLedger>()
  readonly #out = new PassingMap<PermitId, Permit>()
  readonly #removed = new Set<ReplicaId>()
  /** Permits whose first token nobody sees, with the instant at which it is assumed. */
  readonly #unseen = new PassingMap<PermitId, Ms>()
  /** The soonest of them; undefined when it must be looked up again. */
  #nextUnseenAtMs: Ms | undefined
  readonly #forget: (replicaId: ReplicaId) => void

  /** `forget` is called when what a replica had cached is gone: it restarted or was removed. */
  constructor(forget: (replicaId: ReplicaId) => void) {
    this.#forget = forget
  }

  get replicas(): ReadonlyMap<ReplicaId, ReplicaLedger> {
    return this.#replicas
  }

  /** Permits out now. */
  get size(): number {
    return this.#out.size
  }

  /** The ledger that a permit stands in. A permit that is not out is a caller's bug. */
  ledger(permitId: PermitId): ReplicaLedger {
    const permit = this.#out.get(permitId)
    if (permit === undefined) throw new RangeError(`permit ${permitId} is not out`)
    return permit.ledger
  }

  give(inFlight: InFlight, ledger: ReplicaLedger): void {
    ledger.dispatch(inFlight)
    this.#out.set(inFlight.permitId, { inFlight, ledger })
    if (inFlight.offer.streamed) return
    const { predictedTtftMs, dispatchedAtMs, offer } = inFlight
    const atMs =
      predictedTtftMs === undefined
        ? dispatchedAtMs + ASSUMED_PREFILL_MS
        : offer.receivedAtMs + predictedTtftMs
    this.#unseen.set(inFlight.permitId, Math.max(atMs, dispatchedAtMs))
    this.#nextUnseenAtMs = undefined
  }

  /** Takes a permit back, once. When whoever learns has heard of it, `dropIfGone` is due. */
  release(permitId: PermitId): InFlight {
    const ledger = this.ledger(permitId)
    const inFlight = ledger.release(permitId)
    this.#out.delete(permitId)
    if (this.#unseen.delete(permitId)) this.#nextUnseenAtMs = undefined
    return inFlight
  }

  /** Books content events of many permits; returns their sum by ledger. Permits that are gone are skipped. */
  progress(
    permitIds: readonly PermitId[],
    contentEvents: readonly number[],
    nowMs: Ms,
  ): ReadonlyMap<ReplicaLedger, number> {
    const totals = new Map<ReplicaLedger, number>()
    // By index: this loop is all that runs for each stream that moves.
    for (let i = 0; i < permitIds.length; i++) {
      const permit = this.#out.get(permitIds[i] ?? Number.NaN)
      const events = contentEvents[i] ?? 0
      if (permit === undefined || !(events > 0)) continue
      const { inFlight, ledger } = permit
      if (inFlight.firstTokenAtMs === undefined) continue
      ledger.progress(inFlight, events, nowMs)
      totals.set(ledger, (totals.get(ledger) ?? 0) + events)
    }
    return totals
  }

  /** Moves answers that don't stream on to decoding when their prefill should be over. */
  assumeFirstTokens(nowMs: Ms): void {
    if (nowMs < (this.nextAssumedAtMs() ?? Number.POSITIVE_INFINITY)) return
    this.#nextUnseenAtMs = undefined
    for (const [permitId, atMs] of this.#unseen) {
      if (atMs > nowMs) continue
      this.#unseen.delete(permitId)
      this.#out.get(permitId)?.ledger.firstToken(permitId, nowMs)
    }
  }

  /** The next instant at which a first token will be assumed. */
  nextAssumedAtMs(): Ms | undefined {
    if (this.#unseen.size === 0) return undefined
    if (this.#nextUnseenAtMs === undefined) {
      let soonestAtMs = Number.POSITIVE_INFINITY
      for (const atMs of this.#unseen.values()) soonestAtMs = Math.min(soonestAtMs, atMs)
      this.#nextUnseenAtMs = soonestAtMs
    }
    return this.#nextUnseenAtMs
  }

  change(report: ReplicaReport): void {
    this.#removed.delete(report.replicaId)
    const ledger = this.#replicas.get(report.replicaId)
    if (ledger === undefined) {
      this.#replicas.set(report.replicaId, new ReplicaLedger(report))
      return
    }
    if (report.generation !== ledger.report.generation) this.#forget(report.replicaId)
    ledger.report = report
  }

  /** Lets a replica finish what it has and then forgets it. */
  remove(replicaId: ReplicaId): void {
    const ledger = this.#replicas.get(replicaId)
    if (ledger === undefined) return
    ledger.report = { ...ledger.report, state: 'draining' }
    this.#removed.add(replicaId)
    this.dropIfGone(ledger)
  }

  /** Forgets a removed replica once nothing is in flight there any more. */
  dropIfGone(ledger: ReplicaLedger): void {
    if (ledger.inFlightRequests > 0 || !this.#removed.delete(ledger.replicaId)) return
    this.#replicas.delete(ledger.replicaId)
    this.#forget(ledger.replicaId)
  }

  /** The replicas that a second attempt must avoid, or undefined when none is to be made. */
  secondAttempt(inFlight: InFlight, cause: BounceCause): readonly ReplicaId[] | undefined {
    if (inFlight.attempt === 2) return undefined
    const excluded = [inFlight.replicaId]
    if (this.#hasOther({ offer: inFlight.offer, excluded })) return excluded
    return cause === 'engine_full' ? [] : undefined
  }

  #hasOther(second: Pick<Waiter, 'offer' | 'excluded'>): boolean {
    for (const { report } of this.#replicas.values())
      if (takesWork(report) && mayServe(second, report)) return true
    return false
  }
}

/** The books' entry for a waiter that is about to be dispatched to `ledger`'s replica. */
export function newInFlight(
  permitId: PermitId,
  waiter: Waiter,
  ledger: ReplicaLedger,
  chosen: CandidateView | undefined,
  nowMs: Ms,
): InFlight {
  const { offer, attempt, enteredAtMs } = waiter
  const inFlight: Draft<InFlight> = {
    permitId,
    requestId: offer.requestId,
    replicaId: ledger.replicaId,
    offer,
    attempt,
    enteredAtMs,
    dispatchedAtMs: nowMs,
    uncachedTokens: chosen?.uncachedTokens ?? offer.promptTokens,
    contentEvents: 0,
  }
  if (chosen?.predictedTtftMs !== undefined) inFlight.predictedTtftMs = chosen.predictedTtftMs
  return inFlight
}
