/** The HTTP front of an emulated engine: routes, refusals, and the states that a real server shows. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EngineLoop } from './engine-loop.ts'
import { EngineError, engineDead, engineDraining, errorBody } from './errors.ts'
import { VERSION } from './frames.ts'
import { type AnswerStyle, type JsonObject, parseBody, readGeneration, readModel } from './generation.ts'
import type { GenerationDesk } from './generation-desk.ts'
import type { EngineMetrics } from './metrics.ts'
import { cacheSalt, chatPrompt, completionPrompts, messagesPrompt, responsesPrompt } from './prompts.ts'
import { baseHeaders, readText, sendText } from './send.ts'
import { fakeTokenIds, type Prompt } from './tokens.ts'

/** `serving` and `asleep` come and go; the others end the server. */
export type FrontState = 'serving' | 'asleep' | 'draining' | 'dead'

export interface FrontParts {
  readonly loop: EngineLoop
  readonly desk: GenerationDesk
  readonly metrics: EngineMetrics
  readonly servedNames: readonly string[]
  readonly apiKey: string | undefined
  readonly requestIdHeaders: boolean
  readonly startedSec: number
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

interface Route {
  readonly methods: readonly string[]
  run(exchange: Exchange): void | Promise<void>
}

const METRICS_TYPE = 'text/plain; version=1.0.0; charset=utf-8'

export class EngineFront {
  readonly #parts: FrontParts
  readonly #routes: ReadonlyMap<string, Route>
  /** Generations that came while the engine slept. */
  #held: (() => void)[] = []
  #state: FrontState = 'serving'

  constructor(parts: FrontParts) {
    this.#parts = parts
    this.#routes = new Map(Object.entries(this.#table()))
  }

  get state(): FrontState {
    return this.#state
  }

  /** Moves to another state; waking up lets go of what was held. */
  set state(state: FrontState) {
    this.#state = state
    if (state !== 'asleep') for (const release of this.#held.splice(0)) release()
  }

  /** For `http.createServer`. */
  readonly listener = (request: IncomingMessage, response: ServerResponse): void => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
    const requestId = this.#parts.requestIdHeaders ? clientRequestId(request) : undefined
    const exchange = { request, response, path, headers: baseHeaders(request, requestId) }
    const route = this.#routes.get(path)
    // uvicorn tells nobody how long it keeps a connection, so neither do we.
    if (exchange.headers.connection === undefined) response.removeHeader('connection')
    response.once('finish', () => {
      this.#parts.metrics.answered(
        route === undefined ? 'none' : path,
        request.method ?? 'GET',
        response.statusCode,
      )
    })
    this.#serve(route, exchange).catch((error: unknown) => this.#refuse(exchange, error))
  }

  async #serve(route: Route | undefined, exchange: Exchange): Promise<void> {
    const { request, response, path, headers } = exchange
    if (path.startsWith('/v1/') && !this.#authorized(request)) {
      sendText(response, 401, headers, JSON.stringify({ error: 'Unauthorized' }))
    } else if (route === undefined) {
      sendText(response, 404, headers, JSON.stringify({ detail: 'Not Found' }))
    } else if (!route.methods.includes(request.method ?? '')) {
      const allow = { ...headers, allow: route.methods.join(', ') }
      sendText(response, 405, allow, JSON.stringify({ detail: 'Method Not Allowed' }))
    } else {
      await route.run(exchange)
    }
  }

  #authorized(request: IncomingMessage): boolean {
    const { apiKey } = this.#parts
    return apiKey === undefined || request.headers.authorization === `Bearer ${apiKey}`
  }

  #refuse({ response, path, headers }: Exchange, error: unknown): void {
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    const told =
      error instanceof EngineError ? error : new EngineError(500, 'InternalServerError', String(error))
    sendText(response, told.status, headers, errorBody(told, path.startsWith('/v1/messages')))
  }

  #table(): Readonly<Record<string, Route>> {
    const get = (run: Route['run']): Route => ({ methods: ['GET'], run })
    const post = (run: Route['run']): Route => ({ methods: ['POST'], run })
    const json = (body: () => unknown) => (exchange: Exchange) =>
      sendText(exchange.response, 200, exchange.headers, JSON.stringify(body()))
    const healthy = (exchange: Exchange) =>
      sendText(exchange.response, this.#state === 'dead' ? 503 : 200, exchange.headers, '')
    return {
      '/health': get(healthy),
      '/ping': { methods: ['GET', 'POST'], run: healthy },
      '/version': get(json(() => ({ version: VERSION }))),
      '/load': get(json(() => ({ server_load: this.#parts.desk.openRequests }))),
      '/v1/models': get(json(() => this.#models())),
      '/metrics': get((exchange) => this.#metrics(exchange)),
      '/tokenize': post((exchange) => this.#tokenize(exchange)),
      '/detokenize': post((exchange) => this.#detokenize(exchange)),
      '/v1/messages/count_tokens': post((exchange) => this.#countTokens(exchange)),
      '/v1/chat/completions': this.#generation('chat', (body, salt) => [chatPrompt(body, salt)]),
      '/v1/completions': this.#generation('completion', completionPrompts),
      '/v1/responses': this.#generation('responses', (body, salt) => [responsesPrompt(body, salt)]),
      '/v1/messages': this.#generation('messages', (body, salt) => [messagesPrompt(body, salt)]),
    }
  }

  #generation(style: AnswerStyle, prompts: (body: JsonObject, salt: string) => readonly Prompt[]): Route {
    const run = async (exchange: Exchange) => {
      const body = await readBody(exchange)
      await this.#awake(exchange)
      if (this.#state === 'dead') throw engineDead()
      if (this.#state === 'draining') throw engineDraining()
      const model = readModel(body, this.#parts.servedNames)
      const generation = readGeneration(style, body, prompts(body, cacheSalt(model, body)), {
        servedNames: this.#parts.servedNames,
        maxModelLen: this.#parts.loop.model.maxModelLenTokens,
      })
      const given = exchange.request.headers['x-request-id']
      const clientId = typeof given === 'string' ? given : undefined
      this.#parts.desk.start(exchange.response, generation, exchange.headers, clientId)
    }
    return { methods: ['POST'], run }
  }

  /** While the engine sleeps nothing is answered at all, not even a status. */
  async #awake({ response }: Exchange): Promise<void> {
    while (this.#state === 'asleep' && !response.destroyed) {
      await new Promise<void>((resolve) => {
        this.#held.push(resolve)
        response.once('close', resolve)
      })
    }
  }

  #models() {
    const { servedNames, startedSec, loop } = this.#parts
    return {
      object: 'list',
      data: servedNames.map((id) => ({
        id,
        object: 'model',
        created: Math.floor(startedSec),
        owned_by: 'vllm',
        root: servedNames[0],
        parent: null,
        max_model_len: loop.model.maxModelLenTokens,
        permission: [],
      })),
    }
  }

  #metrics({ response, headers }: Exchange): void {
    const page = this.#parts.metrics.render(this.#state === 'asleep', process.memoryUsage.rss())
    sendText(response, 200, headers, page, METRICS_TYPE)
  }

  async #tokenize(exchange: Exchange): Promise<void> {
    const body = await readBody(exchange)
    readModel(body, this.#parts.servedNames)
    const [prompt] = 'messages' in body ? [chatPrompt(body, '')] : completionPrompts(body, '')
    const count = prompt?.tokens ?? 0
    const answer = {
      count,
      max_model_len: this.#parts.loop.model.maxModelLenTokens,
      tokens: fakeTokenIds(JSON.stringify(body.messages ?? body.prompt), count),
      token_strs: null,
    }
    sendText(exchange.response, 200, exchange.headers, JSON.stringify(answer))
  }

  async #detokenize(exchange: Exchange): Promise<void> {
    const { tokens } = await readBody(exchange)
    const prompt = Array.isArray(tokens) ? tokens.map((id) => `<${String(id)}>`).join('') : ''
    sendText(exchange.response, 200, exchange.headers, JSON.stringify({ prompt }))
  }

  async #countTokens(exchange: Exchange): Promise<void> {
    const body = await readBody(exchange)
    readModel(body, this.#parts.servedNames)
    const { tokens } = messagesPrompt(body, '')
    const answer = { input_tokens: tokens, context_management: { original_input_tokens: tokens } }
    sendText(exchange.response, 200, exchange.headers, JSON.stringify(answer))
  }
}

async function readBody({ request }: Exchange): Promise<JsonObject> {
  return parseBody(await readText(request), request.headers['content-type'])
}

function clientRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && given !== '' ? given : crypto.randomUUID().replaceAll('-', '')
}
