/** One request to the address under load, and what came of it; never throws, always settles once. */
import { Client, type Dispatcher, Pool } from 'undici'
import type { Ms } from '../core/units.ts'
import { createStreamReader, type StreamView } from './stream-reader.ts'

/** How one exchange went, as the client saw it. Instants are on the caller's clock. */
export interface ExchangeOutcome {
  /** 0 while no answer came. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly stream: StreamView
  readonly endedAtMs: Ms
  /** The transport's fault, if it broke; `aborted` when we broke it ourselves. */
  readonly fault?: 'aborted' | { readonly message: string }
}

export interface ExchangeRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Keeps what a refusal says to a bounded length. */
const MAX_ERROR_TEXT_BYTES = 2048

/** An open-loop pool: a socket for each request that needs one, since waiting for a socket would close the loop. */
export function openPool(origin: string): Pool {
  return new Pool(origin, {
    connections: null,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 4000,
    factory: (target, options) => new Client(target, options),
  })
}

/** Sends one request and reads its answer to the end, or until `signal` breaks it. */
export function exchange(
  pool: Dispatcher,
  request: ExchangeRequest,
  clock: () => Ms,
  signal: AbortSignal,
): Promise<ExchangeOutcome> {
  return new Promise((resolve) => {
    const reader = createStreamReader()
    let controller: Dispatcher.DispatchController | undefined
    let status = 0
    let headers: Record<string, string> = {}
    let errorText = ''
    const abort = () => controller?.abort(new Error('aborted'))
    const finish = (fault?: Error) => {
      signal.removeEventListener('abort', abort)
      if (status >= 400) reader.view.error ??= { message: refusalText(errorText) }
      const outcome = { status, headers, stream: reader.view, endedAtMs: clock() }
      resolve(
        fault === undefined
          ? outcome
          : { ...outcome, fault: signal.aborted ? 'aborted' : { message: faultText(fault) } },
      )
    }
    if (signal.aborted) return finish(new Error('aborted'))
    signal.addEventListener('abort', abort, { once: true })
    pool.dispatch(
      { path: request.path, method: 'POST', headers: request.headers, body: request.body },
      {
        onRequestStart(started) {
          controller = started
          if (signal.aborted) abort()
        },
        onResponseStart(_controller, code, raw) {
          status = code
          headers = flat(raw)
        },
        onResponseData(_controller, bytes) {
          if (status < 400) reader.feed(bytes, clock())
          else if (errorText.length < MAX_ERROR_TEXT_BYTES) errorText += bytes.toString()
        },
        onResponseEnd: () => finish(),
        onResponseError: (_controller, error) => finish(error),
      },
    )
  })
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const single: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) single[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return single
}

function faultText(fault: Error): string {
  const code = (fault as NodeJS.ErrnoException).code
  return code ?? fault.message
}

/** The message of an error body, or its beginning. */
function refusalText(body: string): string {
  try {
    const parsed = JSON.parse(body) as { readonly error?: { readonly message?: unknown } }
    if (typeof parsed.error?.message === 'string') return parsed.error.message
  } catch {
    // Not JSON: shown as it is.
  }
  return body.slice(0, 200)
}
