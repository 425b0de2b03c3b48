/** Reads a replica's metrics page again and again, and says how old the view is and whether the engine restarted. */
import type { Ms, Tokens } from '../core/units.ts'
import type { EngineAdapter, LoadSample } from '../engines/adapter.ts'
import { asObject, parseJson } from '../engines/failures.ts'
import type { Clock, Stop } from './clock.ts'
import type { Connection } from './connection.ts'
import { type Fetched, fetchBody } from './fetch-body.ts'

/**
 * How the last look went. `foreign`: answered, but without any known gauge; `unreadable`: an error status, a time-out,
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
  /** When the engine's own work counter last moved. */
  readonly progressAtMs?: Ms
  readonly maxModelLenTokens?: Tokens
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

/** The context length that `/v1/models` tells for the served name, else the longest one there. */
export function readMaxModelLen(body: Buffer, servedName: string): Tokens | undefined {
  const list = asObject(parseJson(body.toString('utf8')))?.data
  if (!Array.isArray(list)) return undefined
  const lengths = list.flatMap((entry) => {
    const model = asObject(entry)
    const length = model?.max_model_len
    return typeof length === 'number' && length > 0 ? [{ id: model?.id, length }] : []
  })
  return (lengths.find(({ id }) => id === servedName) ?? lengths.sort((a, b) => b.length - a.length)[0])
    ?.length
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
  // Names and figures are ASCII; one byte a character is the cheapest text there is.
  const sample = fetched.status === 200 ? adapter.parseLoad(fetched.body.toString('latin1')) : undefined
  if (sample !== undefined) return { outcome: 'ok', sample, message: '' }
  return { outcome: 'foreign', message: `status ${fetched.status}, no known gauge on the page` }
}

/** The view after one more look at `nowMs`. */
export function nextView(view: ScrapeView, look: Look, nowMs: Ms): ScrapeView {
  const { outcome, sample, message } = look
  const streak = outcome === view.outcome ? view.streak + 1 : 1
  const backAgain = view.outcome === 'refused' && outcome !== 'refused' && outcome !== 'none'
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

/** Starts looking; goes on until closed, whatever the looks show. */
export function startScraper(options: ScraperOptions): Scraper {
  const { connection, adapter, clock } = options
  let view: ScrapeView = { outcome: 'none', streak: 0, generation: 0, message: 'not looked at yet' }
  let closed = false
  let askedInGeneration = -1
  let stop: Stop = clock.after(options.staggerMs ?? 0, () => void look())

  async function look(): Promise<void> {
    const fetched = await get(connection, adapter.metricsPath ?? adapter.healthPath, HEADERS)
    if (closed) return
    view = nextView(view, judge(adapter, fetched), clock.nowMs())
    options.onView(view)
    if (fetched.kind === 'answer' && askedInGeneration !== view.generation) await askModels()
    if (closed) return
    const pageBytes = fetched.kind === 'answer' ? fetched.body.length : 0
    stop = clock.after(delayMs(options.periodMs ?? SCRAPE_PERIOD_MS, view, pageBytes), () => void look())
  }

  async function askModels(): Promise<void> {
    const fetched = await get(connection, '/v1/models', {})
    if (closed || fetched.kind !== 'answer') return
    askedInGeneration = view.generation
    const maxModelLenTokens =
      fetched.status === 200 ? readMaxModelLen(fetched.body, options.servedName) : undefined
    if (maxModelLenTokens === undefined) return
    view = { ...view, maxModelLenTokens }
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
