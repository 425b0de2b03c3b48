/** Turns an HTTP request into an offer and what is needed to carry it out; malformed input ends here. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Draft } from '../core/draft.ts'
import type { Offer, PoolId, RequestId, SloClass } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'
import type { RouteKey } from '../engines/adapter.ts'
import { modelRename } from '../engines/rename.ts'
import { ProxyError } from '../errors.ts'
import { type Authenticator, createAuthenticator } from './auth.ts'
import { readBody } from './body.ts'
import { type BufferLease, type BufferPool, HeldBody } from './buffers.ts'
import { classify, headerOf, type Steering, steering } from './classify.ts'
import type { Clock } from './clock.ts'
import { ModelIndex, type ResolvedModel } from './models.ts'
import { type OutboundFacts, urgencyOf } from './outbound.ts'
import { firstBlockTokens, prefixHashes } from './prefix.ts'
import type { PromptParts, PromptSizer } from './prompt-size.ts'
import { type RequestShape, readShape } from './request-shape.ts'
import type { Route } from './routes.ts'
import type { EdgeSettings, TenantSettings } from './settings.ts'

/** One request taken in. The settings are those of its arrival: a reload does not change it. */
export interface Intake {
  readonly offer: Offer
  readonly headers: IncomingHttpHeaders
  readonly body: HeldBody
  readonly outbound: OutboundFacts
  readonly parts: PromptParts
  readonly settings: EdgeSettings
  /** The class that its tenant asked for and may not use. */
  readonly clampedFrom?: string
}

/** A request whose tenant is known and whose body is still to come. */
export interface Arrival {
  readonly route: Route
  readonly incoming: IncomingMessage
  readonly tenant: TenantSettings
  /** Called once the body is in: the id must be free at that moment. */
  readonly requestId: () => RequestId
}

export interface IntakePorts {
  readonly clock: Clock
  readonly buffers: BufferPool
  readonly sizer: PromptSizer
  /** Longest context of a pool in tokens, when every replica's is known. */
  readonly contextTokens: (pool: PoolId) => Tokens | undefined
  /** False when no replica of the pool, live or not, has the route. */
  readonly hasRoute: (pool: PoolId, route: RouteKey) => boolean
}

/** The intake under one configuration. */
export class IntakeDesk {
  readonly settings: EdgeSettings
  readonly models: ModelIndex
  readonly #authenticate: Authenticator
  readonly #ports: IntakePorts

  constructor(settings: EdgeSettings, ports: IntakePorts) {
    this.settings = settings
    this.models = new ModelIndex(settings.models)
    this.#authenticate = createAuthenticator(settings.auth, settings.tenants)
    this.#ports = ports
  }

  /** Whose request it is. Throws `unauthorized`. */
  tenant(incoming: IncomingMessage, route: Pick<Route, 'apiKeyHeader'>): TenantSettings {
    return this.#authenticate({
      headers: incoming.headers,
      remoteAddress: incoming.socket.remoteAddress,
      apiKeyHeader: route.apiKeyHeader,
    })
  }

  /** The body within its limits. Rejects as `readBody` does. */
  read(incoming: IncomingMessage, lease: BufferLease): Promise<Buffer> {
    const { limits, timeouts } = this.settings
    const within = { bodyBytes: limits.bodyBytes, idleMs: timeouts.betweenBytesMs, totalMs: limits.requestMs }
    return readBody(incoming, within, lease, this.#ports.clock)
  }

  /** The offer of one request. Rejects with a ProxyError or ClientGone; then its bytes are given back already. */
  async take(arrival: Arrival): Promise<Intake> {
    const { incoming, route } = arrival
    const lease = this.#ports.buffers.lease()
    try {
      const body = await this.read(incoming, lease)
      const receivedAtMs = this.#ports.clock.nowMs()
      return this.#assemble({ arrival, body, lease, shape: readShape(route, body), receivedAtMs })
    } catch (error) {
      lease.release()
      throw error
    }
  }

  #assemble(taken: Taken): Intake {
    const { arrival, body, lease, shape, receivedAtMs } = taken
    const { route, tenant } = arrival
    const { headers } = arrival.incoming
    const resolved = this.models.resolve(shape.model, tenant)
    const pool = resolved.model.name
    const subject = { headers, path: route.path, tenant, model: pool }
    const { slo, product, clampedFrom } = classify(this.settings, subject)
    const parts = { textBytes: shape.textBytes, mediaParts: shape.mediaParts, exactTokens: shape.exactTokens }
    this.#refuseRoute(pool, route)
    this.#refuseOverContext(pool, shape)
    const offer: Draft<Offer> = {
      requestId: arrival.requestId(),
      pool,
      kind: route.kind,
      tenant: tenant.name,
      product,
      slo,
      route: route.key,
      receivedAtMs,
      promptTokens: this.#ports.sizer.tokens(pool, parts),
      promptTokensExact: shape.exactTokens !== undefined,
      sequences: shape.sequences,
      prefixHashes: route.kind === 'generate' ? prefixHashes(shape, resolved.adapter || pool) : [],
      prefixBlockTokens: firstBlockTokens(
        shape.prefix,
        this.#ports.sizer.tokens(pool, { ...parts, mediaParts: 0 }),
      ),
      bodyBytes: body.length,
      streamed: shape.streamed,
      retryCount: countOf(headerOf(headers, 'x-stainless-retry-count')),
    }
    if (shape.prompts > 1) offer.prompts = shape.prompts
    addWishes(offer, taken, steering(this.settings, subject))
    const outbound = outboundFacts(arrival, shape, resolved, slo)
    const held = new HeldBody(body, lease)
    const intake: Draft<Intake> = { offer, headers, body: held, outbound, parts, settings: this.settings }
    if (clampedFrom !== undefined) intake.clampedFrom = clampedFrom
    return intake
  }

  #refuseRoute(pool: PoolId, route: Route): void {
    if (this.#ports.hasRoute(pool, route.key)) return
    throw new ProxyError('unknown_route', `no engine of the model ${JSON.stringify(pool)} has ${route.path}`)
  }

  #refuseOverContext(pool: PoolId, { longestTokens }: RequestShape): void {
    const limit = longestTokens === undefined ? undefined : this.#ports.contextTokens(pool)
    if (limit === undefined || longestTokens === undefined || longestTokens <= limit) return
    throw new ProxyError('over_context', `the prompt has ${longestTokens} tokens, the model takes ${limit}`)
  }
}

function outboundFacts(
  { route, tenant }: Arrival,
  shape: RequestShape,
  { model, engineName }: ResolvedModel,
  slo: SloClass,
): OutboundFacts {
  const asked = shape.model ?? model.name
  const facts: Draft<OutboundFacts> = {
    route,
    shape: unburdened(shape),
    engineName,
    scheduling: tenant.scheduling,
  }
  if (model.priorityScheduling === true) facts.urgency = urgencyOf(slo)
  // An adapter's answers may have its own name or that of the model beneath it.
  if (model.renameAnswers === true) facts.rename = modelRename([engineName, model.servedName], asked)
  return facts
}

interface Taken {
  readonly arrival: Arrival
  readonly body: Buffer
  readonly lease: BufferLease
  readonly shape: RequestShape
  readonly receivedAtMs: Ms
}

/** The prompt's text has been hashed and counted; keeping it would double the memory of every waiting request. */
function unburdened(shape: RequestShape): RequestShape {
  return { ...shape, prefix: { text: '' } }
}

/** What few requests say; each is absent when this one does not. */
function addWishes(offer: Draft<Offer>, { arrival, shape }: Taken, steer: Steering): void {
  const { tenant, incoming } = arrival
  if (tenant.share !== undefined) offer.tenantShare = tenant.share
  if (shape.maxOutputTokens !== undefined) offer.maxOutputTokens = shape.maxOutputTokens
  if (shape.minOutputTokens !== undefined) offer.minOutputTokens = shape.minOutputTokens
  const timeoutSec = Number(headerOf(incoming.headers, 'x-stainless-timeout'))
  if (timeoutSec > 0 && Number.isFinite(timeoutSec))
    offer.clientDeadlineAtMs = offer.receivedAtMs + timeoutSec * 1000
  if (steer.steerTtftMs !== undefined) offer.steerTtftMs = steer.steerTtftMs
  if (steer.steerTpotMs !== undefined) offer.steerTpotMs = steer.steerTpotMs
}

/** A small whole number, else 0. */
function countOf(text: string | undefined): number {
  return text !== undefined && /^\d{1,3}$/.test(text) ? Number(text) : 0
}
