/** The console's routes: the page, its assets, its stream, the numbers behind it as JSON, and who may read decisions. */
import { readFileSync } from 'node:fs'
import type { Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { type RangeName, TIMELINE_RANGES } from '../../telemetry/timeline.ts'
import { sameOriginOnly } from '../guard.ts'
import { snakeCased } from '../key-case.ts'
import { SHOWN, type Shown } from '../overview/decisions.ts'
import { overview } from '../overview/overview.ts'
import type { AdminPorts } from '../ports.ts'
import { problem } from '../problem.ts'
import { type Every, LiveFeed, MAX_VIEWERS } from './live.ts'
import { PAGE_POLICY, page, THEMES, type Theme } from './page.ts'
import { type Choices, RegionPainter } from './regions.ts'
import { Sessions } from './session.ts'

export const CONSOLE_PATHS = ['/', '/live', '/overview', 'POST /-/session'] as const

const ASSETS: readonly (readonly [path: string, type: string])[] = [
  ['/console.css', 'text/css; charset=utf-8'],
  ['/console.js', 'text/javascript; charset=utf-8'],
  ['/console.svg', 'image/svg+xml'],
]
const MAX_FORM_BYTES = 4096
const RETRY_AFTER_SEC = 10

/** Adds the console to the admin port. Nothing runs before the first viewer, and nothing after the last. */
export function serveConsole(app: Hono, ports: AdminPorts, every?: Every): void {
  const painter = new RegionPainter(ports)
  const feed = new LiveFeed(painter, ports.nowMs, every)
  const sessions = new Sessions(ports.token)
  for (const [path, type] of ASSETS) {
    const bytes = readFileSync(new URL(`../assets${path}`, import.meta.url), 'utf8')
    app.get(path, (c) => c.body(bytes, 200, { 'content-type': type }))
  }
  app.get('/', (c) => {
    const mayReadDecisions = sessions.admits(c)()
    const choices = { ...choicesOf(c), theme: pick<Theme>(c.req.query('theme'), THEMES), mayReadDecisions }
    const signedIn = mayReadDecisions && (ports.token() ?? '') !== ''
    c.header('content-security-policy', PAGE_POLICY)
    return c.html(page({ ...choices, signedIn }, painter.moment()(choices)))
  })
  app.get('/live', (c) => live(c, feed, sessions))
  app.get('/overview', (c) => c.json(snakeCased(overview(ports, sessions.admits(c)())) as object))
  const form = bodyLimit({
    maxSize: MAX_FORM_BYTES,
    onError: (c) => problem(c, 400, 'too_large', 'No admin token is that long.'),
  })
  app.post('/-/session', sameOriginOnly, form, async (c) => {
    const { token } = await c.req.parseBody()
    const answer = sessions.offer(c, typeof token === 'string' ? token : '')
    if (answer === 'refused')
      return problem(c, 401, 'unauthorized', 'That is not the admin token; it is `admin.token` in the file.')
    return c.redirect('/', 303)
  })
}

function live(c: Context, feed: LiveFeed, sessions: Sessions): Response {
  const stream = feed.open({ ...choicesOf(c), mayReadDecisions: sessions.admits(c) })
  if (stream === undefined) {
    c.header('retry-after', String(RETRY_AFTER_SEC))
    return problem(
      c,
      503,
      'too_many_viewers',
      `${MAX_VIEWERS} pages are open already; close one, or use \`sluice top\`.`,
    )
  }
  return c.body(stream, 200, { 'content-type': 'text/event-stream' })
}

function choicesOf(c: Context): Pick<Choices, 'range' | 'shown'> {
  return {
    range: pick<RangeName>(
      c.req.query('range'),
      TIMELINE_RANGES.map(({ name }) => name),
    ),
    shown: pick<Shown>(c.req.query('shown'), SHOWN),
  }
}

/** The choice that was asked for, else the first. */
function pick<T extends string>(asked: string | undefined, all: readonly T[]): T {
  return all.find((one) => one === asked) ?? (all[0] as T)
}
