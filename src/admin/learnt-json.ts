/** The JSON of what the predictor has learnt, as `/replicas` shows it: its own words, in the case of the admin port. */
import type { ReplicaId } from '../core/request.ts'
import type { TrustState } from '../core/scheduler.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'

type ByReplica<T> = Readonly<Record<ReplicaId, T>>

/** How many times the formula it took, at each level. */
type Factors = Readonly<Record<'p50' | 'p80' | 'p95', number>>

/** What replicas that are alike share. */
interface LearntGroup {
  readonly groupId: string
  readonly trust: TrustState
  readonly evidence: {
    readonly comparisons: number
    readonly absLogError: number
    readonly coverageRatio: Ratio
    readonly missesTested: number
    readonly falseAlarmRatio: Ratio
    readonly prefillWindows: number
  }
  readonly step: {
    readonly baseMs: Ms
    readonly perSequenceMs: Ms
    readonly per1kContextMs: Ms
    readonly requestOverheadMs: Ms
    readonly perChunkMs: Ms
    readonly per1kPrefillMs: Ms
    /** A million pairs of a prompt token and one that it attends to. */
    readonly per1mPairsMs: Ms
  }
  readonly decodeWindows: number
  readonly changes: number
  readonly ttftFactors: Factors
  readonly tpotFactors: Factors
  readonly slowness: ByReplica<Ratio>
}

/** The snapshot of the scheduler that predicts. */
export interface LearntState {
  readonly groups: readonly LearntGroup[]
  readonly slots: ByReplica<number>
  /** By model: the worth of each tenant's requests for its share, and the requests that each class is owed. */
  readonly fairness: Readonly<
    Record<string, { readonly tenants: Record<string, number>; readonly owed: Record<string, number> }>
  >
  readonly tokensPerEvent: Readonly<Record<string, number>>
  readonly prefixBlocks: number
  readonly caches: ByReplica<{ readonly horizonTokens?: Tokens; readonly yieldRatio: Ratio }>
}

/** Keys that are names of models, replicas, tenants or classes stay as they are. */
export function learntJson(learnt: LearntState): object {
  const caches = Object.entries(learnt.caches).map(([id, { horizonTokens, yieldRatio }]) => {
    return [id, { horizon_tokens: horizonTokens, yield_ratio: yieldRatio }] as const
  })
  return {
    groups: learnt.groups.map(groupJson),
    slots: learnt.slots,
    fairness: learnt.fairness,
    tokens_per_event: learnt.tokensPerEvent,
    prefix_blocks: learnt.prefixBlocks,
    caches: Object.fromEntries(caches),
  }
}

function groupJson({ groupId, trust, evidence, step, ...rest }: LearntGroup): object {
  return {
    group_id: groupId,
    trust,
    evidence: {
      comparisons: evidence.comparisons,
      abs_log_error: evidence.absLogError,
      coverage_ratio: evidence.coverageRatio,
      misses_tested: evidence.missesTested,
      false_alarm_ratio: evidence.falseAlarmRatio,
      prefill_windows: evidence.prefillWindows,
    },
    step: {
      base_ms: step.baseMs,
      per_sequence_ms: step.perSequenceMs,
      per_1k_context_ms: step.per1kContextMs,
      request_overhead_ms: step.requestOverheadMs,
      per_chunk_ms: step.perChunkMs,
      per_1k_prefill_ms: step.per1kPrefillMs,
      per_1m_pairs_ms: step.per1mPairsMs,
    },
    decode_windows: rest.decodeWindows,
    changes: rest.changes,
    ttft_factors: rest.ttftFactors,
    tpot_factors: rest.tpotFactors,
    slowness: rest.slowness,
  }
}
