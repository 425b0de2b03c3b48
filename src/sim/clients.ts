/** How clients take waiting and refusals: who leaves when, and who comes back when. */
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

/** What a refused client was told: come back in that time, or (undefined) that no retry can help. */
export interface Advice {
  readonly retryAfterMs: Ms | undefined
}

/**
 * How long the client pauses before it sends again after its attempt number `retryCount` (0 is the first) got no
 * answer, or undefined when it does not. One without advice, or who heeds none, backs off by its own rule.
 */
export function pauseBeforeRetryMs(
  plan: RetryPlan,
  retryCount: number,
  advice: Advice | undefined,
  rng: Rng,
): Ms | undefined {
  if (retryCount >= plan.limit) return undefined
  if (advice !== undefined && plan.honoursAdvice) return advice.retryAfterMs
  const backoffMs = Math.min(plan.backoffMs * 2 ** retryCount, plan.longestBackoffMs)
  return backoffMs * (1 - BACKOFF_JITTER_RATIO * rng.uniform())
}
