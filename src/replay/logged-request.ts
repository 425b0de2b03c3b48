/** Reads one line of the log that `serve` writes: a finished request with its sizes, timings and verdict, or why it is none. */
import type { ShedReason } from '../core/effects.ts'
import { OUTCOMES, type Settlement, type SloVerdict } from '../core/records.ts'
import type { RequestKind } from '../core/request.ts'
import type { Ms, Tokens } from '../core/units.ts'
import { readStampMs } from '../sim/time-stamp.ts'
import { present } from './present.ts'

/** Versions of the request line that are understood here. */
export const READABLE_VERSIONS: readonly number[] = [1]

/** One finished request, as its line tells it. */
export interface LoggedRequest {
  readonly id: string
  /** When the last byte of its body was in, in Unix ms, by the time of its line and its duration. */
  readonly arrivedAtMs: Ms
  readonly model: string
  readonly className: string
  readonly product: string
  readonly tenant: string
  readonly route: string
  readonly kind: RequestKind
  readonly streamed: boolean
  readonly sequences: number
  readonly retryCount: number
  /** As the engine counted it, else as it was estimated. */
  readonly promptTokens: Tokens
  readonly estimatedTokens: Tokens
  /** Prompt tokens that the engine had to compute, by its own count of cached ones, else as was believed. */
  readonly uncachedTokens: Tokens
  /** The engine's own count; absent where it gave none. */
  readonly cachedTokens?: Tokens
  readonly outputTokens: Tokens
  readonly maxOutputTokens?: Tokens
  readonly minOutputTokens?: Tokens
  readonly bodyBytes: number
  readonly steerTtftMs?: Ms
  readonly steerTpotMs?: Ms
  /** Hashes of the first blocks of its prompt; equal hashes are equal beginnings. */
  readonly prefixHashes: readonly string[]
  readonly prefixBlockTokens: Tokens
  readonly outcome: Settlement['outcome']
  readonly shedReason?: ShedReason
  readonly replica?: string
  readonly queueMs: Ms
  readonly ttftMs?: Ms
  readonly tpotMs?: Ms
  readonly e2eMs: Ms
  readonly verdict: SloVerdict['kind']
  readonly cause?: string
  readonly configDigest?: string
}

export type LineRead =
  | { readonly kind: 'request'; readonly request: LoggedRequest }
  /** Another event, or an empty line. */
  | { readonly kind: 'other' }
  | { readonly kind: 'bad'; readonly why: string }

const REQUEST_EVENT = 'request'
const KNOWN_OUTCOMES: ReadonlySet<string> = new Set(OUTCOMES)
const VERDICTS: ReadonlySet<string> = new Set<SloVerdict['kind']>(['good', 'bad', 'excluded'])

/** What collectors put before a line (a time, a stream, a container) is skipped. */
export function readLine(line: string): LineRead {
  const text = line.trim()
  if (text === '') return { kind: 'other' }
  try {
    const fields = new Fields(parsed(text))
    if (fields.event !== REQUEST_EVENT) return { kind: 'other' }
    return { kind: 'request', request: requestOf(fields) }
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    return { kind: 'bad', why: cause.message }
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  const start = text.indexOf('{')
  if (start < 0) throw new RangeError('no JSON')
  try {
    return JSON.parse(start === 0 ? text : text.slice(start)) as Record<string, unknown>
  } catch {
    throw new RangeError('no whole JSON object')
  }
}

function requestOf(fields: Fields): LoggedRequest {
  const version = fields.count('v') ?? 0
  if (!READABLE_VERSIONS.includes(version))
    throw new RangeError(`version ${version} of the line; known here: ${READABLE_VERSIONS.join(', ')}`)
  const e2eMs = fields.needed('e2e_ms')
  return {
    id: fields.text('request_id'),
    arrivedAtMs: fields.instant('time') - e2eMs,
    ...whose(fields),
    ...sizes(fields),
    bodyBytes: fields.count('body_bytes') ?? 0,
    ...present('steerTtftMs', fields.count('steer_ttft_ms')),
    ...present('steerTpotMs', fields.count('steer_tpot_ms')),
    prefixHashes: fields.texts('prefix_hashes'),
    prefixBlockTokens: fields.count('prefix_block_tokens') ?? 0,
    outcome: fields.oneOf('outcome', KNOWN_OUTCOMES) as LoggedRequest['outcome'],
    ...present('shedReason', fields.word('reason') as ShedReason | undefined),
    ...present('replica', fields.word('replica')),
    queueMs: fields.count('queue_ms') ?? 0,
    ...present('ttftMs', fields.count('ttft_ms')),
    ...present('tpotMs', fields.count('tpot_ms')),
    e2eMs,
    verdict: fields.oneOf('slo', VERDICTS) as LoggedRequest['verdict'],
    ...present('cause', fields.word('slo_cause')),
    ...present('configDigest', fields.word('config_digest')),
  }
}

type Whose = 'model' | 'className' | 'product' | 'tenant' | 'route' | 'kind' | 'streamed' | 'retryCount'

function whose(fields: Fields): Pick<LoggedRequest, Whose> {
  return {
    model: fields.text('model'),
    className: fields.text('class'),
    product: fields.word('product') ?? 'none',
    tenant: fields.word('tenant') ?? 'default',
    route: fields.word('route') ?? 'chat',
    kind: fields.word('kind') === 'compute' ? 'compute' : 'generate',
    streamed: fields.flag('stream'),
    retryCount: fields.count('retry_count') ?? 0,
  }
}

type Sizes =
  | 'sequences'
  | 'promptTokens'
  | 'estimatedTokens'
  | 'uncachedTokens'
  | 'cachedTokens'
  | 'outputTokens'
  | 'maxOutputTokens'
  | 'minOutputTokens'

function sizes(fields: Fields): Pick<LoggedRequest, Sizes> {
  const promptTokens = fields.needed('prompt_tokens')
  const cachedTokens = fields.count('cached_tokens')
  const believed = cachedTokens === undefined ? fields.believedUncached() : promptTokens - cachedTokens
  return {
    sequences: Math.max(1, fields.count('sequences') ?? 1),
    promptTokens,
    estimatedTokens: fields.count('prompt_tokens_estimated') ?? promptTokens,
    uncachedTokens: Math.min(promptTokens, Math.max(0, believed ?? promptTokens)),
    ...present('cachedTokens', cachedTokens),
    outputTokens: fields.count('output_tokens') ?? 0,
    ...present('maxOutputTokens', fields.count('max_output_tokens')),
    ...present('minOutputTokens', fields.count('min_output_tokens')),
  }
}

/** The fields of one line. What is there and is not what it should be is a RangeError that names it. */
class Fields {
  readonly #of: Readonly<Record<string, unknown>>

  constructor(of: Readonly<Record<string, unknown>>) {
    this.#of = of
  }

  get event(): unknown {
    return this.#of.event
  }

  /** A number of at least 0, or undefined when it is absent. */
  count(name: string): number | undefined {
    const value = this.#of[name]
    if (value === undefined || value === null) return undefined
    if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
    throw new RangeError(`\`${name}\` is no number of at least 0`)
  }

  needed(name: string): number {
    const value = this.count(name)
    if (value === undefined) throw new RangeError(`no \`${name}\``)
    return value
  }

  word(name: string): string | undefined {
    const value = this.#of[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }

  text(name: string): string {
    const value = this.word(name)
    if (value === undefined) throw new RangeError(`no \`${name}\``)
    return value
  }

  flag(name: string): boolean {
    return this.#of[name] === true
  }

  texts(name: string): readonly string[] {
    const value = this.#of[name]
    return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : []
  }

  oneOf(name: string, known: ReadonlySet<string>): string {
    const value = this.text(name)
    if (known.has(value)) return value
    throw new RangeError(`\`${name}\` is none of ${[...known].join(', ')}`)
  }

  /** Unix ms of an ISO time. */
  instant(name: string): Ms {
    const text = this.text(name)
    const atMs = readStampMs(text)
    if (atMs !== undefined) return atMs
    throw new RangeError(`\`${name}\` is no time such as 2026-01-31T12:00:00.000Z`)
  }

  /** What the decision believed of the replica that was chosen: the first of its candidates. */
  believedUncached(): Tokens | undefined {
    const candidates = this.#of.candidates
    const chosen: unknown = Array.isArray(candidates) ? candidates[0] : undefined
    if (typeof chosen !== 'object' || chosen === null) return undefined
    const { replica, uncached_tokens: uncached } = chosen as Record<string, unknown>
    return replica === this.word('replica') && typeof uncached === 'number' ? uncached : undefined
  }
}
