/** Reads a replica's load page again and again, and says how old the view is and whether the engine restarted. */
import type { EngineLimits } from '../core/replica.ts'
import type { Ms } from '../core/units.ts'
import type { EngineAdapter, LoadSample } from '../engines/adapter.ts'
import type { Clock, Stop } from './clock.ts'
import type { Connection } from './connection.ts'
import { type Fetched, fetchBody } from './fetch-body.ts'

/**
 * How the last look went. `none`: not looked yet, or an engine kind without a load page answered; `foreign`: answered, but without any known gauge; `unreadable`: an error status, a time-out,
 * a cut or an overlong page; `refused`: nobody listens on the port.
 */
export type ScrapeOutcome = 'none' | 'ok' | 'foreign' | 'unreadable' | 'refused'

export interface ScrapeView {
  readonly outcome: ScrapeOutcome
  /** Looks in a row with that outcome. */
  readonly streak: number
  /** The last readable page; kept while later looks fail. */
  readonly sample?: LoadSample
  readonly sampleAtMs?: Ms
  /** When it last answered a look, whatever it said. */
  readonly answeredAtMs?: Ms
  /** When the engine's own work counter last moved. */
  readonly progressAtMs?: Ms
  /** What the engine's own pages say of its limits. */
  readonly limits: EngineLimits
  /** Rises with each restart seen. */
  readonly generation: number
  readonly message: string
}

export interface ScraperOptions {
  readonly connection: Connection
  readonly adapter: EngineAdapter
  readonly servedName: string
  readonly clock: Clock
  readonly periodMs?: Ms
  /** Delay of the first look, so that the looks at many replicas don't fall together. */
  readonly staggerMs?: Ms
  onView(view: ScrapeView): void
}

export const SCRAPE_PERIOD_MS: Ms = 500
/** A vLLM under load may take two seconds to print its page. */
const DEADLINE_MS: Ms = 2500
const CAP_BYTES = 4 << 20
/** From this size on a page is read less often. */
const BIG_PAGE_BYTES = 256 * 1024
const MAX_PERIOD_MS: Ms = 5000
const HEADERS = { accept: 'text/plain;version=0.0.4' }

export interface Scraper {
  readonly view: ScrapeView
  close(): void
}

/** Whether a page tells of another life of the engine than the one before. */
export function restarted(before: LoadSample, after: LoadSample): boolean {
  if (before.processStartSec !== undefined && after.processStartSec !== undefined) {
    return before.processStartSec !== after.processStartSec
  }
  const fell = (was: number | undefined, is: number | undefined): boolean =>
    was !== undefined && is !== undefined && is < was
  return (
    fell(before.progressTotal, after.progressTotal) ||
    fell(before.gauges.preemptionsTotal, after.gauges.preemptionsTotal)
  )
}

/** One look, judged. */
interface Look {
  readonly outcome: ScrapeOutcome
  readonly sample?: LoadSample
  readonly message: string
}

function judge(adapter: EngineAdapter, fetched: Fetched): Look {
  if (fetched.kind === 'too_large')
    return { outcome: 'unreadable', message: `the page is larger than ${CAP_BYTES} bytes` }
  if (fetched.kind === 'fault') {
    const { cause, message } = fetched.fault
    return { outcome: cause === 'refused' ? 'refused' : 'unreadable', message }
  }
  if (fetched.status >= 500) return { outcome: 'unreadable', message: `status ${fetched.status}` }
  if (adapter.loadPaths.length === 0) return { outcome: 'none', message: 'this engine kind has no load page' }
  // Names and figures are ASCII; one byte a character is the cheapest text there is.
  const sample = fetched.status === 200 ? adapter.parseLoad(fetched.body.toString('latin1')) : undefined
  if (sample !== undefined) return { outcome: 'ok', sample, message: '' }
  return { outcome: 'foreign', message: `status ${fetched.status}, no known gauge on the page` }
}

/** The view after one more look at `nowMs`. */
export function nextView(view: ScrapeView, look: Look, nowMs: Ms): ScrapeView {
  const { outcome, sample, message } = look
  const streak = outcome === view.outcome ? view.streak + 1 : 1
  const backAgain = view.outcome === 'refused' && outcome !== 'refused'
  if (sample === undefined) {
    return { ...view, outcome, streak, message, generation: view.generation + (backAgain ? 1 : 0) }
  }
  const reborn = view.sample === undefined ? backAgain : backAgain || restarted(view.sample, sample)
  const moved = view.sample === undefined || sample.progressTotal !== view.sample.progressTotal
  const progressAtMs = moved || reborn ? nowMs : view.progressAtMs
  return {
    ...view,
    outcome,
    streak,
    message,
    sample,
    sampleAtMs: nowMs,
    ...(progressAtMs === undefined ? {} : { progressAtMs }),
    generation: view.generation + (reborn ? 1 : 0),
  }
}

function get(
  connection: Connection,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<Fetched> {
  return fetchBody(connection, { method: 'GET', path, headers, deadlineMs: DEADLINE_MS, capBytes: CAP_BYTES })
}

/** How long to wait after a look: longer for big pages and after failures, so that watching never weighs on the engine. */
function delayMs(periodMs: Ms, view: ScrapeView, pageBytes: number): Ms {
  const fine = view.outcome === 'ok' || view.outcome === 'refused'
  const failing = fine ? 1 : 2 ** Math.min(view.streak, 4)
  return Math.min(MAX_PERIOD_MS, periodMs * Math.max(failing, Math.ceil(pageBytes / BIG_PAGE_BYTES)))
}

interface Reading {
  readonly fetched: Fetched
  readonly found: Look
}

/** Reads the page that was readable last, and the others while the engine answers that it has no such page. */
function loadReader({ connection, adapter }: ScraperOptions): () => Promise<Reading> {
  const paths = adapter.loadPaths.length === 0 ? [adapter.healthPath] : adapter.loadPaths
  let readableAt = 0
  const read = async (turn: number): Promise<Reading> => {
    const at = (readableAt + turn) % paths.length
    const fetched = await get(connection, paths[at] ?? adapter.healthPath, HEADERS)
    const reading = { fetched, found: judge(adapter, fetched) }
    if (reading.found.outcome === 'ok') readableAt = at
    else if (fetched.kind === 'answer' && turn + 1 < paths.length) {
      const other = await read(turn + 1)
      if (other.found.outcome === 'ok') return other
    }
    return reading
  }
  return () => read(0)
}

/** What the engine's pages say of its limits; undefined while it does not answer, as one that is starting does. */
async function readLimits({
  connection,
  adapter,
  servedName,
}: ScraperOptions): Promise<EngineLimits | undefined> {
  let limits: EngineLimits = {}
  for (const path of adapter.limitsPaths) {
    const fetched = await get(connection, path, {})
    if (fetched.kind !== 'answer' || fetched.status >= 500) return undefined
    if (fetched.status === 200)
      limits = { ...limits, ...adapter.parseLimits(fetched.body.toString('utf8'), servedName) }
  }
  return limits
}

/** Starts looking; goes on until closed, whatever the looks show. */
export function startScraper(options: ScraperOptions): Scraper {
  const { clock } = options
  const readLoad = loadReader(options)
  const blank = { outcome: 'none', streak: 0, limits: {}, generation: 0 } as const
  let view: ScrapeView = { ...blank, message: 'not looked at yet' }
  let closed = false
  let askedInGeneration = -1
  let stop: Stop = clock.after(options.staggerMs ?? 0, () => void look())

  async function look(): Promise<void> {
    const { fetched, found } = await readLoad()
    if (closed) return
    const nowMs = clock.nowMs()
    view = nextView(view, found, nowMs)
    if (fetched.kind !== 'fault') view = { ...view, answeredAtMs: nowMs }
    options.onView(view)
    if (fetched.kind === 'answer' && askedInGeneration !== view.generation) await askLimits()
    if (closed) return
    const pageBytes = fetched.kind === 'answer' ? fetched.body.length : 0
    stop = clock.after(delayMs(options.periodMs ?? SCRAPE_PERIOD_MS, view, pageBytes), () => void look())
  }

  async function askLimits(): Promise<void> {
    const limits = await readLimits(options)
    if (closed || limits === undefined) return
    askedInGeneration = view.generation
    view = { ...view, limits }
    options.onView(view)
  }

  return {
    get view() {
      return view
    },
    close: () => {
      closed = true
      stop()
    },
  }
}
