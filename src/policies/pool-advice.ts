/** Advises on the engines of a pool by what was learnt of them and by what is asked of them. */
import type { OfferedStream } from '../core/demand.ts'
import type { EngineAdvice } from '../core/engine-advice.ts'
import type { ReplicaLedger } from '../core/ledger.ts'
import type { PoolId, SloClass } from '../core/request.ts'
import type { GateState } from '../core/scheduler.ts'
import type { Tokens } from '../core/units.ts'
import { type AdvisedClass, adviseOn } from '../estimate/engine-advice.ts'
import { UNTOLD_BUDGET_TOKENS } from '../estimate/step-windows.ts'
import type { Learnt } from './learnt.ts'

/** The batch and the context that are assumed: a busy replica, and a conversation where nothing was seen yet. */
export const ADVISED_SEQUENCES = 64
export const ADVISED_CONTEXT_TOKENS: Tokens = 1000

/** One for each group of like replicas, in the order in which they are met. Undefined targets get no advice. */
export function adviseOnPool(
  pool: PoolId,
  classes: readonly SloClass[],
  demand: readonly OfferedStream[],
  state: GateState,
  learnt: Learnt,
): readonly EngineAdvice[] {
  const groups = new Map<string, ReplicaLedger>()
  for (const ledger of state.replicas.values()) {
    const { pools, groupId } = ledger.report
    if (pools.includes(pool) && !groups.has(groupId)) groups.set(groupId, ledger)
  }
  const asked = classes.map((slo) => askedOf(slo, demand))
  return [...groups.values()].map((ledger) => {
    const { limits } = ledger.report
    const slots = learnt.slots(ledger)
    return adviseOn(learnt.groupOf(ledger).model, asked, {
      budgetTokens: limits.maxNumBatchedTokens ?? UNTOLD_BUDGET_TOKENS,
      sequences: Math.min(ADVISED_SEQUENCES, slots),
      contextTokens: meanContextTokens(demand),
      slots,
      kvCapacityTokens: limits.kvCapacityTokens ?? Number.POSITIVE_INFINITY,
    })
  })
}

function askedOf(slo: SloClass, demand: readonly OfferedStream[]): AdvisedClass {
  const seen = demand.find((stream) => stream.slo.name === slo.name && stream.requestsPerSec > 0)
  return seen === undefined ? { slo } : { slo, typicalPromptTokens: Math.max(1, seen.uncachedTokens) }
}

/** Of a sequence half through its answer, by the rates of all classes. */
function meanContextTokens(demand: readonly OfferedStream[]): Tokens {
  let requests = 0
  let tokens = 0
  for (const { requestsPerSec, promptTokens, outputTokens, sequences } of demand) {
    requests += requestsPerSec * sequences
    tokens += requestsPerSec * (promptTokens + outputTokens / 2)
  }
  return requests > 0 ? Math.max(1, tokens / requests) : ADVISED_CONTEXT_TOKENS
}
