/** The traffic port's routes: an allow-list, denied by default, answered raw where bodies stream. */
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { type ErrorCode, ProxyError } from '../errors.ts'
import type { Edge, Io } from './edge.ts'
import { type Rng, refusalOf } from './refusal.ts'
import { clientRequestId } from './request-id.ts'
import { dialectOf, ROUTES } from './routes.ts'

type Env = { readonly Bindings: HttpBindings }

/** What may be asked of a stored response beside itself. */
const STORED_ACTIONS = ['cancel', 'input_items']

/** The Hono app of the traffic port. It must run under node-server, since it writes to Node's own response. */
export function createApp(edge: Edge, rng: Rng): Hono<Env> {
  const app = new Hono<Env>()
  for (const route of ROUTES) app.post(route.path, (c) => raw(c, (io) => edge.serve(route, io)))
  app.get('/health', (c) => c.body(null, 200))
  app.get('/readyz', (c) => c.json({ ready: edge.ready }, edge.ready ? 200 : 503))
  app.get('/v1/models', (c) => listModels(c, edge, rng))
  app.on(['GET', 'POST', 'DELETE'], ['/v1/responses/:id', '/v1/responses/:id/:action'], (c) => {
    const { id, action } = c.req.param() as { readonly id: string; readonly action?: string }
    if (isHead(c) || (action !== undefined && !STORED_ACTIONS.includes(action))) return notFound(c, rng)
    return raw(c, (io) => edge.serveStored({ id, action }, io))
  })
  // Not a route of its own: a path that matched two would be composed, which costs more than all of the routing.
  app.notFound((c) => {
    const { path } = c.req
    if (!edge.settings.passthrough.includes(path) || !/^(GET|POST)$/.test(c.env.incoming.method ?? '')) {
      return notFound(c, rng)
    }
    return raw(c, (io) => edge.servePassthrough(path, io))
  })
  return app
}

/**
 * Leaves Node's own response to `serve`. No middleware may touch what is returned: a header set afterwards would make
 * node-server send a second, empty answer.
 */
function raw(c: Context<Env>, serve: (io: Io) => Promise<void>): Response {
  void serve({ incoming: c.env.incoming, outgoing: c.env.outgoing as Io['outgoing'] })
  return RESPONSE_ALREADY_SENT
}

/** Hono answers HEAD with the headers of GET, which a raw answer does not have. */
function isHead(c: Context<Env>): boolean {
  return c.env.incoming.method === 'HEAD'
}

function listModels(c: Context<Env>, edge: Edge, rng: Rng): Response {
  try {
    const names = edge.models(c.env.incoming as Io['incoming'])
    const entries = names.map((id) => ({ id, object: 'model', created: 0, owned_by: 'sluice' }))
    return c.json({ object: 'list', data: entries })
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error
    return refuse(c, error.code, error.message, rng)
  }
}

function notFound(c: Context<Env>, rng: Rng): Response {
  return refuse(c, 'unknown_route', `${c.req.method} ${c.req.path} is not served here`, rng)
}

function refuse(c: Context<Env>, code: ErrorCode, message: string, rng: Rng): Response {
  const { status, headers, body } = refusalOf({ code, message, dialect: dialectOf(c.req.path) }, rng)
  const requestId = clientRequestId(c.req.header('x-request-id'))
  return new Response(body, { status, headers: { ...headers, 'x-request-id': requestId } })
}
