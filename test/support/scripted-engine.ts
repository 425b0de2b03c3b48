/** An engine on a real socket that does exactly what the test says, when the test says it. */
import { createServer, type Server, type Socket } from 'node:net'
import { deferred, within } from './deadline.ts'
import { RequestReader } from './request-reader.ts'
import { type ReceivedRequest, ScriptedExchange } from './scripted-exchange.ts'

export { vllmPage } from './metrics-pages.ts'
export { type CutPlan, chatChunk, ScriptedExchange } from './scripted-exchange.ts'

export type AutoAnswer = (exchange: ScriptedExchange) => void

export interface ScriptedEngineOptions {
  /** Idle sockets are closed after this long; vLLM's 5 s unless told otherwise. */
  readonly keepAliveMs?: number
  /** Metrics page; a 404 when absent. */
  readonly metrics?: string
  readonly maxModelLen?: number
  /** Any free one unless told otherwise. */
  readonly port?: number
}

export interface PageOptions {
  /** How long the page takes. */
  readonly delayMs?: number
  readonly status?: number
  readonly contentType?: string
}

/** What a page may show of the engine itself. */
export interface EngineView {
  /** Exchanges open now, or as long ago as the page lags. */
  readonly open: number
}

/** Enough for what lags by seconds. */
const OPENS_KEPT = 10_000

export class ScriptedEngine {
  readonly #options: ScriptedEngineOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #waiting: ScriptedExchange[] = []
  readonly #waiters: ((exchange: ScriptedExchange) => void)[] = []
  readonly #busy = new Set<Socket>()
  readonly #auto = new Map<string, AutoAnswer>()
  readonly #opens: { readonly atMs: number; readonly open: number }[] = []
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
    this.#port = options.port ?? 0
    this.#server = createServer({ allowHalfOpen: false }, (socket) => this.#serve(socket))
    this.health(200)
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

  /** Bodies that came more than once, with how often. */
  get duplicates(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { body } of this.requests) {
      const text = body.toString('utf8')
      if (text !== '') counts.set(text, (counts.get(text) ?? 0) + 1)
    }
    return new Map([...counts].filter(([, count]) => count > 1))
  }

  /** What `/metrics` says from now on; `on('/metrics', () => {})` never answers. */
  page(text: string | ((view: EngineView) => string), options: PageOptions & { lagMs?: number } = {}): void {
    const { lagMs = 0, contentType = 'text/plain; version=1.0.0; charset=utf-8' } = options
    const say = typeof text === 'string' ? () => text : () => text({ open: this.#openAgo(lagMs) })
    this.#serveFixed('/metrics', say, { ...options, contentType })
  }

  /** What `/health` says from now on. */
  health(status: number, options: Omit<PageOptions, 'status'> = {}): void {
    this.#serveFixed('/health', () => '', { ...options, status })
  }

  #serveFixed(path: string, say: () => string, options: PageOptions): void {
    const { delayMs = 0, status = 200, contentType } = options
    const headers = contentType === undefined ? {} : { 'content-type': contentType }
    this.on(path, (exchange) => {
      const answer = () => exchange.respond(status, say(), headers)
      if (delayMs === 0) answer()
      else setTimeout(answer, delayMs)
    })
  }

  #openAgo(lagMs: number): number {
    if (lagMs === 0) return this.#open
    const atMs = performance.now() - lagMs
    return this.#opens.findLast((entry) => entry.atMs <= atMs)?.open ?? 0
  }

  #noteOpen(change: 1 | -1): void {
    this.#open += change
    this.#opens.push({ atMs: performance.now(), open: this.#open })
    if (this.#opens.length > OPENS_KEPT) this.#opens.splice(0, OPENS_KEPT / 2)
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
    const reader = new RequestReader()
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
      reader.push(bytes)
      const request = current === undefined ? reader.next() : undefined
      if (request === undefined) return
      current = this.#take(request, socket, onDone)
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
    this.#noteOpen(1)
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
    this.#noteOpen(-1)
  }
}

/** A scripted engine that listens on a port of its own. */
export async function scriptedEngine(options: ScriptedEngineOptions = {}): Promise<ScriptedEngine> {
  const engine = new ScriptedEngine(options)
  await engine.listen()
  return engine
}
