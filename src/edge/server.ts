/** The traffic port's HTTP server: its limits, and what it says to whoever sends no request that can be read. */
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { createAdaptorServer } from '@hono/node-server'
import type { Ms } from '../core/units.ts'
import type { ErrorCode } from '../errors.ts'
import { LINGER_MS } from './answer.ts'
import { createApp } from './app.ts'
import type { Edge } from './edge.ts'
import type { EdgeObserver } from './observer.ts'
import { type Rng, refusalOf } from './refusal.ts'
import { clientRequestId } from './request-id.ts'

export interface ServerLimits {
  /** Longest request line and headers together. */
  readonly headerBytes: number
  /** Longest time from a connection's opening, or a later request's first byte, to the end of the headers, in ms. */
  readonly headersMs: Ms
  /** How often that is looked at, in ms. */
  readonly checkMs: Ms
}

export interface ServerOptions {
  readonly edge: Edge
  readonly rng: Rng
  readonly observer: Pick<EdgeObserver, 'onRejected'>
  readonly limits?: Partial<ServerLimits>
}

const DEFAULTS: ServerLimits = { headerBytes: 32 * 1024, headersMs: 30_000, checkMs: 5000 }

/**
 * A client that takes no more is noticed after so many bytes; what stands in its queue costs several times its size,
 * since tokens come in small frames.
 */
const QUEUED_BYTES = 4 * 1024

/** Longer than the idle time of common load balancers, so that they close first, in ms. */
const KEEP_ALIVE_MS: Ms = 75_000

/** A server that does not listen yet. */
export function createTrafficServer({ edge, rng, observer, limits }: ServerOptions): Server {
  const { headerBytes, headersMs, checkMs } = { ...DEFAULTS, ...limits }
  const server = createAdaptorServer({
    fetch: createApp(edge, rng).fetch,
    overrideGlobalObjects: false,
    serverOptions: {
      // Uploads and streams have limits of their own; this one would cut both.
      requestTimeout: 0,
      headersTimeout: headersMs,
      connectionsCheckingInterval: checkMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: headerBytes,
      noDelay: true,
      highWaterMark: QUEUED_BYTES,
    },
  }) as Server
  server.on('connection', (socket) => {
    edge.clientConnections += 1
    socket.once('close', () => {
      edge.clientConnections -= 1
    })
  })
  const answers = new WeakMap<Duplex, ServerResponse>()
  server.on('request', ({ socket }, outgoing) => answers.set(socket, outgoing))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // It comes again for bytes behind those that could not be read, which are thrown away meanwhile.
    if (socket.writableEnded) return
    const code = codeOf(error)
    if (code === undefined || isSilent(error, socket) || isAnswering(answers.get(socket))) {
      socket.destroy()
      return
    }
    observer.onRejected(code, undefined)
    refuse(socket, code, messageOf(error, headerBytes, headersMs), rng)
  })
  return server
}

/** Undefined when nobody is left to hear it: a client that goes in mid-request has sent nothing wrong. */
function codeOf({ code = '' }: NodeJS.ErrnoException): ErrorCode | undefined {
  if (code === 'HPE_INVALID_EOF_STATE') return undefined
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return code.startsWith('HPE_') ? 'malformed' : undefined
}

/** A connection that was opened ahead and never used: its owner would take an answer for that of its first request. */
function isSilent(
  { code }: NodeJS.ErrnoException,
  socket: Duplex & { readonly bytesRead?: number },
): boolean {
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0
}

/** Whether an earlier request of the connection is being served, whose answer nothing may mix with. */
function isAnswering(answer: ServerResponse | undefined): boolean {
  return answer !== undefined && !answer.writableFinished && (answer.headersSent || answer.req.complete)
}

function messageOf(error: NodeJS.ErrnoException, headerBytes: number, headersMs: Ms): string {
  if (error.code === 'HPE_HEADER_OVERFLOW')
    return `request line and headers are larger than ${headerBytes} bytes`
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return `the headers did not arrive within ${headersMs} ms`
  return `this is no HTTP/1.1 request: ${error.message}`
}

/** No route is known, so the dialect is OpenAI's. */
function refuse(socket: Duplex, code: ErrorCode, message: string, rng: Rng): void {
  const { status, headers, body } = refusalOf({ code, message, dialect: 'openai' }, rng)
  const all = {
    ...headers,
    'content-length': Buffer.byteLength(body),
    'x-request-id': clientRequestId(undefined),
    connection: 'close',
  }
  const rows = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${rows.join('')}\r\n${body}`)
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}
