/** One small request of our own (scrape, probe, model list) with a deadline and a cap, as a value. */
import type { Ms } from '../core/units.ts'
import type { Connection } from './connection.ts'
import type { UpstreamFault } from './ports.ts'

export type Fetched =
  | { readonly kind: 'answer'; readonly status: number; readonly body: Buffer }
  | { readonly kind: 'fault'; readonly fault: UpstreamFault }
  | { readonly kind: 'too_large' }

export interface FetchOptions {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** For the whole exchange, in ms. */
  readonly deadlineMs: Ms
  readonly capBytes: number
}

/** Never rejects. Closing the connection ends it with an `aborted` fault. */
export function fetchBody(connection: Connection, options: FetchOptions): Promise<Fetched> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    let status = 0
    let tooLarge = false
    let late = false
    const body = options.body === undefined ? [] : [Buffer.from(options.body)]
    const { method, path, headers, deadlineMs } = options
    const limits = { firstByteTimeoutMs: deadlineMs, betweenBytesTimeoutMs: deadlineMs }
    const stream = connection.open(
      { method, path, headers, body, ...limits },
      {
        onHeaders: (code) => {
          status = code
        },
        onBytes: (chunk) => {
          bytes += chunk.length
          if (bytes > options.capBytes) {
            tooLarge = true
            stream.abort()
          } else chunks.push(chunk)
        },
        onEnd: () => {
          stopDeadline()
          const [only] = chunks
          const whole = chunks.length === 1 && Buffer.isBuffer(only) ? only : Buffer.concat(chunks)
          resolve({ kind: 'answer', status, body: whole })
        },
        onFault: (fault) => {
          stopDeadline()
          resolve(
            tooLarge
              ? { kind: 'too_large' }
              : { kind: 'fault', fault: late ? { ...fault, cause: 'timeout' } : fault },
          )
        },
      },
    )
    const stopDeadline = connection.after(deadlineMs, () => {
      late = true
      stream.abort()
    })
  })
}
