/** Names what is known of a request as span attributes: OpenTelemetry's words where it has them, else `sluice.*`. */
import type { CandidateView, DecisionRecord, Settlement } from '../core/records.ts'
import { type Offer, ttftTargetMs } from '../core/request.ts'
import { bounded } from '../telemetry/log.ts'
import { decisionWord } from '../telemetry/request-line.ts'
import type { EndedRequest } from '../telemetry/request-sink.ts'
import type { SpanAttributes } from './span-facts.ts'

/** `gen_ai.operation.name` by route. Token counting generates nothing and has no name there. */
const OPERATIONS: Readonly<Record<string, string>> = {
  chat: 'chat',
  messages: 'chat',
  responses: 'chat',
  completions: 'text_completion',
  generate: 'text_completion',
  generate_stream: 'text_completion',
  embeddings: 'embeddings',
}

/** Which generative operation was asked for, of which model and engine; the labels of `gen_ai` metrics too. */
export function operationAttributes(offer: Offer, engine: string | undefined): SpanAttributes {
  const operation = OPERATIONS[offer.route]
  if (operation === undefined) return {}
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': engine,
    'gen_ai.request.model': offer.pool,
  }
}

/** What the conventions want of an HTTP server. */
export function httpAttributes(path: string, status: number | undefined): SpanAttributes {
  return {
    'http.request.method': 'POST',
    'http.route': path,
    'url.path': path,
    'url.scheme': 'http',
    'http.response.status_code': status,
  }
}

/** Sizes and times of the generation. Tokens only where an engine worked for it. */
export function generationAttributes({ settlement, exchange }: EndedRequest): SpanAttributes {
  const { offer, attempts, promptTokens, outputTokens, ttftMs } = settlement
  if (OPERATIONS[offer.route] === undefined) return {}
  const { finishReason } = exchange
  return {
    'gen_ai.request.max_tokens': offer.maxOutputTokens,
    'gen_ai.request.stream': offer.streamed,
    'gen_ai.response.finish_reasons': finishReason === undefined ? undefined : [bounded(finishReason)],
    'gen_ai.usage.input_tokens': attempts === 0 ? undefined : Math.round(promptTokens),
    'gen_ai.usage.output_tokens': attempts === 0 ? undefined : outputTokens,
    'gen_ai.response.time_to_first_chunk': ttftMs === undefined ? undefined : ttftMs / 1000,
  }
}

/** The end of the request in the words of its log line. */
export function endAttributes({ settlement, decisions }: EndedRequest): SpanAttributes {
  const { offer, verdict } = settlement
  return {
    'sluice.request_id': bounded(settlement.requestId),
    'sluice.tenant': bounded(offer.tenant),
    'sluice.product': bounded(offer.product),
    'sluice.class': offer.slo.name,
    'sluice.decision': decisionWord(settlement, decisions.at(-1)),
    'sluice.reason': settlement.shedReason,
    'sluice.outcome': settlement.outcome,
    'sluice.slo': verdict.kind,
    'sluice.slo_cause': verdict.cause,
    'sluice.attempts': settlement.attempts,
    'sluice.queue_ms': settlement.queueMs,
    'sluice.ttft_ms': settlement.ttftMs,
    'sluice.tpot_ms': settlement.tpotMs,
    'sluice.ttft_target_ms': targetMs(offer),
    'sluice.prompt_tokens_estimated': Math.round(offer.promptTokens),
    'sluice.counted_by': settlement.countedBy,
    'sluice.engine_error': settlement.engineError,
  }
}

/** The numbers of one decision: of the replica that it chose, or of the best when it chose none. */
export function decisionAttributes(
  decision: DecisionRecord,
  nameOf: (replicaId: string) => string,
): SpanAttributes {
  const { verdict, wouldHave, offer } = decision
  const view = viewOf(decision)
  return {
    'sluice.verdict': verdict.kind,
    'sluice.trusted': decision.trusted,
    'sluice.waited_ms': decision.waitedMs,
    'sluice.retry_after_ms': verdict.kind === 'shed' ? verdict.retryAfterMs : undefined,
    'sluice.would_have': wouldHave?.kind,
    'sluice.would_have_reason': wouldHave?.kind === 'shed' ? wouldHave.reason : undefined,
    'sluice.config_digest': decision.configDigest,
    ...(view === undefined ? {} : viewAttributes(view, offer, nameOf)),
  }
}

function viewOf({ candidates, verdict }: DecisionRecord): CandidateView | undefined {
  if (verdict.kind === 'admit') return candidates.find(({ replicaId }) => replicaId === verdict.replicaId)
  const soonest = (view: CandidateView) => view.predictedTtftMs ?? Number.POSITIVE_INFINITY
  return candidates.reduce<CandidateView | undefined>(
    (best, view) => (best === undefined || soonest(view) < soonest(best) ? view : best),
    undefined,
  )
}

function viewAttributes(
  view: CandidateView,
  offer: Offer,
  nameOf: (replicaId: string) => string,
): SpanAttributes {
  const target = targetMs(offer)
  const expected = view.boundTtftMs ?? view.predictedTtftMs
  return {
    'sluice.replica': nameOf(view.replicaId),
    'sluice.gate': view.gate,
    'sluice.predicted_ttft_ms': view.predictedTtftMs,
    'sluice.bound_ttft_ms': view.boundTtftMs,
    'sluice.slack_ms': target === undefined || expected === undefined ? undefined : target - expected,
    'sluice.uncached_tokens': view.uncachedTokens,
    'sluice.backlog_tokens': view.backlogTokens,
    'sluice.running_sequences': view.runningSequences,
    'sluice.kv_peak_ratio': view.kvPeakRatio,
    'sluice.bearable_stall_ms': view.bearableStallMs,
    'sluice.decode_step_ms': view.decodeStepMs,
  }
}

/** The TTFT that the decision steered for: the request's own wish, else the promise of its class. */
function targetMs(offer: Offer): number | undefined {
  return offer.steerTtftMs ?? ttftTargetMs(offer.slo, offer.promptTokens)
}

const FAILED: readonly Settlement['outcome'][] = [
  'truncated',
  'upstream_failed',
  'upstream_timeout',
  'draining',
]

/** What failed, for the status of a span: a fault of a server, and never what a client did or a 4xx of ours. */
export function failureOf({ settlement, exchange }: EndedRequest): string | undefined {
  const { outcome, shedReason, engineError } = settlement
  if (FAILED.includes(outcome)) return engineError ?? outcome
  return (exchange.status ?? 0) >= 500 ? (shedReason ?? outcome) : undefined
}
