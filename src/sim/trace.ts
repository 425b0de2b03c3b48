/** Reads a trace line by line and replays it at any rate. */
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import { drawClient } from './clients.ts'
import { hash32, Rng } from './rng.ts'
import type { RequestSource } from './source.ts'
import { type FormReader, formOf, type TraceForm } from './trace-forms.ts'
import type { TraceRow } from './trace-types.ts'
import type { ClientModel, UnsentRequest, WorkloadRequest } from './workload-types.ts'

export interface Trace {
  readonly form: TraceForm
  /** In order; the first one is at 0. Requests of a tick are spread over it in the Mooncake form. */
  readonly rows: readonly TraceRow[]
  /** Rows left out since their request had failed. */
  readonly failedRows: number
}

const LARGEST_TRACE_ROWS = 2_000_000

/** Takes the lines of one file, in order. `take` and `end` throw a RangeError that names file and line. */
export class TraceReader {
  readonly #fileName: string
  readonly #classNames: ReadonlySet<string>
  readonly #rows: TraceRow[] = []
  #form: FormReader | undefined
  #lines = 0
  #failedRows = 0
  #lastAtMs = Number.NEGATIVE_INFINITY

  /** Rows may name one of `classNames`. */
  constructor(fileName: string, classNames: Iterable<string>) {
    this.#fileName = fileName
    this.#classNames = new Set(classNames)
  }

  take(line: string): void {
    this.#lines++
    const text = (this.#lines === 1 ? line.replace(/^\uFEFF/, '') : line).trim()
    if (text === '') return
    try {
      this.#takeText(text)
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause
      throw new RangeError(`${this.#fileName}:${this.#lines}: ${cause.message}`)
    }
  }

  end(): Trace {
    const rows = this.#rows
    if (this.#form === undefined || rows.length === 0) {
      throw new RangeError(`${this.#fileName}: no requests in it`)
    }
    const { form } = this.#form
    const startMs = rows[0]?.atMs ?? 0
    const shifted = rows.map((row) => ({ ...row, atMs: row.atMs - startMs }))
    return { form, rows: form === 'mooncake' ? spread(shifted) : shifted, failedRows: this.#failedRows }
  }

  #takeText(text: string): void {
    if (this.#form === undefined) {
      this.#form = formOf(text)
      if (!this.#form.readsFirst) return
    }
    const row = this.#form.read(text)
    if (row.atMs < this.#lastAtMs) {
      throw new RangeError('it is earlier than the line before; sort the file by time')
    }
    if (row.className !== undefined && !this.#classNames.has(row.className)) {
      throw new RangeError(`class "${row.className}" is none of ${[...this.#classNames].join(', ')}`)
    }
    if (this.#rows.length >= LARGEST_TRACE_ROWS) {
      throw new RangeError(`more than ${LARGEST_TRACE_ROWS} requests do not fit into memory; cut the file`)
    }
    this.#lastAtMs = row.atMs
    if (row.outputTokens === 0) this.#failedRows++
    else this.#rows.push(row)
  }
}

/**
 * Mooncake stamps arrivals on ticks of some seconds, so that all of a tick would come at once. The k-th of n goes to
 * tick + k/n of the way to the next one (the last tick is taken to be as long as the one before).
 */
function spread(rows: readonly TraceRow[]): readonly TraceRow[] {
  const spreadRows: TraceRow[] = []
  let tickMs = 0
  for (let from = 0; from < rows.length; ) {
    const atMs = rows[from]?.atMs ?? 0
    let to = from
    while (to < rows.length && rows[to]?.atMs === atMs) to++
    const next = rows[to]
    if (next !== undefined) tickMs = next.atMs - atMs
    const count = to - from
    for (const [index, row] of rows.slice(from, to).entries()) {
      spreadRows.push({ ...row, atMs: atMs + (tickMs * index) / count })
    }
    from = to
  }
  return spreadRows
}

export interface TraceShape {
  /** The class of rows that name none. */
  readonly className: string
  readonly lengthRatio?: Ratio
  readonly client?: ClientModel
}

/** The mean rate at which the trace was recorded, all rows counted. */
export function traceRatePerSec({ rows }: Trace): number {
  return (rows.length * 1000) / Math.max(spanMs(rows), 1)
}

/** Replays the trace with its time stretched to the rate. The seed only decides how clients behave. */
export function traceSource(trace: Trace, shape: TraceShape): RequestSource {
  const { rows } = trace
  const { lengthRatio = 1 } = shape
  const mean = (of: (row: TraceRow) => Tokens) =>
    (lengthRatio * rows.reduce((sum, row) => sum + of(row), 0)) / rows.length
  const naturalPerSec = traceRatePerSec(trace)
  return {
    meanTokens: { prompt: mean((row) => row.promptTokens), output: mean((row) => row.outputTokens) },
    lengthMsAt: (ratePerSec) => (spanMs(rows) * naturalPerSec) / ratePerSec,
    streamAt: (ratePerSec, durationMs, seed) =>
      replay(rows, shape, { timeRatio: naturalPerSec / ratePerSec, durationMs, seed }),
  }
}

/** From the first request to one mean gap after the last. */
function spanMs(rows: readonly TraceRow[]): Ms {
  const lastAtMs = rows.at(-1)?.atMs ?? 0
  return rows.length < 2 ? 1000 : (lastAtMs * rows.length) / (rows.length - 1)
}

interface Pace {
  readonly timeRatio: Ratio
  readonly durationMs: Ms
  readonly seed: number
}

function* replay(
  rows: readonly TraceRow[],
  shape: TraceShape,
  { timeRatio, durationMs, seed }: Pace,
): Generator<WorkloadRequest, void, undefined> {
  const laterTurns = linkTurns(rows)
  const ofRow = (row: TraceRow, at: number): UnsentRequest => {
    const request = toRequest(row, at, shape, seed)
    const nextAt = laterTurns.get(at)
    const next = nextAt === undefined ? undefined : rows[nextAt]
    if (next === undefined || nextAt === undefined) return request
    return { ...request, next: { thinkMs: next.thinkMs ?? 0, request: ofRow(next, nextAt) } }
  }
  const isLater = new Set(laterTurns.values())
  for (const [at, row] of rows.entries()) {
    const atMs = row.atMs * timeRatio
    if (atMs >= durationMs) return
    if (!isLater.has(at)) yield { atMs, ...ofRow(row, at) }
  }
}

/** From each row to the next one of its session. */
function linkTurns(rows: readonly TraceRow[]): ReadonlyMap<number, number> {
  const links = new Map<number, number>()
  const lastOf = new Map<string, number>()
  for (const [at, { session }] of rows.entries()) {
    if (session === undefined) continue
    const before = lastOf.get(session)
    if (before !== undefined) links.set(before, at)
    lastOf.set(session, at)
  }
  return links
}

function toRequest(row: TraceRow, at: number, shape: TraceShape, seed: number): UnsentRequest {
  const { lengthRatio = 1, client } = shape
  const scale = (tokens: Tokens) => Math.max(1, Math.round(tokens * lengthRatio))
  const id = `t${at}`
  const { blocks, session, maxTokens } = row
  return {
    id,
    className: row.className ?? shape.className,
    promptTokens: scale(row.promptTokens),
    outputTokens: scale(row.outputTokens),
    ...(maxTokens === undefined ? {} : { maxTokens: scale(maxTokens) }),
    ...(session === undefined ? {} : { text: `session ${session}` }),
    ...(blocks === undefined ? {} : { blocks: { ...blocks, tokens: scale(blocks.tokens) } }),
    ...(client === undefined ? {} : drawClient(client, new Rng(hash32(id, seed)))),
  }
}
