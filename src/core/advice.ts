/** Shadow mode: what a scheduler that decides nothing would have done with each newcomer, and what it sees meanwhile. */
import { PassingMap } from './passing-map.ts'
import type { CandidateView, Verdict } from './records.ts'
import type { ReplicaId, RequestId } from './request.ts'
import type { GateState, Intent, Scheduler } from './scheduler.ts'
import type { Ms } from './units.ts'
import type { Waiter } from './waiting-room.ts'

export interface Advice {
  readonly verdict: Verdict
  readonly candidates: readonly CandidateView[]
}

/** The advisor and what it has said of those who are not decided yet. Without an advisor it knows nothing. */
export class Advisory {
  advisor: Scheduler | undefined
  #given = new PassingMap<RequestId, Advice>()

  /** From now on that scheduler advises; what the last one said is forgotten. */
  adopt(advisor: Scheduler | undefined): void {
    this.advisor = advisor
    this.#given = new PassingMap()
  }

  /** Asks about one waiter; nothing of the plan is carried out. */
  ask(requestId: RequestId, state: GateState, nowMs: Ms): void {
    if (this.advisor === undefined) return
    const plan = this.advisor.plan(state, nowMs)
    const intent = plan.intents.find((candidate) => candidate.requestId === requestId)
    const verdict = verdictOf(intent, plan.wakeAtMs ?? nowMs)
    this.#given.set(requestId, { verdict, candidates: intent?.candidates ?? [] })
  }

  /**
   * The advisor's view of the replica that somebody else has chosen, so that it learns from its own predictions. It goes
   * into what was said of the waiter, where it may be missing: an advisor that would wait, or go elsewhere, names no view.
   */
  viewOf(waiter: Waiter, replicaId: ReplicaId, state: GateState, nowMs: Ms): CandidateView | undefined {
    const { requestId } = waiter.offer
    const given = this.#given.get(requestId)
    const told = given?.candidates.find((candidate) => candidate.replicaId === replicaId)
    const view = told ?? this.advisor?.view?.(waiter, replicaId, state, nowMs)
    if (given !== undefined && told === undefined && view !== undefined)
      this.#given.set(requestId, { ...given, candidates: [...given.candidates, view] })
    return view
  }

  /** What was said of a request that is being decided, or is gone; it is forgotten with this. */
  take(requestId: RequestId): Advice | undefined {
    const given = this.#given.get(requestId)
    this.#given.delete(requestId)
    return given
  }
}

function verdictOf(intent: Intent | undefined, wakeAtMs: Ms): Verdict {
  if (intent === undefined) return { kind: 'wait', untilAtMs: wakeAtMs }
  if (intent.kind === 'admit') return { kind: 'admit', replicaId: intent.replicaId, permitId: 0 }
  const retry = intent.retryAfterMs === undefined ? {} : { retryAfterMs: intent.retryAfterMs }
  return { kind: 'shed', reason: intent.reason, ...retry }
}
