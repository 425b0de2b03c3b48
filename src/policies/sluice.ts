/** Our scheduler: predicts each request on each replica, keeps what can be kept, and sheds the rest early. */
import { offerPairs } from '../core/attention.ts'
import type { Offer } from '../core/request.ts'
import { MAX_RETRY_MS, MIN_RETRY_MS, OUTAGE_RETRY_MS } from '../core/retry-advice.ts'
import type { GateState, Scheduler } from '../core/scheduler.ts'
import { clamp, type Ms } from '../core/units.ts'
import type { StepPrior } from '../estimate/step-model.ts'
import { countServed } from './early-shed.ts'
import { Learnt } from './learnt.ts'
import { engineTtftMs, outlook } from './outlook.ts'
import type { SluicePart } from './parts.ts'
import { planPool, takers, viewOf } from './plan-pool.ts'
import { adviseOnPool } from './pool-advice.ts'
import { replicasWanted } from './replicas-wanted.ts'
import { trustIn } from './round.ts'

export interface SluiceOptions {
  /** What is believed of replica groups before anything is seen, by group id. */
  readonly priors?: Readonly<Record<string, StepPrior>>
  /** Where it keeps what it learns; default: its own, empty. One that knows the truth shows what estimates cost. */
  readonly learnt?: Learnt
  /** Parts that it does without; default: none. */
  readonly without?: readonly SluicePart[]
}

export function createSluice(options: SluiceOptions = {}): Scheduler {
  const learnt = options.learnt ?? new Learnt(options.priors ?? {})
  const without = new Set(options.without)
  /** The gate's own books, to be read between plans. */
  let replicas: GateState['replicas'] = new Map()
  let instances = 1
  return {
    name: 'sluice',
    plan(state, nowMs) {
      replicas = state.replicas
      instances = state.instances
      let wakeAtMs = Number.POSITIVE_INFINITY
      for (const pool of state.waiting.pools()) {
        const plan = planPool({ pool, state, learnt, without, nowMs })
        if (plan.intents.length > 0) return plan
        wakeAtMs = Math.min(wakeAtMs, plan.wakeAtMs ?? Number.POSITIVE_INFINITY)
      }
      return Number.isFinite(wakeAtMs) ? { intents: [], wakeAtMs } : { intents: [] }
    },
    view: (waiter, replicaId, state, nowMs) =>
      viewOf({ pool: waiter.offer.pool, state, learnt, without, nowMs }, waiter, replicaId),
    trust: (pool) => trustIn({ learnt, without }, takers(replicas, pool)),
    dispatched: (inFlight, ledger, nowMs) => {
      countServed(learnt, inFlight, nowMs)
      learnt.dispatched(inFlight, ledger, nowMs)
    },
    progress: (ledger, contentEvents, nowMs) => learnt.progress(ledger, contentEvents, nowMs),
    firstToken: (inFlight, ledger, nowMs) => learnt.firstToken(inFlight, ledger, nowMs, instances),
    settled: (inFlight, ledger, report, _verdict, nowMs) => learnt.released(inFlight, ledger, report, nowMs),
    bounced: (inFlight, ledger, _cause, nowMs) => learnt.released(inFlight, ledger, undefined, nowMs),
    replicaReset: (replicaId) => learnt.reset(replicaId),
    retryAfterMs: (state, offer, nowMs) => retryAfterMs(state, offer, learnt, nowMs),
    replicasWanted: (state, pool, demand) => replicasWanted(pool, demand, state, learnt),
    advise: (state, pool, classes, demand) => adviseOnPool(pool, classes, demand, state, learnt),
    snapshot: () => learnt.snapshot(),
  }
}

/** When the work that waits for that pool will be prefilled, spread over its replicas, in ms from now. */
function retryAfterMs(state: GateState, offer: Offer, learnt: Learnt, nowMs: Ms): Ms {
  let waitingTokens = 0
  let waitingPairs = 0
  for (const { offer: each } of state.waiting.of(offer.pool)) {
    waitingTokens += each.promptTokens
    waitingPairs += offerPairs(each)
  }
  const views = [...state.replicas.values()]
    .filter(({ report }) => report.pools.includes(offer.pool))
    .map((ledger) => outlook(ledger, learnt, state.instances, nowMs))
  if (views.length === 0) return OUTAGE_RETRY_MS
  const each = waitingTokens / views.length + offer.promptTokens
  const pairs = waitingPairs / views.length + offerPairs(offer)
  const soonestMs = Math.min(...views.map((view) => engineTtftMs(view, each, pairs)))
  return clamp(soonestMs, MIN_RETRY_MS, MAX_RETRY_MS)
}
