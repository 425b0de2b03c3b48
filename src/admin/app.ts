/** The admin port: metrics, probes, attainment, replicas, decisions, reload and the console. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Context, Hono } from 'hono'
import { statesByClass, worstState } from '../slo/slo-health.ts'
import { CONTENT_TYPES } from '../telemetry/metrics.ts'
import type { Every } from './console/live.ts'
import { CONSOLE_PATHS, serveConsole } from './console/routes.ts'
import { requireToken, sameOriginOnly } from './guard.ts'
import { snakeCased } from './key-case.ts'
import type { AdminPorts } from './ports.ts'
import { problem } from './problem.ts'
import { checksText, readiness } from './readiness.ts'
import { replicasJson } from './replicas-json.ts'
import {
  estimateJson,
  healthById,
  matchingKeys,
  type SeriesFilter,
  seriesJson,
  sloPreamble,
} from './slo-report.ts'
import { weightJson } from './weight.ts'

const PATHS = [
  ...CONSOLE_PATHS,
  '/metrics',
  '/livez',
  '/readyz',
  '/slo',
  '/health/slo',
  '/weight',
  '/replicas',
  '/decisions',
  'POST /-/reload',
]
const VERDICTS = ['admit', 'shed', 'good', 'bad', 'missed', 'excluded']
const DEFAULT_DECISIONS = 50
const MAX_DECISIONS = 2000
const ITEMS_A_TURN = 8

/** The app, to be served or asked in memory. It starts nothing: the console's timer runs while somebody looks. */
export function createAdminApp(ports: AdminPorts, every?: Every): Hono {
  const app = new Hono()
  app.use(async (c, next) => {
    await next()
    c.header('cache-control', 'no-store')
    c.header('x-content-type-options', 'nosniff')
  })
  app.get('/livez', (c) => c.text('ok\n'))
  app.get('/readyz', (c) => readyz(c, ports))
  app.get('/metrics', (c) => metrics(c, ports))
  app.get('/slo', (c) => slo(c, ports))
  app.get('/health/slo', (c) => healthOfSlo(c, ports))
  app.get('/weight', (c) => c.json(weightJson(ports.observer.weight)))
  app.get('/replicas', (c) => c.json(replicasJson(ports)))
  app.get('/decisions', requireToken(ports.token), (c) => decisions(c, ports))
  app.post('/-/reload', sameOriginOnly, requireToken(ports.token), (c) => reload(c, ports))
  app.all('/-/reload', (c) => {
    c.header('allow', 'POST')
    return problem(c, 405, 'method_not_allowed', 'Reload with POST, e.g. `curl -X POST …/-/reload`.')
  })
  serveConsole(app, ports, every)
  app.notFound((c) => problem(c, 404, 'unknown_path', `The admin port serves ${PATHS.join(', ')}.`))
  app.onError((error, c) => {
    ports.observer.onFault(error)
    return problem(c, 500, 'internal', 'A fault of Sluice itself; the log has a line with event `fault`.')
  })
  return app
}

function readyz(c: Context, ports: AdminPorts): Response {
  const { ready, checks } = readiness(ports)
  if (c.req.query('verbose') !== undefined) return c.text(checksText(checks), ready ? 200 : 503)
  const failed = checks.filter((check) => !check.ok && check.fatal)
  return ready ? c.text('ok\n') : c.text(`not ready\n${checksText(failed)}`, 503)
}

async function metrics(c: Context, ports: AdminPorts): Promise<Response> {
  const format = c.req.header('accept')?.includes('application/openmetrics-text') ? 'openmetrics' : 'text'
  return c.body(await ports.observer.metrics.scrape(format), 200, { 'content-type': CONTENT_TYPES[format] })
}

async function slo(c: Context, ports: AdminPorts): Promise<Response> {
  const { attainment } = ports.observer
  const health = healthById(ports.observer.health())
  const filter = Object.fromEntries(
    (['model', 'class', 'product'] as const).flatMap((part) => {
      const value = c.req.query(part)
      return value === undefined ? [] : [[part, value]]
    }),
  ) as SeriesFilter
  const head = {
    mode: ports.mode(),
    config_digest: ports.configDigest(),
    if_enforced: estimateJson(ports.observer.estimate, ports.nowMs()),
    ...sloPreamble(attainment, ports.nowMs()),
    advice: ports.advice(),
  }
  return withList(c, head, 'series', matchingKeys(attainment, filter), (key) =>
    seriesJson(attainment, key, health, ports.nowMs()),
  )
}

function healthOfSlo(c: Context, ports: AdminPorts): Response {
  const className = c.req.query('class')
  const all = ports.observer
    .health()
    .filter((health) => className === undefined || health.class === className)
  const state = worstState(all)
  const raised = all.filter((health) => health.state === 'critical' || health.state === 'burning')
  const shown = raised.map(({ model, class: raisedClass, product, state: own, raisedBy, sinceMs }) => {
    return {
      model,
      class: raisedClass,
      product,
      state: own,
      raised_by: raisedBy,
      for_ms: Math.max(0, ports.nowMs() - sinceMs),
    }
  })
  const status = c.req.query('status') === '1' && state === 'critical' ? 503 : 200
  return c.json({ state, classes: statesByClass(all), raised: shown }, status)
}

async function decisions(c: Context, ports: AdminPorts): Promise<Response> {
  const { limit: given, verdict, request_id: requestId, class: className } = c.req.query()
  const limit = given === undefined ? DEFAULT_DECISIONS : Number(given)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_DECISIONS) {
    return problem(c, 400, 'bad_limit', `\`limit\` is a whole number from 1 to ${MAX_DECISIONS}.`)
  }
  if (verdict !== undefined && !VERDICTS.includes(verdict)) {
    return problem(c, 400, 'bad_verdict', `\`verdict\` is one of ${VERDICTS.join(', ')}.`)
  }
  const ring = ports.observer.decisions
  const entries = ring.last(limit, {
    ...(requestId === undefined ? {} : { requestId }),
    ...(className === undefined ? {} : { className }),
    ...(verdict === undefined ? {} : { verdict }),
  })
  return withList(c, { held: ring.size }, 'decisions', entries, snakeCased)
}

/** Ends `head` with a list that can be long: it is written with turns of the loop between, so that no stream waits for it. */
async function withList<T>(
  c: Context,
  head: object,
  name: string,
  items: readonly T[],
  jsonOf: (item: T) => unknown,
): Promise<Response> {
  const written: string[] = []
  for (const item of items) {
    written.push(JSON.stringify(jsonOf(item)))
    if (written.length % ITEMS_A_TURN === 0) await nextTurn()
  }
  const text = `${JSON.stringify(head).slice(0, -1)},"${name}":[${written.join(',')}]}\n`
  return c.body(text, 200, { 'content-type': 'application/json' })
}

async function reload(c: Context, ports: AdminPorts): Promise<Response> {
  const result = await ports.reload()
  if (result.ok) return c.json({ reloaded: true, digest: result.digest, changes: result.changes ?? [] })
  const message = 'The file has problems; the old configuration goes on. Mend them and reload again.'
  return problem(c, 422, 'invalid_config', message, { problems: result.problems })
}
