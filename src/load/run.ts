/** The open-loop client: sends each request at its planned instant, whatever became of those before. */
import { setMaxListeners } from 'node:events'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'undici'
import type { Ms } from '../core/units.ts'
import { type ExchangeOutcome, type ExchangeRequest, exchange, openPool } from './exchange.ts'
import { type LoadResult, mayRetry, retryAfterOf, settleExchange } from './outcome.ts'
import type { PlannedRequest } from './plan.ts'
import { createPromptWriter } from './prompt.ts'

/**
 * Who ends an answer. `server`: the model itself, below the client's cap, as in life. `exact`: the plan, by a cap that
 * the server is told to reach (`ignore_eos`), so that whoever reads the cap knows the length. `simulated`: the plan, by
 * a field that only our simulated engine heeds, so that the length is the same everywhere and yet nobody's to know.
 */
export type LengthRule = 'server' | 'exact' | 'simulated'

export interface LoadOptions {
  /** Base addresses, e.g. `http://127.0.0.1:8080`; several are taken in turn (round-robin). */
  readonly urls: readonly string[]
  readonly model: string
  readonly apiKey?: string
  readonly plan: Iterable<PlannedRequest>
  readonly seed: number
  /** Default: `server`. */
  readonly lengths?: LengthRule
  /** Times that a shed request is sent again after the wait it was told; 0: never. */
  readonly retries?: number
  /** How long to wait for answers after the last arrival; what is still open then is left (as a client leaves). */
  readonly drainMs: Ms
  readonly onOffered?: (planned: PlannedRequest) => void
  readonly onSettled?: (result: LoadResult) => void
  /** Ends the run: nothing more is sent, and what is open is left. */
  readonly signal?: AbortSignal
  readonly clock?: () => Ms
}

/** Longest stretch of sending without a look at what came in. */
const MAX_TURN_MS: Ms = 2

/** The wait before a retry when the server named none. */
const DEFAULT_RETRY_MS: Ms = 1000

/** Runs the plan to its end. Resolves when each request sent has settled and every socket is closed. */
export async function runLoad(options: LoadOptions): Promise<void> {
  if (options.urls.length === 0) throw new RangeError('at least one address is needed')
  const clock = options.clock ?? (() => performance.now())
  const leave = new AbortController()
  // Each open request listens; there is no bound on how many are open.
  setMaxListeners(0, leave.signal)
  const stop = () => leave.abort()
  options.signal?.addEventListener('abort', stop, { once: true })
  if (options.signal?.aborted) stop()
  const client = new LoadClient(options, clock, leave.signal)
  const open = new Set<Promise<void>>()
  try {
    const startAtMs = clock()
    const reached = pacer(clock, leave.signal)
    for (const planned of options.plan) {
      const dueAtMs = startAtMs + planned.atMs
      if (!(await reached(dueAtMs))) break
      options.onOffered?.(planned)
      const story = client.request(planned, dueAtMs)
      open.add(story)
      void story.finally(() => open.delete(story))
    }
    await settled(open, options.drainMs, stop, leave.signal)
  } finally {
    options.signal?.removeEventListener('abort', stop)
    stop()
    await Promise.allSettled(open)
    await client.close()
  }
}

/** Makes the wait for an instant; it resolves to false when the run was ended before. */
function pacer(clock: () => Ms, signal: AbortSignal): (dueAtMs: Ms) => Promise<boolean> {
  let turnAtMs = clock()
  return async (dueAtMs) => {
    for (let leftMs = dueAtMs - clock(); leftMs > 0 && !signal.aborted; leftMs = dueAtMs - clock()) {
      await sleep(leftMs, undefined, { signal }).catch(() => undefined)
      turnAtMs = clock()
    }
    // A client that is behind has no reason to sleep, but answers have to be read all the same.
    if (clock() - turnAtMs > MAX_TURN_MS) {
      await nextTurn()
      turnAtMs = clock()
    }
    return !signal.aborted
  }
}

/** Waits until nothing is open, or leaves after `drainMs`. */
async function settled(
  open: ReadonlySet<Promise<void>>,
  drainMs: Ms,
  leave: () => void,
  signal: AbortSignal,
): Promise<void> {
  if (open.size === 0 || signal.aborted) return
  const timer = setTimeout(leave, drainMs)
  await Promise.allSettled(open)
  clearTimeout(timer)
}

class LoadClient {
  readonly #options: LoadOptions
  readonly #clock: () => Ms
  readonly #signal: AbortSignal
  readonly #targets: readonly { readonly pool: Pool; readonly path: string }[]
  readonly #prompts: ReturnType<typeof createPromptWriter>
  #turn = 0

  constructor(options: LoadOptions, clock: () => Ms, signal: AbortSignal) {
    this.#options = options
    this.#clock = clock
    this.#signal = signal
    this.#targets = options.urls.map((url) => ({ pool: openPool(new URL(url).origin), path: chatPath(url) }))
    this.#prompts = createPromptWriter(options.seed)
  }

  /** One request with its retries; never rejects. */
  async request(planned: PlannedRequest, dueAtMs: Ms): Promise<void> {
    const { retries: allowed = 0, model, onSettled } = this.#options
    for (let retries = 0; ; retries++) {
      const seen = await this.#send(planned, retries)
      if (retries < allowed && mayRetry(seen) && !this.#signal.aborted) {
        await sleep(retryAfterOf(seen.headers) ?? DEFAULT_RETRY_MS, undefined, {
          signal: this.#signal,
        }).catch(() => undefined)
        if (!this.#signal.aborted) continue
      }
      onSettled?.(settleExchange(planned, seen, model, dueAtMs, retries))
      return
    }
  }

  #send(planned: PlannedRequest, retries: number): Promise<ExchangeOutcome> {
    const target = this.#targets[this.#turn++ % this.#targets.length]
    if (target === undefined) throw new RangeError('no address')
    return exchange(target.pool, this.#write(planned, target.path, retries), this.#clock, this.#signal)
  }

  #write(planned: PlannedRequest, path: string, retries: number): ExchangeRequest {
    const { apiKey, model, lengths = 'server' } = this.#options
    const body = {
      model,
      messages: [
        { role: 'user', content: this.#prompts.write(planned.promptTokens, planned.id, planned.shared) },
      ],
      ...lengthFields(planned, lengths),
      stream: true,
      stream_options: { include_usage: true },
    }
    return {
      path,
      headers: {
        'content-type': 'application/json',
        'x-slo-class': planned.slo.name,
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        ...(retries === 0 ? {} : { 'x-stainless-retry-count': String(retries) }),
      },
      body: JSON.stringify(body),
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#targets.map(({ pool }) => pool.destroy()))
  }
}

function lengthFields(
  { maxTokens, outputTokens }: PlannedRequest,
  rule: LengthRule,
): Record<string, unknown> {
  switch (rule) {
    case 'server':
      return { max_tokens: maxTokens }
    case 'exact':
      return { max_tokens: outputTokens, ignore_eos: true }
    case 'simulated':
      return { max_tokens: maxTokens, vllm_xargs: { output_tokens: outputTokens } }
    default:
      return rule satisfies never
  }
}

/** The chat route under a base address, whether or not that ends in `/v1` as SDKs want it. */
function chatPath(url: string): string {
  return `${new URL(url).pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1/chat/completions`
}
