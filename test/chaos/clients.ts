/** The clients of a chaos run: most stay to the end of their answer, the others leave in every phase or ask nonsense. */
import type { Pool } from 'undici'
import { type ExchangeOutcome, exchange, openPool } from '../../src/load/exchange.ts'
import { isWhole } from '../../src/load/stream-reader.ts'
import type { Rng } from '../../src/sim/rng.ts'
import { GENERATION_PATHS, type GenerationPath, promptOf } from '../support/generation-paths.ts'
import { RawClient } from '../support/raw-client.ts'
import { ANSWER_TOKENS, BODY_LIMIT_BYTES, MODEL, OF_THAT_LENGTH } from './scenario.ts'

/** What a client does; the first one behaves, the last three are refused before they are judged. */
export const MANNERS = [
  'stays',
  'leaves at some time',
  'leaves in its upload',
  'resets in its stream',
  'half-closes',
  'asks for no model',
  'sends no JSON',
  'sends too much',
] as const
export type Manner = (typeof MANNERS)[number]

/** The reasons of those refusals. */
export const REJECTIONS: Readonly<Partial<Record<Manner, string>>> = {
  'asks for no model': 'model_not_found',
  'sends no JSON': 'malformed',
  'sends too much': 'too_large',
}
const LEAVERS: ReadonlySet<Manner> = new Set(MANNERS.slice(1, 5))

/** How an answer ended for a client that stayed. */
export interface Seen {
  readonly end: 'completed' | 'broken' | 'refused' | 'cut'
  readonly status: number
  /** Content had come. */
  readonly begun: boolean
  /** Of a refusal, from its header or from the event inside a stream. */
  readonly reason?: string
  readonly shouldRetry?: string
  readonly retryAfterSec?: number
}

export interface ClientRecord {
  readonly id: string
  readonly manner: Manner
  readonly path: GenerationPath
  /** Wall clock, in Unix ms. */
  readonly fromMs: number
  toMs?: number
  /** Of a client that stayed. */
  seen?: Seen
}

export interface ClientsOptions {
  readonly url: string
  readonly rng: Rng
  /** Share of clients that do anything but stay. */
  readonly oddRatio: number
  /** What their ids begin with. */
  readonly prefix?: string
}

/** What clients ask: chat three times as often as each other route. */
const PATHS: readonly GenerationPath[] = [...GENERATION_PATHS, '/v1/chat/completions', '/v1/chat/completions']
/** Whose streams the client can read to their end; of the others it asks for whole answers, unless it leaves. */
const READABLE: ReadonlySet<GenerationPath> = new Set(['/v1/chat/completions', '/v1/completions'])
const MEAN_PATIENCE_MS = 250
const CLASSES = ['chat', 'chat', 'agent', 'batch'] as const
const RAW_LIMIT_MS = 15_000

export class Clients {
  readonly records: ClientRecord[] = []
  readonly #options: ClientsOptions
  readonly #pool: Pool
  readonly #port: number
  readonly #open = new Set<Promise<void>>()
  readonly #pathRng: Rng

  constructor(options: ClientsOptions) {
    this.#options = options
    this.#pool = openPool(options.url)
    this.#port = Number(new URL(options.url).port)
    this.#pathRng = options.rng.fork('paths')
  }

  /** Requests at random instants of that rate for as long as it goes on. */
  async arrive(ratePerSec: number, goesOn: () => boolean, className?: string): Promise<void> {
    const { rng } = this.#options
    for (let atMs = performance.now(); ; atMs += rng.exponential(1000 / ratePerSec)) {
      const waitMs = atMs - performance.now()
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
      if (!goesOn()) return
      this.#send(className)
    }
  }

  /** Resolves when nobody waits for an answer any more; rejects when somebody does for longer. */
  async settled(limitMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), limitMs)
    })
    const all = Promise.all(this.#open)
    if ((await Promise.race([all, late])) === 'late') {
      const hanging = this.records
        .filter(({ toMs }) => toMs === undefined)
        .map(({ id, manner, fromMs }) => `${id} (${manner}, ${Math.round((Date.now() - fromMs) / 1000)} s)`)
      throw new Error(`after ${limitMs} ms these clients still wait: ${hanging.slice(0, 10).join(', ')}`)
    }
    clearTimeout(timer)
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }

  #send(className: string | undefined): void {
    const { rng, oddRatio, prefix = 'c' } = this.#options
    const odd = className === undefined && rng.uniform() < oddRatio
    const manner = odd ? (MANNERS[1 + rng.integer(MANNERS.length - 1)] ?? 'stays') : 'stays'
    const id = `${prefix}${this.records.length + 1}`
    const path = PATHS[this.#pathRng.integer(PATHS.length)] ?? '/v1/chat/completions'
    const record: ClientRecord = { id, manner, path, fromMs: Date.now() }
    this.records.push(record)
    const slo = className ?? CLASSES[rng.integer(CLASSES.length)] ?? 'chat'
    const stream = rng.uniform() < 0.8 && (READABLE.has(path) || left(record))
    const story = (isRaw(manner) ? this.#raw(record, slo) : this.#whole(record, slo, stream)).then(() => {
      record.toMs = Date.now()
    })
    this.#open.add(story)
    void story.finally(() => this.#open.delete(story))
  }

  /** A client that speaks HTTP to the end, or until its patience is over. */
  async #whole(record: ClientRecord, slo: string, stream: boolean): Promise<void> {
    const patience = new AbortController()
    const leaves = record.manner === 'leaves at some time'
    const timer = leaves
      ? setTimeout(() => patience.abort(), this.#options.rng.exponential(MEAN_PATIENCE_MS))
      : undefined
    const body = this.#body(record, stream)
    const headers = { 'content-type': 'application/json', 'x-request-id': record.id, 'x-slo-class': slo }
    const outcome = await exchange(
      this.#pool,
      { path: record.path, headers, body },
      () => performance.now(),
      patience.signal,
    )
    clearTimeout(timer)
    if (!leaves) record.seen = seenOf(outcome, stream)
  }

  #body({ manner, path }: ClientRecord, stream: boolean): string {
    const { rng } = this.#options
    const words = manner === 'sends too much' ? BODY_LIMIT_BYTES : 20 + rng.integer(200)
    const prompt = promptOf(path, 'word '.repeat(words))
    const model = manner === 'asks for no model' ? `invented-${this.records.length}` : MODEL
    const body = JSON.stringify({ model, ...prompt, stream, max_tokens: ANSWER_TOKENS, ...OF_THAT_LENGTH })
    return manner === 'sends no JSON' ? body.slice(0, -3) : body
  }

  /** A client on a bare socket that goes in the way of its manner. */
  #raw(record: ClientRecord, slo: string): Promise<void> {
    const { rng } = this.#options
    const { id, manner, path } = record
    const body = this.#body(record, true)
    const client = new RawClient(this.#port)
    const headers = { 'x-request-id': id, 'x-slo-class': slo, 'content-length': String(body.length) }
    const inUpload = manner === 'leaves in its upload'
    client.send({ path, headers, body: inUpload ? body.slice(0, body.length / 2) : body })
    const afterMs = rng.uniform() * 100
    const pieces = 1 + rng.integer(ANSWER_TOKENS)
    return new Promise((resolve) => {
      const late = setTimeout(() => client.leave(), RAW_LIMIT_MS)
      const soon = inUpload
        ? setTimeout(() => client.leave(), afterMs)
        : manner === 'half-closes'
          ? setTimeout(() => client.halfClose(), afterMs)
          : undefined
      let came = 0
      client.socket.on('data', () => {
        came += 1
        if (manner === 'resets in its stream' && came >= pieces) client.vanish()
      })
      // A refusal, or a stream that was over before, leaves the connection open, and there is nothing to break.
      client.socket.on('data', () => {
        if (client.complete) client.leave()
      })
      client.socket.once('close', () => {
        clearTimeout(late)
        clearTimeout(soon)
        resolve()
      })
    })
  }
}

function isRaw(manner: Manner): boolean {
  return manner === 'leaves in its upload' || manner === 'resets in its stream' || manner === 'half-closes'
}

/** Whether the client did not wait for its answer. */
export function left({ manner }: Pick<ClientRecord, 'manner'>): boolean {
  return LEAVERS.has(manner)
}

function seenOf({ status, headers, stream, fault }: ExchangeOutcome, streamed: boolean): Seen {
  const begun = stream.contentEvents > 0
  if (status === 0) return { end: 'cut', status, begun }
  if (status >= 400) {
    const retryAfter = headers['retry-after']
    return {
      end: fault === undefined ? 'refused' : 'cut',
      status,
      begun,
      ...(headers['x-sluice-reason'] === undefined ? {} : { reason: headers['x-sluice-reason'] }),
      ...(headers['x-should-retry'] === undefined ? {} : { shouldRetry: headers['x-should-retry'] }),
      ...(retryAfter === undefined ? {} : { retryAfterSec: Number(retryAfter) }),
    }
  }
  if (stream.error !== undefined && !begun)
    return { end: 'refused', status, begun, reason: String(stream.error.code) }
  const whole = !streamed || isWhole(stream)
  return { end: fault === undefined && whole ? 'completed' : 'broken', status, begun }
}
