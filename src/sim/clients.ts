/** How clients take waiting and refusals: who leaves when, and who comes back when. */
import type { Settlement } from '../core/records.ts'
import { toldRetryMs } from '../core/retry-advice.ts'
import type { Ms } from '../core/units.ts'
import { drawMs } from './lengths.ts'
import type { Rng } from './rng.ts'
import type { ClientModel, RetryPlan, UnsentRequest } from './workload-types.ts'

/** What an OpenAI SDK does unless told otherwise (openai-node 6.30): two retries, and it heeds advice. */
export const SDK_CLIENT: ClientModel = {
  retry: { limit: 2, backoffMs: 500, longestBackoffMs: 8000, honourRatio: 1 },
}

/** Clients that come back soon, many times, and heed nobody; our own assumption. */
export const HAMMERING_CLIENT: ClientModel = {
  retry: { limit: 5, backoffMs: 250, longestBackoffMs: 1000, honourRatio: 0 },
}

/** The share of a pause without advice that chance may take off; the SDK's number. */
const BACKOFF_JITTER_RATIO = 0.25

/** What of the model holds for one client. */
export function drawClient(
  { patience, retry }: ClientModel,
  rng: Rng,
): Pick<UnsentRequest, 'patienceMs' | 'retry'> {
  const patienceMs = patience === undefined ? undefined : drawMs(patience, rng)
  const point = rng.uniform()
  return {
    ...(patienceMs === undefined ? {} : { patienceMs }),
    ...(retry === undefined ? {} : { retry: toPlan(retry, point) }),
  }
}

function toPlan({ honourRatio, ...plan }: NonNullable<ClientModel['retry']>, point: number): RetryPlan {
  return { ...plan, honoursAdvice: point < honourRatio }
}

/** Stands between the id of a request and the number of its retry. */
const RETRY_MARK = '~'

/** The id that all attempts of one request have in common. */
export function taskOf(requestId: string): string {
  const at = requestId.lastIndexOf(RETRY_MARK)
  return at < 0 ? requestId : requestId.slice(0, at)
}

/** What a refused client was told: come back in that time, or (undefined) that no retry can help. */
export interface Advice {
  readonly retryAfterMs: Ms | undefined
}

/** One sending of a request. */
export interface Sending {
  readonly request: UnsentRequest
  /** 0 for the first attempt. */
  readonly retryCount: number
  /** When the client gives up for good. */
  readonly patienceEndsAtMs: Ms
}

/** What a client sends next, and when. */
export interface FollowUp {
  readonly atMs: Ms
  readonly request: UnsentRequest
  readonly retryCount: number
  /** Absent: by the request's own patience, from when it is sent. */
  readonly patienceEndsAtMs?: Ms
}

/** What the client does after its request ended that way; `rng` is of that sending alone. */
export function followUpOf(
  sending: Sending,
  outcome: Settlement['outcome'],
  advice: Advice | undefined,
  nowMs: Ms,
  rng: Rng,
): FollowUp | undefined {
  const { request, retryCount, patienceEndsAtMs } = sending
  if (outcome === 'completed' && request.next !== undefined) {
    return { atMs: nowMs + request.next.thinkMs, request: request.next.request, retryCount: 0 }
  }
  if (request.retry === undefined || (outcome !== 'shed' && outcome !== 'upstream_failed')) return undefined
  const pauseMs = pauseBeforeRetryMs(request.retry, retryCount, advice, rng)
  if (pauseMs === undefined || nowMs + pauseMs >= patienceEndsAtMs) return undefined
  const again = {
    ...request,
    id: `${taskOf(request.id)}${RETRY_MARK}${retryCount + 1}`,
    text: request.text ?? request.id,
  }
  return { atMs: nowMs + pauseMs, request: again, retryCount: retryCount + 1, patienceEndsAtMs }
}

/**
 * The pause after attempt number `retryCount` got no answer, or undefined when the client stays away. One who was told
 * nothing, or heeds nobody, backs off by its own rule.
 */
function pauseBeforeRetryMs(
  plan: RetryPlan,
  retryCount: number,
  advice: Advice | undefined,
  rng: Rng,
): Ms | undefined {
  if (retryCount >= plan.limit) return undefined
  if (advice !== undefined && plan.honoursAdvice) {
    return advice.retryAfterMs === undefined ? undefined : toldRetryMs(advice.retryAfterMs, rng.uniform())
  }
  const backoffMs = Math.min(plan.backoffMs * 2 ** retryCount, plan.longestBackoffMs)
  return backoffMs * (1 - BACKOFF_JITTER_RATIO * rng.uniform())
}
