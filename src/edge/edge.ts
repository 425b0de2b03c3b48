/** The traffic side of Sluice: takes requests in, refuses or dispatches them, and drains. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { takesWork } from '../core/eligible.ts'
import type { PoolId } from '../core/request.ts'
import { OUTAGE_RETRY_MS } from '../core/retry-advice.ts'
import type { Ratio, Tokens } from '../core/units.ts'
import type { RouteKey } from '../engines/adapter.ts'
import { type ErrorCode, ProxyError } from '../errors.ts'
import type { TokenRatio } from '../estimate/prompt-tokens.ts'
import type { Fleet, Replica } from '../upstream/ports.ts'
import { ClientAnswer } from './answer.ts'
import { ClientGone } from './body.ts'
import { BufferPool } from './buffers.ts'
import { headerOf } from './classify.ts'
import type { Clock } from './clock.ts'
import { Dispatcher } from './dispatcher.ts'
import { Drain } from './drain.ts'
import { Forward, lineOf } from './forward.ts'
import type { GatePort } from './gate-port.ts'
import { IntakeDesk, type IntakePorts } from './intake.ts'
import { loadReport } from './load-report.ts'
import type { EdgeObserver } from './observer.ts'
import { OpenSet } from './open-set.ts'
import { outboundHeaders } from './outbound.ts'
import { PromptSizer } from './prompt-size.ts'
import type { Rng } from './refusal.ts'
import { clientRequestId, ownRequestId } from './request-id.ts'
import { RequestTrace, type TraceSampler } from './request-trace.ts'
import { dialectOf, type Route } from './routes.ts'
import type { EdgeSettings, TenantSettings } from './settings.ts'
import { StoredResponses } from './stored-responses.ts'

export interface EdgeOptions {
  readonly settings: EdgeSettings
  readonly gate: GatePort
  readonly fleet: Pick<Fleet, 'replica' | 'reports'>
  readonly clock: Clock
  readonly observer: EdgeObserver
  readonly ratio: TokenRatio
  readonly rng: Rng
  /** Whether traffic should come here at all, draining aside. */
  readonly ready: () => boolean
  /** Traces are kept when this is there. */
  readonly sampler?: TraceSampler | undefined
  /** What the fleet can carry over what is offered, for load balancers that ask; undefined while nobody knows. */
  readonly headroom?: () => Ratio | undefined
  /** Which replica made which stored response; its own memory unless it shares one. */
  readonly stored?: StoredResponses
}

/** One exchange with a client. */
export interface Io {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

/** What a client wants with a response that an engine keeps. */
export interface StoredCall {
  readonly id: string
  readonly action?: string | undefined
}

/** An exchange that is not judged. Its path is ours: what the client wrote may name another host, or lead out of it. */
interface Forwarding {
  readonly replica?: Replica
  readonly path: string
  readonly tenant: TenantSettings
  readonly clientId: string
  readonly answer: ClientAnswer
  readonly io: Io
}

export class Edge {
  readonly dispatcher: Dispatcher
  readonly drain: Drain
  readonly buffers: BufferPool
  /** Connections of clients that are open; its server counts them. */
  clientConnections = 0
  readonly #options: EdgeOptions
  readonly #ports: IntakePorts
  readonly #stored: StoredResponses
  readonly #forwards = new OpenSet<Forward>()
  /** From a request's head to the last byte of its answer. */
  readonly #answers = new OpenSet<ClientAnswer>()
  #desk: IntakeDesk
  #turn = 0

  constructor(options: EdgeOptions) {
    const { settings, gate, fleet, clock, observer } = options
    this.#options = options
    this.#stored = options.stored ?? new StoredResponses()
    this.buffers = new BufferPool(settings.limits.bufferedBytes)
    const sizer = new PromptSizer(options.ratio)
    const contextTokens = (pool: PoolId) => this.#contextTokens(pool)
    const hasRoute = (pool: PoolId, route: RouteKey) => this.#hasRoute(pool, route)
    this.#ports = { clock, buffers: this.buffers, sizer, contextTokens, hasRoute }
    this.#desk = new IntakeDesk(settings, this.#ports)
    this.dispatcher = new Dispatcher({
      gate,
      fleet,
      clock,
      observer,
      sizer,
      onFirstBytes: ({ intake, replica }, bytes) => {
        if (intake.outbound.route.key !== 'responses') return
        this.#stored.note(bytes, { replicaId: replica.id, tenant: intake.offer.tenant })
      },
    })
    const ended = () => this.#ended()
    this.drain = new Drain({ idle: () => this.#idle(), endAll: () => this.#endAll(), ended }, clock)
  }

  get settings(): EdgeSettings {
    return this.#desk.settings
  }

  get ready(): boolean {
    return !this.drain.draining && this.#options.ready()
  }

  /** From now on requests come in under these settings; those under way keep theirs. */
  configure(settings: EdgeSettings): void {
    this.buffers.limitBytes = settings.limits.bufferedBytes
    this.#desk = new IntakeDesk(settings, this.#ports)
  }

  /** Judges and relays one request of a listed route. Never rejects. */
  async serve(route: Route, io: Io): Promise<void> {
    const desk = this.#desk
    const { answer, clientId } = this.#greet(route, io)
    const trace = this.#trace(route, io)
    await this.#guard({ answer, trace }, async (known) => {
      const tenant = known(desk.tenant(io.incoming, route))
      const requestId = () => ownRequestId(clientId, (id) => this.dispatcher.isUnderWay(id))
      const intake = await desk.take({ route, incoming: io.incoming, tenant, requestId })
      if (intake.clampedFrom !== undefined) this.#options.observer.onClamped(tenant.name, intake.clampedFrom)
      this.dispatcher.offer(intake, answer, trace)
    })
  }

  /** The models that this key may ask for and that a replica serves now. */
  models(incoming: IncomingMessage): readonly string[] {
    const tenant = this.#desk.tenant(incoming, { apiKeyHeader: true })
    return this.#desk.models.namesFor(tenant, (pool) => this.#options.fleet.reports(pool).some(takesWork))
  }

  /** Relays a call about a stored response, or an action on it, to the replica that made it. Never rejects. */
  async serveStored({ id, action }: StoredCall, io: Io): Promise<void> {
    const route = { dialect: 'responses', apiKeyHeader: false } as const
    const { answer, clientId } = this.#greet(route, io)
    await this.#guard({ answer }, async (known) => {
      const tenant = known(this.#desk.tenant(io.incoming, route))
      const home = this.#stored.find(id, tenant.name)
      const replica = home === undefined ? undefined : this.#options.fleet.replica(home)
      if (replica === undefined) throw new ProxyError('unknown_route', `no response ${id} is known here`)
      const path = action === undefined ? `/v1/responses/${id}` : `/v1/responses/${id}/${action}`
      await this.#forward({ replica, path, tenant, clientId, answer, io })
    })
  }

  /** Relays a path of `passthrough` to any live replica. Never rejects. */
  async servePassthrough(path: string, io: Io): Promise<void> {
    const route = { dialect: dialectOf(path), apiKeyHeader: false }
    const { answer, clientId } = this.#greet(route, io)
    await this.#guard({ answer }, async (known) => {
      const tenant = known(this.#desk.tenant(io.incoming, route))
      await this.#forward({ path, tenant, clientId, answer, io })
    })
  }

  /** Requests of all kinds under way. */
  get underWay(): number {
    return this.dispatcher.underWay + this.#forwards.size
  }

  #greet(
    { dialect }: Pick<Route, 'dialect'>,
    { incoming, outgoing }: Io,
  ): { answer: ClientAnswer; clientId: string } {
    const stallMs = this.settings.timeouts.betweenBytesMs
    const answer = new ClientAnswer({ incoming, outgoing, dialect, rng: this.#options.rng, stallMs })
    this.#answers.add(answer)
    answer.onClosed = () => this.#answers.delete(answer)
    const clientId = clientRequestId(headerOf(incoming.headers, 'x-request-id'))
    answer.set({ 'x-request-id': clientId })
    answer.set(loadReport(incoming.headers, this.#options.headroom?.()))
    // Where Anthropic's SDKs look for it.
    if (dialect === 'anthropic') answer.set({ 'request-id': clientId })
    return { answer, clientId }
  }

  #trace({ path }: Route, { incoming }: Io): RequestTrace | undefined {
    const { sampler, clock } = this.#options
    return sampler && new RequestTrace(incoming.headers, path, clock.nowMs(), sampler)
  }

  /** Runs the intake of one request and turns whatever it throws into an answer. */
  async #guard(
    { answer, trace }: { readonly answer: ClientAnswer; readonly trace?: RequestTrace | undefined },
    run: (known: (tenant: TenantSettings) => TenantSettings) => Promise<void>,
  ): Promise<void> {
    let name: string | undefined
    try {
      if (this.drain.draining) throw new ProxyError('draining', 'this Sluice is shutting down')
      await run((tenant) => {
        name = tenant.name
        return tenant
      })
    } catch (error) {
      if (error instanceof ClientGone) return
      const { observer } = this.#options
      const known = error instanceof ProxyError
      if (!known) observer.onFault(error)
      const code: ErrorCode = known ? error.code : 'internal'
      const retryAfterMs = known ? error.retryAfterMs : undefined
      observer.onRejected(code, name, trace)
      const message = known
        ? error.message
        : 'a fault of Sluice itself; its log has a line `fault` with the cause'
      answer.refuse(code, message, { retryAfterMs })
    }
  }

  async #forward({ replica, path, tenant, clientId, answer, io: { incoming } }: Forwarding): Promise<void> {
    const lease = this.buffers.lease()
    try {
      const body = await this.#desk.read(incoming, lease)
      const target = replica ?? this.#anyReplica(body, tenant)
      const { limits, timeouts } = this.settings
      const forward: Forward = new Forward({
        replica: target,
        answer,
        clock: this.#options.clock,
        stallMs: timeouts.betweenBytesMs,
        totalMs: limits.requestMs,
        onOver: () => this.#forwardOver(forward, lease),
      })
      this.#forwards.add(forward)
      forward.open({
        ...lineOf(incoming, path),
        headers: outboundHeaders(incoming.headers, target.adapter, { scheduling: false }, clientId),
        body: body.length === 0 ? [] : [body],
        firstByteTimeoutMs: limits.requestMs,
        betweenBytesTimeoutMs: limits.requestMs,
      })
    } catch (error) {
      lease.release()
      throw error
    }
  }

  #forwardOver(forward: Forward, lease: { release(): void }): void {
    lease.release()
    this.#forwards.delete(forward)
  }

  /** In turn among the live replicas of the model that the body names, if it names one. */
  #anyReplica(body: Buffer, tenant: TenantSettings): Replica {
    const { fleet } = this.#options
    const pool = this.#desk.models.poolOf(body, tenant)
    const live = fleet.reports(pool).filter(takesWork)
    const chosen = live[this.#turn++ % Math.max(1, live.length)]
    const replica = chosen === undefined ? undefined : fleet.replica(chosen.replicaId)
    if (replica !== undefined) return replica
    throw new ProxyError('no_replica', `no replica of ${pool} is live`, { retryAfterMs: OUTAGE_RETRY_MS })
  }

  #contextTokens(pool: PoolId): Tokens | undefined {
    const limits = this.#options.fleet.reports(pool).map((report) => report.limits.maxModelLenTokens)
    if (limits.length === 0 || limits.includes(undefined)) return undefined
    return Math.max(...limits.map((limit) => limit ?? 0))
  }

  #hasRoute(pool: PoolId, route: RouteKey): boolean {
    const reports = this.#options.fleet.reports(pool)
    return reports.length === 0 || reports.some(({ routes }) => routes?.has(route) !== false)
  }

  async #idle(): Promise<void> {
    while (this.#answers.size > 0 || this.underWay > 0) {
      await this.#ended()
      await this.#answers.empty()
    }
  }

  async #ended(): Promise<void> {
    await this.dispatcher.idle()
    await this.#forwards.empty()
  }

  #endAll(): void {
    this.dispatcher.endAll()
    for (const forward of this.#forwards) forward.end()
    // Uploads are left.
    for (const answer of this.#answers) answer.refuse('draining', 'this Sluice is shutting down')
  }
}
