/** Starts an emulated engine: the engine model in real time behind vLLM's HTTP API. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { EngineModel } from '../sim/engine-model.ts'
import type { EngineGauges, EngineOptions } from '../sim/engine-types.ts'
import { profile } from '../sim/profiles.ts'
import { Rng } from '../sim/rng.ts'
import { EngineFront } from './engine-front.ts'
import { EngineLoop, type LoopLag } from './engine-loop.ts'
import { engineDead } from './errors.ts'
import { GenerationDesk } from './generation-desk.ts'
import { EngineMetrics } from './metrics.ts'
import type { EngineServerOptions } from './options.ts'

export type { EngineServerOptions } from './options.ts'

/** A running emulated engine. Every way to end it leaves no timer, socket or port behind once `close` has resolved. */
export interface RunningEngine {
  readonly url: string
  readonly host: string
  readonly port: number
  /** What the engine publishes of itself. */
  gauges(): EngineGauges
  /** How late the real clock has been behind the model. */
  lag(): LoopLag
  /** Generations whose answer has not ended. */
  openRequests(): number
  /** Tears everything down now; open connections are reset. Idempotent. */
  close(): Promise<void>
  /** Like a SIGKILL of the whole process: the same as `close`, under the name that tests mean. */
  kill(): Promise<void>
  /** SIGTERM with a shutdown timeout: streams finish, new requests get 500, `/health` stays 200, then it closes. */
  drain(): Promise<void>
  /** `/health` stays 200, running streams stand still, new requests get no byte. */
  sleep(): void
  wake(): void
  /** The engine process dies: streams end with an error event, new requests get 500 for a moment, then the port closes. */
  crash(): Promise<void>
  /** SIGTERM without a shutdown timeout: the port closes, open streams are neither ended nor reset. */
  stopSilently(): void
}

/** Idle keep-alive connections are closed after that, as uvicorn does. */
const KEEP_ALIVE_MS = 5000
const DEFAULT_JITTER = 0.05
const DEFAULT_CRASH_LINGER_MS = 200

/** Listens and serves. Rejects when the port is taken; throws a RangeError for options that make no sense. */
export async function startEngine(options: EngineServerOptions): Promise<RunningEngine> {
  const speedRatio = options.speed ?? 1
  if (!(speedRatio > 0)) throw new RangeError(`speed must be above 0, got ${speedRatio}`)
  const seed = options.seed ?? 1
  const servedNames = options.servedModelNames ?? ['model']
  const startedSec = Date.now() / 1000
  const model = new EngineModel(modelOptions(options, seed))
  const metrics = new EngineMetrics({ model, servedName: servedNames[0] ?? 'model', startedSec, speedRatio })
  const clock = options.clock ?? (() => performance.now())
  const loop = new EngineLoop(model, clock, speedRatio, (report) => metrics.step(report))
  const desk = new GenerationDesk({
    loop,
    metrics,
    rng: new Rng(seed).fork('output lengths'),
    seed,
    promptTokensDetails: options.promptTokensDetails ?? true,
  })
  const front = new EngineFront({
    loop,
    desk,
    metrics,
    servedNames,
    apiKey: options.apiKey,
    requestIdHeaders: options.requestIdHeaders ?? false,
    startedSec,
  })
  const host = options.host ?? '127.0.0.1'
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0, noDelay: true },
    front.listener,
  )
  const sockets = trackSockets(server)
  const port = await listen(server, host, options.port ?? 0)
  const crashLingerMs = options.crashLingerMs ?? DEFAULT_CRASH_LINGER_MS
  return control({ host, port, model, loop, desk, front, server, sockets, crashLingerMs })
}

interface Controlled {
  readonly host: string
  readonly port: number
  readonly model: EngineModel
  readonly loop: EngineLoop
  readonly desk: GenerationDesk
  readonly front: EngineFront
  readonly server: Server
  readonly sockets: ReadonlySet<Socket>
  readonly crashLingerMs: number
}

function control(parts: Controlled): RunningEngine {
  const { host, port, model, loop, desk, front, server, sockets } = parts
  const ends = new AbortController()
  const close = async () => {
    ends.abort()
    loop.stop()
    const closed = closing(server)
    for (const socket of sockets) socket.resetAndDestroy()
    await Promise.all([closed, desk.idle()])
  }
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    host,
    port,
    gauges: () => model.gauges(),
    lag: () => loop.lag,
    openRequests: () => desk.openRequests,
    close,
    kill: close,
    async drain() {
      front.state = 'draining'
      await Promise.race([desk.idle(), aborted(ends.signal)])
      const closed = closing(server)
      server.closeIdleConnections()
      await closed
    },
    sleep() {
      loop.pause()
      front.state = 'asleep'
    },
    wake() {
      loop.resume()
      front.state = 'serving'
    },
    async crash() {
      loop.pause()
      front.state = 'dead'
      desk.failAll(engineDead())
      await passed(parts.crashLingerMs, ends.signal)
      await close()
    },
    stopSilently() {
      loop.pause()
      server.close()
      server.closeIdleConnections()
    },
  }
}

function modelOptions(options: EngineServerOptions, seed: number): EngineOptions {
  const { maxNumSeqs, maxNumBatchedTokens, kvBlocks, maxModelLen, policy, prefixCaching } = options
  const { maxNumQueuedReqs, maxNumQueuedTokens } = options
  return {
    profile: profile(options.profile),
    jitterRatio: options.jitterRatio ?? DEFAULT_JITTER,
    seed,
    ...(maxNumSeqs === undefined ? {} : { maxNumSeqs }),
    ...(maxNumBatchedTokens === undefined ? {} : { maxNumBatchedTokens }),
    ...(kvBlocks === undefined ? {} : { kvBlocks }),
    ...(maxModelLen === undefined ? {} : { maxModelLenTokens: maxModelLen }),
    ...(policy === undefined ? {} : { policy }),
    ...(prefixCaching === undefined ? {} : { prefixCaching }),
    ...(maxNumQueuedReqs === undefined ? {} : { maxNumQueuedReqs }),
    ...(maxNumQueuedTokens === undefined ? {} : { maxNumQueuedTokens }),
  }
}

function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

/** Stops listening; resolves when the last connection is gone. Resolves at once for a server that is closed. */
function closing(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function passed(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, waitMs)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
}
