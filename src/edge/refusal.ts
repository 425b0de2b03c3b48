/** Turns a reason into what the client gets: status, retry advice and a body in the dialect of its route. */
import { MAX_RETRY_MS, MIN_RETRY_MS, toldRetryMs } from '../core/retry-advice.ts'
import type { Ms } from '../core/units.ts'
import type { Dialect } from '../engines/adapter.ts'
import { ERROR_TABLE, type ErrorCode } from '../errors.ts'

/** Randomness in [0, 1), handed in. */
export type Rng = () => number

export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface RefusalFacts {
  readonly code: ErrorCode
  readonly message: string
  readonly dialect: Dialect
  /** As computed, not yet jittered. For codes with advice `computed`, its absence means that no retry can help. */
  readonly retryAfterMs?: Ms | undefined
}

/** Status, headers and body of a refusal before anything was sent. */
export function refusalOf(facts: RefusalFacts, rng: Rng): Refusal {
  const { status } = ERROR_TABLE[facts.code]
  return {
    status,
    headers: {
      'content-type': 'application/json',
      'x-sluice-reason': facts.code,
      ...retryHeaders(facts, rng),
    },
    body: JSON.stringify(errorBody(facts)),
  }
}

/** The same refusal as an event, for a stream whose 200 has already gone out. */
export function errorEvent(facts: Omit<RefusalFacts, 'retryAfterMs'>): string {
  const text = JSON.stringify(errorBody(facts))
  switch (facts.dialect) {
    case 'anthropic':
      return `event: error\ndata: ${text}\n\n`
    case 'responses': {
      const { type } = ERROR_TABLE[facts.code]
      const event = { type: 'error', code: facts.code, message: facts.message, param: null, error: { type } }
      return `event: error\ndata: ${JSON.stringify(event)}\n\n`
    }
    case 'openai':
    case 'tgi':
      return `data: ${text}\n\n`
    default:
      return facts.dialect satisfies never
  }
}

function errorBody({ code, message, dialect }: Omit<RefusalFacts, 'retryAfterMs'>): unknown {
  const row = ERROR_TABLE[code]
  switch (dialect) {
    case 'anthropic':
      return { type: 'error', error: { type: anthropicType(code), message } }
    case 'tgi':
      return { error: message, error_type: row.type }
    case 'openai':
    case 'responses':
      return { error: { message, type: row.type, param: null, code } }
    default:
      return dialect satisfies never
  }
}

/** The error types that Anthropic's SDKs know, by status. */
function anthropicType(code: ErrorCode): string {
  const row = ERROR_TABLE[code]
  switch (row.status) {
    case 404:
      return 'not_found_error'
    case 413:
      return 'request_too_large'
    case 429:
      return row.type
    case 503:
      return 'overloaded_error'
    default:
      return row.status >= 500 ? 'api_error' : row.type
  }
}

function retryHeaders({ code, retryAfterMs }: RefusalFacts, rng: Rng): Record<string, string> {
  const { retry } = ERROR_TABLE[code]
  const wishMs = retry === 'computed' ? retryAfterMs : retry === 'soon' ? MIN_RETRY_MS : undefined
  if (wishMs === undefined) return { 'x-should-retry': 'false' }
  const toldMs = toldRetryMs(wishMs, rng())
  return {
    'retry-after': String(Math.min(MAX_RETRY_MS / 1000, Math.ceil(toldMs / 1000))),
    'retry-after-ms': String(toldMs),
    'x-should-retry': 'true',
  }
}
