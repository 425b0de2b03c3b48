/** An engine on a real socket that does exactly what the test says, when the test says it. */
import { createServer, type Server, type Socket } from 'node:net'
import { deferred, within } from './deadline.ts'
import { type ReceivedRequest, ScriptedExchange } from './scripted-exchange.ts'

export { type CutPlan, chatChunk, ScriptedExchange } from './scripted-exchange.ts'

export type AutoAnswer = (exchange: ScriptedExchange) => void

export interface ScriptedEngineOptions {
  /** Idle sockets are closed after this long; vLLM's 5 s unless told otherwise. */
  readonly keepAliveMs?: number
  /** Metrics page; a 404 when absent. */
  readonly metrics?: string
  readonly maxModelLen?: number
}

/** A metrics page as vLLM prints it, with the given figures. */
export function vllmPage(
  figures: {
    readonly running?: number
    readonly waiting?: number
    readonly kv?: number
    readonly steps?: number
    readonly startSec?: number
    readonly asleep?: boolean
  } = {},
): string {
  const labels = 'engine="0",model_name="tiny"'
  return [
    `process_start_time_seconds ${figures.startSec ?? 1.79596567496e9}`,
    `vllm:num_requests_running{${labels}} ${figures.running ?? 0}.0`,
    `vllm:num_requests_waiting{${labels}} ${figures.waiting ?? 0}.0`,
    `vllm:engine_sleep_state{${labels},sleep_state="awake"} ${figures.asleep === true ? '0.0' : '1.0'}`,
    `vllm:kv_cache_usage_perc{${labels}} ${figures.kv ?? 0}`,
    `vllm:iteration_tokens_total_count{${labels}} ${figures.steps ?? 0}`,
    'vllm:cache_config_info{block_size="128",engine="0",kv_cache_size_tokens="20480",num_gpu_blocks="160"} 1.0',
    '',
  ].join('\n')
}

export class ScriptedEngine {
  readonly #options: ScriptedEngineOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #waiting: ScriptedExchange[] = []
  readonly #waiters: ((exchange: ScriptedExchange) => void)[] = []
  readonly #busy = new Set<Socket>()
  readonly #auto = new Map<string, AutoAnswer>()
  #port = 0
  #open = 0
  /** Every request received, automatic answers included. */
  readonly requests: ReceivedRequest[] = []
  /** Most exchanges open at one time, automatic answers not counted. */
  peakConcurrency = 0
  /** Sockets that the other side closed under an unfinished exchange. */
  aborts = 0
  bytesReceived = 0
  connections = 0

  constructor(options: ScriptedEngineOptions) {
    this.#options = options
    this.#server = createServer({ allowHalfOpen: false }, (socket) => this.#serve(socket))
    this.on('/health', (exchange) => exchange.respond(200, ''))
    this.on('/metrics', (exchange) => exchange.respond(404, '{"detail":"Not Found"}'))
    if (options.metrics !== undefined) this.page(options.metrics)
    this.on('/v1/models', (exchange) =>
      exchange.respondJson(200, {
        object: 'list',
        data: [{ id: 'tiny', object: 'model', max_model_len: options.maxModelLen ?? 8192 }],
      }),
    )
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }
  get port(): number {
    return this.#port
  }
  /** Sockets open now, idle ones included. */
  get sockets(): number {
    return this.#sockets.size
  }
  /** Exchanges handed to the test and not finished. */
  get openExchanges(): number {
    return this.#open
  }

  /** Answers a path by itself from now on, or hands its requests to `nextRequest` again. */
  on(path: string, answer: AutoAnswer | undefined): void {
    if (answer === undefined) this.#auto.delete(path)
    else this.#auto.set(path, answer)
  }

  /** What `/metrics` says from now on. */
  page(text: string): void {
    this.on('/metrics', (exchange) =>
      exchange.respond(200, text, { 'content-type': 'text/plain; version=1.0.0; charset=utf-8' }),
    )
  }

  /** The next request that has no automatic answer. */
  async nextRequest(label = 'a request at the scripted engine', limitMs?: number): Promise<ScriptedExchange> {
    const ready = this.#waiting.shift()
    if (ready !== undefined) return ready
    const next = deferred<ScriptedExchange>()
    this.#waiters.push(next.resolve)
    return within(next.promise, label, limitMs)
  }

  /** Listens; on the same port as before when it has listened before. */
  async listen(): Promise<void> {
    const started = deferred()
    this.#server.once('error', started.reject)
    this.#server.listen(this.#port, '127.0.0.1', () => started.resolve())
    await within(started.promise, 'the scripted engine to listen')
    const address = this.#server.address()
    if (typeof address === 'object' && address !== null) this.#port = address.port
  }

  /** Refuses new connections; those that are open stay, silent or not. */
  refuse(): void {
    this.#server.close()
  }

  /** FIN on every socket that carries no unfinished exchange. */
  closeIdle(): void {
    for (const socket of this.#sockets) if (!this.#busy.has(socket)) socket.end()
  }

  /** RST on every socket. */
  resetAll(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  /** Closes everything; idempotent. */
  async close(): Promise<void> {
    const closed = deferred()
    this.#server.close(() => closed.resolve())
    for (const socket of this.#sockets) socket.destroy()
    await within(closed.promise, 'the scripted engine to close')
  }

  #serve(socket: Socket): void {
    this.connections += 1
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    let buffered = Buffer.alloc(0)
    let current: ScriptedExchange | undefined
    let idle: NodeJS.Timeout | undefined
    const onDone = (keepAlive: boolean): void => {
      current = undefined
      this.#busy.delete(socket)
      if (!keepAlive) socket.end()
      else idle = setTimeout(() => socket.end(), this.#options.keepAliveMs ?? 5000)
    }
    socket.on('error', () => undefined)
    socket.on('data', (bytes: Buffer) => {
      clearTimeout(idle)
      this.bytesReceived += bytes.length
      buffered = Buffer.concat([buffered, bytes])
      const parsed = current === undefined ? parseRequest(buffered) : undefined
      if (parsed === undefined) return
      buffered = buffered.subarray(parsed.bytes)
      current = this.#take(parsed.request, socket, onDone)
      if (current !== undefined) this.#busy.add(socket)
    })
    socket.once('close', () => {
      clearTimeout(idle)
      this.#sockets.delete(socket)
      this.#busy.delete(socket)
      if (current === undefined) return
      this.#leave(current)
      if (!current.finished) this.aborts += 1
    })
  }

  /** Returns the exchange while it is unfinished. */
  #take(
    request: ReceivedRequest,
    socket: Socket,
    onDone: (keepAlive: boolean) => void,
  ): ScriptedExchange | undefined {
    this.requests.push(request)
    const answer = this.#auto.get(request.path.split('?')[0] ?? '')
    const exchange: ScriptedExchange = new ScriptedExchange(request, socket, (keepAlive) => {
      this.#leave(exchange)
      onDone(keepAlive)
    })
    if (answer !== undefined) {
      this.#left.add(exchange)
      answer(exchange)
      return exchange.finished ? undefined : exchange
    }
    this.#open += 1
    this.peakConcurrency = Math.max(this.peakConcurrency, this.#open)
    const waiter = this.#waiters.shift()
    if (waiter === undefined) this.#waiting.push(exchange)
    else waiter(exchange)
    return exchange
  }

  readonly #left = new WeakSet<ScriptedExchange>()
  #leave(exchange: ScriptedExchange): void {
    if (this.#left.has(exchange)) return
    this.#left.add(exchange)
    this.#open -= 1
  }
}

/** One whole request from the front of `bytes`; undefined until all of it is there. */
function parseRequest(
  bytes: Buffer,
): { readonly request: ReceivedRequest; readonly bytes: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [line = '', ...rows] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const [method = '', path = ''] = line.split(' ')
  const rawHeaders = rows.map((row): readonly [string, string] => {
    const colon = row.indexOf(':')
    return [row.slice(0, colon), row.slice(colon + 1).trim()]
  })
  const headers = Object.fromEntries(rawHeaders.map(([name, value]) => [name.toLowerCase(), value]))
  if (headers['transfer-encoding'] !== undefined)
    throw new Error('the scripted engine takes bodies with a length only')
  const end = headEnd + 4 + Number(headers['content-length'] ?? 0)
  if (bytes.length < end) return undefined
  const body = Buffer.from(bytes.subarray(headEnd + 4, end))
  return { request: { method, path, headers, rawHeaders, body }, bytes: end }
}

/** A scripted engine that listens on a port of its own. */
export async function scriptedEngine(options: ScriptedEngineOptions = {}): Promise<ScriptedEngine> {
  const engine = new ScriptedEngine(options)
  await engine.listen()
  return engine
}
