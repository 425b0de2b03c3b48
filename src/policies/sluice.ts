/** Our scheduler: predicts each request on each replica, keeps what can be kept, and sheds the rest early. */
import type { ReplicaLedger } from '../core/ledger.ts'
import type { Offer, PoolId } from '../core/request.ts'
import type { GateState, Scheduler } from '../core/scheduler.ts'
import { clamp, type Ms } from '../core/units.ts'
import type { StepPrior } from '../estimate/step-model.ts'
import { Learnt } from './learnt.ts'
import { engineTtftMs, lastDispatchTtftMs, outlook } from './outlook.ts'
import type { SluicePart } from './parts.ts'
import { planPool, viewOf } from './plan-pool.ts'
import { replicasWanted } from './replicas-wanted.ts'

export interface SluiceOptions {
  /** What is believed of replica groups before anything is seen, by group id. */
  readonly priors?: Readonly<Record<string, StepPrior>>
  /** Where it keeps what it learns; default: its own, empty. One that knows the truth shows what estimates cost. */
  readonly learnt?: Learnt
  /** Parts that it does without; default: none. */
  readonly without?: readonly SluicePart[]
}

/** Retry advice is kept within this span, in ms; SDKs ignore more than 60 s. */
const MIN_RETRY_MS: Ms = 1000
const MAX_RETRY_MS: Ms = 60_000

export function createSluice(options: SluiceOptions = {}): Scheduler {
  const learnt = options.learnt ?? new Learnt(options.priors ?? {})
  const without = new Set(options.without)
  const poolGroups = new Map<PoolId, Set<string>>()
  return {
    name: 'sluice',
    plan(state, nowMs) {
      let wakeAtMs = Number.POSITIVE_INFINITY
      for (const pool of poolsWaiting(state)) {
        const plan = planPool({ pool, state, learnt, without, nowMs })
        if (plan.intents.length > 0) return plan
        wakeAtMs = Math.min(wakeAtMs, plan.wakeAtMs ?? Number.POSITIVE_INFINITY)
      }
      return Number.isFinite(wakeAtMs) ? { intents: [], wakeAtMs } : { intents: [] }
    },
    view: (waiter, replicaId, state, nowMs) =>
      viewOf({ pool: waiter.offer.pool, state, learnt, without, nowMs }, waiter, replicaId),
    trusted: (pool) => [...(poolGroups.get(pool) ?? [])].some((groupId) => learnt.trusted(groupId)),
    dispatched(inFlight, ledger, nowMs) {
      noteGroup(poolGroups, ledger)
      learnt.dispatched(inFlight, ledger, lastDispatchTtftMs(outlook(ledger, learnt, 1, nowMs)), nowMs)
    },
    progress: (ledger, contentEvents, nowMs) => learnt.progress(ledger, contentEvents, nowMs),
    firstToken: (inFlight, ledger, nowMs) => learnt.firstToken(inFlight, ledger, nowMs),
    settled: (inFlight, ledger, report, _verdict, nowMs) => learnt.released(inFlight, ledger, report, nowMs),
    bounced: (inFlight, ledger, _cause, nowMs) => learnt.released(inFlight, ledger, undefined, nowMs),
    replicaReset: (replicaId) => learnt.reset(replicaId),
    retryAfterMs: (state, offer, nowMs) => retryAfterMs(state, offer, learnt, nowMs),
    replicasWanted: (state, pool, demand) => replicasWanted(pool, demand, state, learnt),
    snapshot: () => learnt.snapshot(),
  }
}

function noteGroup(groups: Map<PoolId, Set<string>>, ledger: ReplicaLedger): void {
  for (const pool of ledger.report.pools) {
    const known = groups.get(pool)
    if (known === undefined) groups.set(pool, new Set([ledger.report.groupId]))
    else known.add(ledger.report.groupId)
  }
}

function poolsWaiting(state: GateState): ReadonlySet<PoolId> {
  const pools = new Set<PoolId>()
  for (const { offer } of state.waiting) pools.add(offer.pool)
  return pools
}

/** When the work that waits for that pool will be prefilled, spread over its replicas, in ms from now. */
function retryAfterMs(state: GateState, offer: Offer, learnt: Learnt, nowMs: Ms): Ms {
  let waitingTokens = 0
  for (const waiter of state.waiting) {
    if (waiter.offer.pool === offer.pool) waitingTokens += waiter.offer.promptTokens
  }
  const views = [...state.replicas.values()]
    .filter(({ report }) => report.pools.includes(offer.pool))
    .map((ledger) => outlook(ledger, learnt, state.instances, nowMs))
  if (views.length === 0) return MAX_RETRY_MS / 10
  const each = waitingTokens / views.length + offer.promptTokens
  const soonestMs = Math.min(...views.map((view) => engineTtftMs(view, each)))
  return clamp(soonestMs, MIN_RETRY_MS, MAX_RETRY_MS)
}
