/** What the core knows of one request: its class, its size and its deadlines, all as plain values. */
import type { Ms, Ratio, Tokens } from './units.ts'

export type RequestId = string
export type ReplicaId = string
/** The name of a pool: the model's configured name, never an alias. */
export type PoolId = string

/** What happens to a request of a class when its target can't be met (see docs/configuration.md). */
export type OverloadAction = 'shed' | 'demote' | 'wait'

/** The latency promise of a workload, resolved for one model. Absent targets bind nothing. */
export interface SloClass {
  readonly name: string
  /** Time to first token at zero prompt tokens, in ms. */
  readonly ttftMs?: Ms
  /** Added to `ttftMs` for each 1000 prompt tokens; 0 when the target does not grow. */
  readonly ttftPer1kTokensMs: Ms
  /** Mean time per output token after the first, in ms. */
  readonly tpotMs?: Ms
  /** Arrival to last token, in ms. */
  readonly e2eMs?: Ms
  /** Share of offered requests that must be good, 0 to 1. Absent for classes without targets. */
  readonly objectiveRatio?: Ratio
  /** Worth of one good request relative to others, above 0. */
  readonly weight: number
  readonly overload: OverloadAction
  /** Longest time in the waiting room over both attempts, in ms; time with a replica that failed is not in it. */
  readonly maxWaitMs: Ms
}

/**
 * How a request spends the engine: `generate` decodes tokens; `compute` (embeddings) only occupies it; `convert`
 * (tokenize, detokenize) asks for no model at all, so that no class promises anything of it.
 */
export type RequestKind = 'generate' | 'compute' | 'convert'

/** One request as offered to the gate. Immutable; the true output length is not in it, since nobody knows it. */
export interface Offer {
  readonly requestId: RequestId
  readonly pool: PoolId
  readonly kind: RequestKind
  readonly tenant: string
  /** Fairness weight of its tenant against others, above 0; 1 when absent. */
  readonly tenantShare?: number
  readonly product: string
  readonly slo: SloClass
  /** The route's key for learnt output lengths, e.g. `chat`. */
  readonly route: string
  /** When the last byte of the body was in. */
  readonly receivedAtMs: Ms
  /** Prompt tokens of one sequence set, estimated unless `promptTokensExact`. */
  readonly promptTokens: Tokens
  readonly promptTokensExact: boolean
  /** The client's own cap for one sequence, when it gave one. */
  readonly maxOutputTokens?: Tokens
  /** Tokens that one sequence makes at least, when the client said so (`min_tokens`, `ignore_eos`). */
  readonly minOutputTokens?: Tokens
  /** Engine sequences that it becomes: n times prompts, at least 1. */
  readonly sequences: number
  /** Prompts in its list, about equally long, each attended to by itself; 1 when absent. */
  readonly prompts?: number
  /** Chained hashes of the prompt's blocks (`prefix-blocks.ts`), first block first; empty when unknown. */
  readonly prefixHashes: readonly string[]
  /** Size of one of the first hashed blocks, in the tokens that `promptTokens` counts. */
  readonly prefixBlockTokens: Tokens
  /** Bytes that it holds in our memory while it waits. */
  readonly bodyBytes: number
  readonly streamed: boolean
  /** Absolute instant after which the client has given up, when it said so. */
  readonly clientDeadlineAtMs?: Ms
  /** Steering targets from `x-slo-*-ms`; the verdict is always on the class's own. */
  readonly steerTtftMs?: Ms
  readonly steerTpotMs?: Ms
  /** 0 for a first attempt; SDKs say how often they retried. */
  readonly retryCount: number
}

/** The TTFT promise for a prompt of that size in ms, or undefined when the class makes none. */
export function ttftTargetMs(slo: SloClass, promptTokens: Tokens): Ms | undefined {
  return slo.ttftMs === undefined ? undefined : slo.ttftMs + (slo.ttftPer1kTokensMs * promptTokens) / 1000
}

/** True when the class promises anything at all. */
export function hasTargets(slo: SloClass): boolean {
  return slo.ttftMs !== undefined || slo.tpotMs !== undefined || slo.e2eMs !== undefined
}

/**
 * The latest first token that can still keep the promise if decoding takes `decodeMs`, an instant; undefined when
 * nothing is promised of it. With 0 only facts count: once it has passed the promise is broken for certain.
 */
export function firstTokenDeadlineAtMs(offer: Offer, decodeMs: Ms = 0): Ms | undefined {
  const { slo, receivedAtMs } = offer
  if (!hasTargets(slo)) return undefined
  let spanMs = offer.steerTtftMs ?? ttftTargetMs(slo, offer.promptTokens) ?? Number.POSITIVE_INFINITY
  if (slo.e2eMs !== undefined) spanMs = Math.min(spanMs, slo.e2eMs - decodeMs)
  if (!offer.streamed && slo.e2eMs === undefined && slo.ttftMs === undefined) return undefined
  const clientGoneAtMs = offer.clientDeadlineAtMs ?? Number.POSITIVE_INFINITY
  const atMs = Math.min(receivedAtMs + spanMs, clientGoneAtMs)
  return Number.isFinite(atMs) ? atMs : undefined
}
