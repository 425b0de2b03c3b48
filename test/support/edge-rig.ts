/** The traffic side on a real socket with a real gate in front of scripted engines; its end proves that nothing is left. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createGate, type Gate } from '../../src/core/gate.ts'
import type { GateSettings } from '../../src/core/gate-settings.ts'
import type { DecisionRecord, ExchangeFacts, Settlement } from '../../src/core/records.ts'
import type { ReplicaReport } from '../../src/core/replica.ts'
import type { SloClass } from '../../src/core/request.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'
import { type Clock, systemClock } from '../../src/edge/clock.ts'
import { Edge } from '../../src/edge/edge.ts'
import { createTrafficServer, type ServerLimits } from '../../src/edge/server.ts'
import type { EdgeSettings } from '../../src/edge/settings.ts'
import type { EngineAdapter, EngineKind } from '../../src/engines/adapter.ts'
import { engineAdapter } from '../../src/engines/registry.ts'
import { createTokenRatio } from '../../src/estimate/prompt-tokens.ts'
import { createLeastOutstanding } from '../../src/policies/plain/least-outstanding.ts'
import { judge } from '../../src/slo/judge.ts'
import { systemClock as upstreamClock } from '../../src/upstream/clock.ts'
import { Connection } from '../../src/upstream/connection.ts'
import type { Replica } from '../../src/upstream/ports.ts'
import { until } from './deadline.ts'
import { RawClient } from './raw-client.ts'
import { type ScriptedEngine, type ScriptedEngineOptions, scriptedEngine } from './scripted-engine.ts'

export function sloClass(name: string, rest: Partial<SloClass> = {}): SloClass {
  return {
    name,
    ttftPer1kTokensMs: 0,
    weight: 1,
    overload: 'wait',
    maxWaitMs: 10_000,
    ...rest,
  }
}

export type SettingsChange = Partial<Omit<EdgeSettings, 'limits' | 'timeouts'>> & {
  readonly limits?: Partial<EdgeSettings['limits']>
  readonly timeouts?: Partial<EdgeSettings['timeouts']>
}

export function edgeSettings(change: SettingsChange = {}): EdgeSettings {
  const { limits, timeouts, ...rest } = change
  return {
    models: [
      {
        name: 'tiny',
        aliases: ['default'],
        servedName: 'org/tiny',
        adapters: ['lora-a'],
      },
    ],
    classes: { chat: sloClass('chat', { ttftMs: 60_000, tpotMs: 10_000 }), batch: sloClass('batch') },
    classesByModel: {},
    defaultClass: 'chat',
    products: [],
    auth: { kind: 'none' },
    tenants: [],
    passthrough: [],
    ...rest,
    limits: { bodyBytes: 1024 * 1024, bufferedBytes: 8 * 1024 * 1024, requestMs: 60_000, ...limits },
    timeouts: { firstByteMs: 10_000, betweenBytesMs: 10_000, heartbeatAfterMs: 10_000, ...timeouts },
  }
}

export interface RigOptions {
  readonly engines?: number
  readonly settings?: SettingsChange
  readonly scheduler?: Scheduler
  readonly gate?: Partial<GateSettings>
  /** Of all engines, or of each in turn. */
  readonly engineKind?: EngineKind | readonly EngineKind[]
  readonly maxModelLenTokens?: number
  readonly server?: Partial<ServerLimits>
  /** What requests are timed by; the sockets' own clock goes on beside it. */
  readonly clock?: Clock
  /** Models that each engine serves, by its place; `tiny` when not told. */
  readonly pools?: readonly (readonly string[])[]
  /** How the engines themselves are made. */
  readonly engine?: ScriptedEngineOptions
}

export class Rig {
  readonly engines: ScriptedEngine[]
  readonly edge: Edge
  readonly gate: Gate
  readonly settlements: Settlement[] = []
  /** What the log is told beside each settlement. */
  readonly exchanges: ExchangeFacts[] = []
  readonly decisions: DecisionRecord[] = []
  readonly bounces: string[] = []
  readonly rejections: string[] = []
  readonly faults: unknown[] = []
  /** What replicas were told for their breakers, in order: `success`, or the cause of a fault, `suspect` with a request that has made another fail. */
  readonly told: string[] = []
  /** Body bytes that replicas have handed to the edge. */
  upstreamBytes = 0
  readonly #connections: Connection[]
  readonly #server: Server
  readonly #clients: RawClient[] = []
  readonly #accepted = new Set<object>()

  constructor(engines: ScriptedEngine[], options: RigOptions) {
    this.engines = engines
    const settings = edgeSettings(options.settings)
    this.gate = createGate({
      settings: {
        waiting: { requests: 1000, bytes: 1e9, tokens: 1e9 },
        rerouteBudgetRatio: 0.1,
        instances: 1,
        tenants: {},
        configDigest: 'test',
        ...options.gate,
      },
      scheduler: options.scheduler ?? createLeastOutstanding(),
      judge,
    })
    this.#connections = engines.map(
      ({ url }) => new Connection({ url, key: 'engine-key', connectTimeoutMs: 1000 }, upstreamClock),
    )
    const count = (bytes: Uint8Array) => {
      this.upstreamBytes += bytes.length
    }
    const replicas = new Map(
      this.#connections.map((connection, at) => replicaOf(connection, at, options, count, this.told)),
    )
    const reports = engines.map((_, at) => reportOf(at, options))
    this.edge = new Edge({
      settings,
      gate: this.gate,
      fleet: { replica: (id) => replicas.get(id), reports: () => reports },
      clock: options.clock ?? systemClock,
      observer: {
        onDecision: (record) => this.decisions.push(record),
        onSettled: (settlement, exchange) => {
          this.settlements.push(settlement)
          this.exchanges.push(exchange)
        },
        onBounced: (replicaId, cause) => this.bounces.push(`${replicaId} ${cause}`),
        onRejected: (code) => this.rejections.push(code),
        onClamped: () => {},
        onDecided: () => {},
        onFault: (error) => this.faults.push(error),
      },
      ratio: createTokenRatio(),
      rng: () => 0.5,
      ready: () => true,
    })
    for (const replica of reports) this.edge.dispatcher.tell({ kind: 'replicaChanged', replica })
    const onRejected = (code: string) => this.rejections.push(code)
    this.#server = createTrafficServer({
      edge: this.edge,
      rng: () => 0.5,
      observer: { onRejected },
      ...(options.server === undefined ? {} : { limits: options.server }),
    })
    this.#server.on('connection', (socket) => {
      this.#accepted.add(socket)
      socket.once('close', () => this.#accepted.delete(socket))
    })
  }

  get engine(): ScriptedEngine {
    const [engine] = this.engines
    if (engine === undefined) throw new Error('this rig has no engine')
    return engine
  }
  /** Connections of clients that are open. */
  get connections(): number {
    return this.#accepted.size
  }
  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }
  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }
  /** The settlement of the only request so far. */
  get settlement(): Settlement {
    const [settlement, ...others] = this.settlements
    if (settlement === undefined || others.length > 0) {
      throw new Error(`expected one settlement, got ${this.settlements.length}`)
    }
    return settlement
  }

  client(): RawClient {
    const client = new RawClient(this.port)
    this.#clients.push(client)
    return client
  }

  /** A chat request on a connection of its own; streamed unless told otherwise. */
  chat(fields: object = {}, headers: Readonly<Record<string, string>> = {}): RawClient {
    const body = { model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hello' }], ...fields }
    return this.client().send({ headers, body })
  }

  async settled(count = 1): Promise<void> {
    await until(() => this.settlements.length >= count, `${count} settlements`)
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  /** Closes everything, after checking that nothing is left of any request. */
  async close(): Promise<void> {
    for (const client of this.#clients) client.leave()
    await until(() => this.edge.underWay === 0, 'every request to be over')
    await until(() => this.#connections.every(({ inFlight }) => inFlight === 0), 'every exchange to be over')
    this.edge.dispatcher.close()
    await Promise.all(this.#connections.map((connection) => connection.close()))
    await Promise.all(this.engines.map((engine) => engine.close()))
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
    // A body that was being read hears of its socket's end a turn later.
    await until(() => this.edge.buffers.heldBytes === 0, 'every held byte to be given back')
    const left = {
      inFlight: this.gate.inFlight,
      waiting: this.gate.state.waiting.requests,
      heldBytes: this.edge.buffers.heldBytes,
      faults: this.faults,
    }
    if (left.inFlight + left.waiting + left.heldBytes + left.faults.length > 0) {
      throw new Error(`left behind: ${JSON.stringify(left)} ${String(this.faults[0])}`)
    }
  }
}

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const engines = await Promise.all(
    Array.from({ length: options.engines ?? 1 }, () => scriptedEngine(options.engine)),
  )
  const rig = new Rig(engines, options)
  await rig.listen()
  return rig
}

function replicaOf(
  connection: Connection,
  at: number,
  options: RigOptions,
  count: (bytes: Uint8Array) => void,
  told: string[],
): [string, Replica] {
  const id = `r${at}`
  return [
    id,
    {
      id,
      name: `replica-${at}`,
      adapter: adapterOf(at, options),
      open: (request, handler) =>
        connection.open(request, {
          onHeaders: (status, headers) => handler.onHeaders(status, headers),
          onBytes: (bytes) => {
            count(bytes)
            handler.onBytes(bytes)
          },
          onEnd: () => handler.onEnd(),
          onFault: (fault) => handler.onFault(fault),
        }),
      reportFault: ({ cause, suspect }) => told.push(suspect === true ? `${cause} suspect` : cause),
      reportContent: () => undefined,
      reportSuccess: () => told.push('success'),
    },
  ]
}

function adapterOf(at: number, { engineKind = 'vllm' }: RigOptions): EngineAdapter {
  return engineAdapter(typeof engineKind === 'string' ? engineKind : (engineKind[at] ?? 'vllm'))
}

function reportOf(at: number, options: RigOptions): ReplicaReport {
  const { maxModelLenTokens, pools } = options
  return {
    replicaId: `r${at}`,
    pools: pools?.[at] ?? ['tiny'],
    groupId: pools?.[at]?.[0] ?? 'tiny',
    state: 'live',
    routes: new Set(adapterOf(at, options).routes),
    limits: maxModelLenTokens === undefined ? {} : { maxModelLenTokens },
    generation: 1,
  }
}
