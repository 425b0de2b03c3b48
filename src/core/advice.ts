/** Shadow mode: what a scheduler that decides nothing would have done with each newcomer. */
import type { CandidateView, Verdict } from './records.ts'
import type { RequestId } from './request.ts'
import type { GateState, Intent, Scheduler } from './scheduler.ts'
import type { Ms } from './units.ts'

export interface Advice {
  readonly verdict: Verdict
  readonly candidates: readonly CandidateView[]
}

/** Asks the advisor about one waiter; nothing of its plan is carried out. */
export function askAdvice(advisor: Scheduler, requestId: RequestId, state: GateState, nowMs: Ms): Advice {
  const plan = advisor.plan(state, nowMs)
  const intent = plan.intents.find((candidate) => candidate.requestId === requestId)
  return { verdict: verdictOf(intent, plan.wakeAtMs ?? nowMs), candidates: intent?.candidates ?? [] }
}

function verdictOf(intent: Intent | undefined, wakeAtMs: Ms): Verdict {
  if (intent === undefined) return { kind: 'wait', untilAtMs: wakeAtMs }
  if (intent.kind === 'admit') return { kind: 'admit', replicaId: intent.replicaId, permitId: 0 }
  const retry = intent.retryAfterMs === undefined ? {} : { retryAfterMs: intent.retryAfterMs }
  return { kind: 'shed', reason: intent.reason, ...retry }
}
