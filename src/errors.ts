/** Every reason for which a request is refused or fails: status, and whether a retry can help. One table. */

export type RetryAdvice = 'computed' | 'soon' | 'never'

export interface ErrorRow {
  readonly status: number
  readonly retry: RetryAdvice
  /** The `type` of the OpenAI error body. */
  readonly type: string
  /** What it means and what to do, for docs/errors.md. */
  readonly meaning: string
}

export const ERROR_TABLE = {
  slo_unreachable: {
    status: 429,
    retry: 'computed',
    type: 'overloaded_error',
    meaning: 'No replica can meet the class target in time; come back after retry-after.',
  },
  waiting_full: {
    status: 429,
    retry: 'computed',
    type: 'overloaded_error',
    meaning:
      'The waiting room is full by count, bytes or tokens, of requests that go first; come back after retry-after.',
  },
  wait_expired: {
    status: 429,
    retry: 'computed',
    type: 'overloaded_error',
    meaning: 'The request waited as long as its class allows without finding room.',
  },
  tenant_limit: {
    status: 429,
    retry: 'computed',
    type: 'rate_limit_error',
    meaning: "The tenant's own limit is reached; retry-after says when it refills.",
  },
  infeasible: {
    status: 429,
    retry: 'never',
    type: 'overloaded_error',
    meaning: 'Not even an idle replica could meet the class target for a prompt of this size.',
  },
  over_context: {
    status: 400,
    retry: 'never',
    type: 'invalid_request_error',
    meaning: 'The prompt, counted exactly, is longer than the model takes.',
  },
  no_replica: {
    status: 503,
    retry: 'computed',
    type: 'service_unavailable',
    meaning: 'No replica of this model is live; see /replicas on the admin port.',
  },
  draining: {
    status: 503,
    retry: 'soon',
    type: 'service_unavailable',
    meaning: 'This Sluice is shutting down; another one should take the request.',
  },
  upstream_failed: {
    status: 502,
    retry: 'soon',
    type: 'upstream_error',
    meaning: 'The replica failed before any content, and so did a second one or none was left.',
  },
  upstream_timeout: {
    status: 504,
    retry: 'never',
    type: 'upstream_error',
    meaning:
      'The replica stayed silent past a limit of `timeouts`, or the request outlived `limits.request`; the work may still be running there.',
  },
  malformed: {
    status: 400,
    retry: 'never',
    type: 'invalid_request_error',
    meaning: 'The request is not HTTP, or not what this route takes; the message says where.',
  },
  request_timeout: {
    status: 408,
    retry: 'never',
    type: 'invalid_request_error',
    meaning: 'Headers or body did not arrive within their limits; the connection is closed.',
  },
  too_large: {
    status: 413,
    retry: 'never',
    type: 'invalid_request_error',
    meaning: 'The body is larger than `limits.body`.',
  },
  headers_too_large: {
    status: 431,
    retry: 'never',
    type: 'invalid_request_error',
    meaning: 'Request line and headers are larger than 32 KiB together.',
  },
  unsupported_encoding: {
    status: 415,
    retry: 'never',
    type: 'invalid_request_error',
    meaning: 'Send the body without content-encoding.',
  },
  buffers_full: {
    status: 503,
    retry: 'soon',
    type: 'service_unavailable',
    meaning: 'All bodies together fill `limits.buffered`; come back shortly.',
  },
  unauthorized: {
    status: 401,
    retry: 'never',
    type: 'authentication_error',
    meaning: 'The key is missing or unknown.',
  },
  forbidden: {
    status: 403,
    retry: 'never',
    type: 'permission_error',
    meaning: 'This key may not use that model.',
  },
  model_not_found: {
    status: 404,
    retry: 'never',
    type: 'invalid_request_error',
    meaning: 'No configured model, alias or adapter has that name.',
  },
  unknown_route: {
    status: 404,
    retry: 'never',
    type: 'invalid_request_error',
    meaning: 'Sluice relays listed routes only; see `passthrough`.',
  },
  internal: {
    status: 500,
    retry: 'soon',
    type: 'internal_error',
    meaning: 'A fault of Sluice itself; the log has a line `fault` with its cause.',
  },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof ERROR_TABLE

/** A refusal on its way to the client. Thrown in shells only, never for overload inside the core. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError'
  readonly code: ErrorCode
  /** Computed and not yet jittered, in ms; only where the table says `computed`. */
  readonly retryAfterMs: number | undefined

  constructor(code: ErrorCode, message: string, options?: ErrorOptions & { readonly retryAfterMs?: number }) {
    super(message, options)
    this.code = code
    this.retryAfterMs = options?.retryAfterMs
  }
}
