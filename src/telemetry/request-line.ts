/** The one log line of a request: how it was decided and how it ended, in numbers, without a word of its prompt. */
import type { CandidateView, DecisionRecord, ExchangeFacts, Settlement, Verdict } from '../core/records.ts'
import { type AdmittedWord, admittedWord } from '../slo/decision-word.ts'
import { bounded, type LogFields } from './log.ts'

/** Raised when a field changes its meaning; `explain` and `replay` check it. */
export const REQUEST_LINE_VERSION = 1
export const REQUEST_EVENT = 'request'

/** Replicas of a decision that a line and /decisions show: the chosen one and the most promising others. */
export const MAX_CANDIDATES = 8
/** First blocks of the prompt whose hashes a line carries, so that a replay knows what could be shared. */
export const MAX_PREFIX_BLOCKS = 16

/** What was decided, in the words of the `x-sluice-decision` header. */
export type DecisionWord = AdmittedWord | 'shed' | 'left'

export function decisionWord(settlement: Settlement, decision: DecisionRecord | undefined): DecisionWord {
  if (settlement.outcome === 'shed') return 'shed'
  if (settlement.outcome === 'cancelled') return 'left'
  return admittedWord(settlement.attempts, decision?.waitedMs ?? settlement.queueMs)
}

/** What is kept of the last decision for a request until its line is written. */
export interface OpenDecision {
  /** Of its candidates, the ones to be shown are enough. */
  readonly decision: DecisionRecord
  /** How many there were. */
  readonly candidatesSeen: number
  /** The decision that had sent it to the replica that gave it back. */
  readonly earlier?: DecisionRecord | undefined
}

/** Fields of the line; `open` when anything was decided. `nameOf` hides URLs. */
export function requestFields(
  settlement: Settlement,
  exchange: ExchangeFacts,
  nameOf: (replicaId: string) => string,
  open: OpenDecision | undefined,
): LogFields {
  const { offer, verdict, replicaId } = settlement
  const { status, finishReason, traceId, trace } = exchange
  const fields: Fields = {
    v: REQUEST_LINE_VERSION,
    request_id: bounded(settlement.requestId),
    trace_id: traceId,
    span_id: trace?.spanId,
    tenant: bounded(offer.tenant),
    product: bounded(offer.product),
    model: offer.pool,
    class: offer.slo.name,
    route: offer.route,
    kind: offer.kind,
    stream: offer.streamed,
    retry_count: offer.retryCount,
    decision: decisionWord(settlement, open?.decision),
    reason: settlement.shedReason,
    outcome: settlement.outcome,
    status,
    finish_reason: finishReason === undefined ? undefined : bounded(finishReason),
    engine_error: settlement.engineError,
    slo: verdict.kind,
    slo_cause: verdict.cause,
    ttft_good: verdict.ttftGood,
    tpot_good: verdict.tpotGood,
    e2e_good: verdict.e2eGood,
    replica: replicaId === undefined ? undefined : nameOf(replicaId),
    attempts: settlement.attempts,
    received_at_ms: rounded(offer.receivedAtMs),
    queue_ms: rounded(settlement.queueMs),
    ttft_ms: rounded(settlement.ttftMs),
    predicted_ttft_ms: rounded(settlement.predictedTtftMs),
    tpot_ms: rounded(settlement.tpotMs),
    e2e_ms: rounded(settlement.e2eMs),
  }
  addSizes(fields, settlement)
  addWishes(fields, offer)
  if (open !== undefined) addDecision(fields, open, nameOf)
  return fields
}

/** Fields are added one by one: spreading a part into the line costs several times as much. */
type Fields = Record<string, unknown>

function addSizes(fields: Fields, settlement: Settlement): void {
  const { offer } = settlement
  fields.prompt_tokens = rounded(settlement.promptTokens)
  fields.prompt_tokens_estimated = rounded(offer.promptTokens)
  fields.cached_tokens = settlement.cachedTokens
  fields.output_tokens = settlement.outputTokens
  fields.counted_by = settlement.countedBy
  fields.oversized_frames = settlement.oversizedFrames
  fields.min_output_tokens = offer.minOutputTokens
  fields.max_output_tokens = offer.maxOutputTokens
  fields.sequences = offer.sequences
  fields.body_bytes = offer.bodyBytes
}

function addWishes(fields: Fields, offer: Settlement['offer']): void {
  const { prefixHashes, prefixBlockTokens } = offer
  fields.steer_ttft_ms = offer.steerTtftMs
  fields.steer_tpot_ms = offer.steerTpotMs
  fields.prefix_block_tokens = prefixHashes.length === 0 ? undefined : rounded(prefixBlockTokens)
  fields.prefix_blocks = prefixHashes.length
  fields.prefix_hashes = prefixHashes.slice(0, MAX_PREFIX_BLOCKS)
}

function addDecision(
  fields: Fields,
  { decision, candidatesSeen }: OpenDecision,
  nameOf: (replicaId: string) => string,
): void {
  const { verdict, wouldHave } = decision
  fields.decided_at_ms = rounded(decision.atMs)
  fields.waited_ms = rounded(decision.waitedMs)
  fields.trusted = decision.trusted
  fields.retry_after_ms = verdict.kind === 'shed' ? rounded(verdict.retryAfterMs) : undefined
  fields.would_have = wouldHave === undefined ? undefined : wouldHave.kind
  fields.would_have_reason = wouldHave?.kind === 'shed' ? wouldHave.reason : undefined
  fields.config_digest = decision.configDigest
  fields.candidates_seen = candidatesSeen
  fields.candidates = shownCandidates(decision.candidates, verdict).map((view) =>
    candidateFields(view, nameOf),
  )
}

/** The chosen replica first, then the others by predicted TTFT, at most `MAX_CANDIDATES`. */
export function shownCandidates(
  candidates: readonly CandidateView[],
  verdict: Verdict,
): readonly CandidateView[] {
  const chosen = verdict.kind === 'admit' ? verdict.replicaId : undefined
  const rank = (view: CandidateView): number =>
    view.replicaId === chosen ? Number.NEGATIVE_INFINITY : (view.predictedTtftMs ?? Number.MAX_VALUE)
  let sorted = true
  for (let at = 1; at < candidates.length; at++) {
    const [before, view] = [candidates[at - 1], candidates[at]]
    if (before !== undefined && view !== undefined && rank(before) > rank(view)) sorted = false
  }
  if (sorted && candidates.length <= MAX_CANDIDATES) return candidates
  return [...candidates].sort((a, b) => rank(a) - rank(b)).slice(0, MAX_CANDIDATES)
}

function candidateFields(view: CandidateView, nameOf: (replicaId: string) => string): LogFields {
  return {
    replica: nameOf(view.replicaId),
    gate: view.gate,
    predicted_ttft_ms: rounded(view.predictedTtftMs),
    bound_ttft_ms: rounded(view.boundTtftMs),
    uncached_tokens: rounded(view.uncachedTokens),
    backlog_tokens: rounded(view.backlogTokens),
    running_sequences: view.runningSequences,
    kv_peak_ratio: rounded(view.kvPeakRatio),
    bearable_stall_ms: rounded(view.bearableStallMs),
    decode_step_ms: rounded(view.decodeStepMs),
  }
}

/** Three decimals are finer than any clock here; absent and infinite values stay out of the line. */
function rounded(value: number | undefined): number | undefined {
  return value === undefined || !Number.isFinite(value) ? undefined : Math.round(value * 1000) / 1000
}
