/** Gathers the requests of a log, whatever order its lines come in, and keeps account of lines that say nothing. */
import type { Ms } from '../core/units.ts'
import { type LoggedRequest, readLine } from './logged-request.ts'

export interface BadLine {
  /** File and line. */
  readonly at: string
  readonly why: string
}

/** The requests of a log in order of arrival, and what was left out of it. */
export interface Logged {
  readonly requests: readonly LoggedRequest[]
  readonly lines: number
  readonly badLines: number
  /** The first of them. */
  readonly badExamples: readonly BadLine[]
  readonly outsideSpan: number
  /** First and last arrival, those outside included; from infinity to minus infinity when nothing came. */
  readonly seen: Span
  readonly repeated: number
  /** Configurations that decided, as far as they were told apart. */
  readonly configDigests: readonly string[]
}

export interface Span {
  /** In Unix ms, by arrival. */
  readonly fromMs: Ms
  readonly toMs: Ms
}

/** A request takes about half a kilobyte here. */
export const MOST_REQUESTS = 1_000_000
const BAD_EXAMPLES = 5
const MOST_DIGESTS = 8

export class LogBook {
  readonly #span: Span
  readonly #most: number
  readonly #requests: LoggedRequest[] = []
  readonly #words = new Map<string, string>()
  readonly #digests = new Set<string>()
  readonly #badExamples: BadLine[] = []
  #lines = 0
  #badLines = 0
  #outside = 0
  #seen: Span = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.NEGATIVE_INFINITY }

  constructor(span: Partial<Span> = {}, most = MOST_REQUESTS) {
    this.#span = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY, ...span }
    this.#most = most
  }

  /** `at` names file and line. Throws a RangeError when there are more requests than memory is for. */
  take(line: string, at: string): void {
    this.#lines++
    const read = readLine(line)
    if (read.kind === 'bad') this.#bad(at, read.why)
    if (read.kind === 'request') this.#keep(read.request)
  }

  /** A line that could not even be read. */
  skip(at: string, why: string): void {
    this.#lines++
    this.#bad(at, why)
  }

  /** What there is; nothing may be taken after that. */
  close(): Logged {
    const sorted = this.#requests.sort(inOrder)
    const requests = sorted.filter((request, at) => at === 0 || !isSame(sorted[at - 1], request))
    return {
      requests,
      lines: this.#lines,
      badLines: this.#badLines,
      badExamples: this.#badExamples,
      outsideSpan: this.#outside,
      seen: this.#seen,
      repeated: sorted.length - requests.length,
      configDigests: [...this.#digests].sort(),
    }
  }

  #keep(request: LoggedRequest): void {
    const { arrivedAtMs, configDigest } = request
    this.#seen = {
      fromMs: Math.min(this.#seen.fromMs, arrivedAtMs),
      toMs: Math.max(this.#seen.toMs, arrivedAtMs),
    }
    if (arrivedAtMs < this.#span.fromMs || arrivedAtMs >= this.#span.toMs) {
      this.#outside++
      return
    }
    if (this.#requests.length >= this.#most) {
      throw new RangeError(
        `more than ${this.#most} requests do not fit into memory; choose a stretch with --from and --to`,
      )
    }
    if (configDigest !== undefined && this.#digests.size < MOST_DIGESTS) this.#digests.add(configDigest)
    this.#requests.push(this.#slim(request))
  }

  /** Names recur in each line: one copy of each is enough. */
  #slim(request: LoggedRequest): LoggedRequest {
    const { configDigest: _, ...rest } = request
    const slim: Record<string, unknown> = { ...rest }
    for (const name of ['model', 'className', 'product', 'tenant', 'route', 'replica', 'cause'] as const) {
      const word = rest[name]
      if (word !== undefined) slim[name] = this.#one(word)
    }
    slim.prefixHashes = rest.prefixHashes.map((hash) => this.#one(hash))
    return slim as unknown as LoggedRequest
  }

  #one(word: string): string {
    const found = this.#words.get(word)
    if (found !== undefined) return found
    this.#words.set(word, word)
    return word
  }

  #bad(at: string, why: string): void {
    this.#badLines++
    if (this.#badExamples.length < BAD_EXAMPLES) this.#badExamples.push({ at, why })
  }
}

/** By arrival; of those that came in the same instant, by name and then by how they ended. */
function inOrder(a: LoggedRequest, b: LoggedRequest): number {
  if (a.arrivedAtMs !== b.arrivedAtMs) return a.arrivedAtMs - b.arrivedAtMs
  if (a.id !== b.id) return a.id < b.id ? -1 : 1
  return a.e2eMs - b.e2eMs
}

/** The same line twice, as from a file that is given twice. */
function isSame(a: LoggedRequest | undefined, b: LoggedRequest): boolean {
  return a !== undefined && a.id === b.id && a.arrivedAtMs === b.arrivedAtMs && a.e2eMs === b.e2eMs
}
