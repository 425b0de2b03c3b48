/** Reads the many shapes of an engine's error and says whose fault it is. */
import type { ResponseClass } from './adapter.ts'

/** An error as an engine told it, in a body or in a frame. */
export interface Failure {
  /** The status it carries; inside a stream this is all the status there is. */
  readonly status?: number
  readonly type: string
  readonly message: string
}

type Json = Readonly<Record<string, unknown>>

/** `value` as an object, when it is one. */
export function asObject(value: unknown): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined
}

/** Parses JSON; undefined when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function text(value: unknown): string {
  return typeof value === 'string'
    ? value
    : value === undefined || value === null
      ? ''
      : JSON.stringify(value)
}

function statusOf(...candidates: readonly unknown[]): number | undefined {
  for (const candidate of candidates) {
    const number = typeof candidate === 'string' ? Number.parseInt(candidate, 10) : candidate
    if (typeof number === 'number' && number >= 100 && number < 1000) return number
  }
  return undefined
}

function failure(status: number | undefined, type: unknown, message: unknown): Failure {
  return { ...(status === undefined ? {} : { status }), type: text(type), message: text(message) }
}

/**
 * The failure that a JSON value tells of, if it tells of one: OpenAI's and Anthropic's `error` object, an `error`
 * string (also with TGI's `error_type`), SGLang's flat object, a router's `detail`, a failed response object.
 */
export function readFailure(value: unknown): Failure | undefined {
  const body = asObject(value)
  if (body === undefined) return undefined
  const error = asObject(body.error)
  if (error !== undefined) {
    return failure(
      statusOf(error.code, error.http_status_code),
      error.type ?? error.code,
      error.message ?? error,
    )
  }
  if (typeof body.error === 'string') return failure(undefined, body.error_type, body.error)
  if (body.object === 'error') return failure(statusOf(body.code, body.type), body.type, body.message)
  if (body.type === 'error') return failure(statusOf(body.code), body.code, body.message)
  if (body.detail !== undefined && body.choices === undefined)
    return failure(undefined, 'detail', body.detail)
  return undefined
}

const FULL = /overloaded|service.?unavailable|rate.?limit|queue is full|currently busy|backlog limit/i
const CLIENTS_FAULT = /bad.?request|invalid.?request|not.?found|validation/i
const GOING_DOWN = /after shutdown|shutting down|server is (stopping|draining)|aborted the generation/i

/** llama.cpp answers each request so until its model is there. */
const NOT_YET_UP = /^loading model$/i

/** Whether an engine's own words say that it takes nothing new: it is going down, or not up yet. */
export function saysDraining(message: string): boolean {
  return GOING_DOWN.test(message) || NOT_YET_UP.test(message)
}

/** Whose fault a failure is. `status` is that of the response; inside a 200 stream the failure's own counts. */
export function classOfFailure(status: number, found: Failure | undefined): ResponseClass {
  const told = status >= 400 ? status : found?.status
  const words = found === undefined ? '' : `${found.type} ${found.message}`
  if (found !== undefined && (saysDraining(found.message) || saysDraining(found.type))) return 'draining'
  if (told === 429 || told === 503 || told === 529) return 'full'
  // TGI says 422 inside a stream even when it is merely full, so its words count for more than its status.
  if (status < 400 && FULL.test(words)) return 'full'
  // Our own key, not the client's, was refused.
  if (told === 401 || told === 407) return 'engine_error'
  if (told !== undefined) return told >= 400 && told < 500 ? 'client_error' : 'engine_error'
  return CLIENTS_FAULT.test(words) ? 'client_error' : 'engine_error'
}
