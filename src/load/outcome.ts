/** Turns what a client saw of one exchange into the facts that the one judge takes, and has them judged. */
import { SHED_REASONS, type ShedReason } from '../core/effects.ts'
import { FIRST_BLOCK_TOKENS } from '../core/prefix-blocks.ts'
import type { JudgeFacts, SettleOutcome, SloVerdict } from '../core/records.ts'
import type { Offer } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import { judge } from '../slo/judge.ts'
import type { ExchangeOutcome } from './exchange.ts'
import type { PlannedRequest } from './plan.ts'
import { isWhole } from './stream-reader.ts'

/** The end of one planned request, retries included. */
export interface LoadResult {
  readonly planned: PlannedRequest
  readonly facts: JudgeFacts
  readonly verdict: SloVerdict
  /** Why it was refused, in the server's words, and when it was told to come back. */
  readonly refusal?: { readonly reason: string; readonly retryAfterMs?: Ms }
  /** What went wrong when it was neither served nor refused. */
  readonly error?: string
  readonly retries: number
  readonly endedAtMs: Ms
}

/** Statuses with which a server says that it has no room, as against being broken. */
const REFUSAL_STATUSES: ReadonlySet<number> = new Set([429, 503])

interface Ending {
  readonly outcome: SettleOutcome | 'shed'
  /** The refusal's reason or the error's text. */
  readonly why?: string
}

/**
 * Judges one exchange. Times run from `dueAtMs`, the instant at which the plan wanted it sent, so that a client that
 * falls behind can't hide the wait (coordinated omission).
 */
export function settleExchange(
  planned: PlannedRequest,
  seen: ExchangeOutcome,
  model: string,
  dueAtMs: Ms,
  retries: number,
): LoadResult {
  const ending = endingOf(seen)
  const facts = factsOf(planned, seen, ending, model, dueAtMs, retries)
  const base = { planned, facts, verdict: judge(facts), retries, endedAtMs: seen.endedAtMs }
  if (ending.outcome === 'shed') {
    const retryAfterMs = retryAfterOf(seen.headers)
    const reason = ending.why ?? 'refused'
    return { ...base, refusal: retryAfterMs === undefined ? { reason } : { reason, retryAfterMs } }
  }
  return ending.why === undefined ? base : { ...base, error: ending.why }
}

/** Whether the server said that a retry can help. */
export function mayRetry(seen: ExchangeOutcome): boolean {
  return seen.headers['x-should-retry'] !== 'false' && endingOf(seen).outcome === 'shed'
}

/** The wait that the server asked for, in ms: `retry-after-ms`, else `retry-after` in seconds. */
export function retryAfterOf(headers: Readonly<Record<string, string>>): Ms | undefined {
  const exactMs = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (Number.isFinite(exactMs)) return exactMs
  const wholeMs = Number(headers['retry-after'] ?? Number.NaN) * 1000
  return Number.isFinite(wholeMs) ? wholeMs : undefined
}

function endingOf(seen: ExchangeOutcome): Ending {
  const { fault, stream, status } = seen
  const begun = stream.contentEvents > 0
  if (fault === 'aborted') return { outcome: 'client_left' }
  if (fault !== undefined) return { outcome: begun ? 'truncated' : 'upstream_failed', why: fault.message }
  if (status >= 400) return refused(seen)
  if (stream.error !== undefined)
    return begun ? { outcome: 'truncated', why: stream.error.message } : toldInStream(stream.error)
  if (!isWhole(stream)) return { outcome: begun ? 'truncated' : 'upstream_failed', why: 'no end marker' }
  return { outcome: 'completed' }
}

function refused({ status, headers, stream }: ExchangeOutcome): Ending {
  if (REFUSAL_STATUSES.has(status))
    return { outcome: 'shed', why: headers['x-sluice-reason'] ?? `status_${status}` }
  const why = `${status} ${stream.error?.message ?? ''}`.trim()
  if (status === 504) return { outcome: 'upstream_timeout', why }
  return { outcome: status >= 500 ? 'upstream_failed' : 'client_error', why }
}

/** A refusal inside a 200, as engines send it once their headers are out. */
function toldInStream({
  code,
  message,
}: {
  readonly code?: number | string
  readonly message: string
}): Ending {
  if (isShedReason(code) || code === 'draining') return { outcome: 'shed', why: code }
  const status = Number(code)
  if (REFUSAL_STATUSES.has(status)) return { outcome: 'shed', why: `status_${status}` }
  return { outcome: status >= 400 && status < 500 ? 'client_error' : 'upstream_failed', why: message }
}

function isShedReason(word: unknown): word is ShedReason {
  return SHED_REASONS.some((reason) => reason === word)
}

function factsOf(
  planned: PlannedRequest,
  seen: ExchangeOutcome,
  ending: Ending,
  model: string,
  dueAtMs: Ms,
  retries: number,
): JudgeFacts {
  const { firstTokenAtMs, lastTokenAtMs, contentEvents, usage } = seen.stream
  const outputTokens = usage?.outputTokens ?? contentEvents
  const steps = outputTokens - 1
  const spanMs =
    firstTokenAtMs === undefined || lastTokenAtMs === undefined ? undefined : lastTokenAtMs - firstTokenAtMs
  const { outcome, why } = ending
  return {
    offer: offerOf(planned, model, dueAtMs, retries),
    outcome,
    ...(outcome === 'shed' && isShedReason(why) ? { shedReason: why } : {}),
    e2eMs: seen.endedAtMs - dueAtMs,
    ...(firstTokenAtMs === undefined ? {} : { ttftMs: firstTokenAtMs - dueAtMs }),
    ...(spanMs === undefined || steps < 1 ? {} : { tpotMs: spanMs / steps }),
    promptTokens: usage?.promptTokens ?? planned.promptTokens,
    outputTokens,
    slowReader: false,
  }
}

/** The offer as the server would have read it from this request. */
function offerOf(planned: PlannedRequest, model: string, dueAtMs: Ms, retries: number): Offer {
  return {
    requestId: planned.id,
    pool: model,
    kind: 'generate',
    tenant: 'load',
    product: 'load',
    slo: planned.slo,
    route: 'chat',
    receivedAtMs: dueAtMs,
    promptTokens: planned.promptTokens,
    promptTokensExact: false,
    maxOutputTokens: planned.maxTokens,
    sequences: 1,
    prefixHashes: [],
    prefixBlockTokens: FIRST_BLOCK_TOKENS,
    bodyBytes: 0,
    streamed: true,
    retryCount: retries,
  }
}
