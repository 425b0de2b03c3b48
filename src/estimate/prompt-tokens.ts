/** Estimates prompt tokens from text bytes, with a ratio per model that is learnt from what engines report. */
import type { PoolId } from '../core/request.ts'
import { clamp, type Tokens } from '../core/units.ts'

/** Bytes of English text per token before anything is learnt (GPT-like vocabularies: about 4). */
const PRIOR_BYTES_PER_TOKEN = 4
/** Share of a new observation in the running ratio; about the last 50 requests count. */
const LEARN_RATIO = 0.02
/** Below this size the chat template outweighs the text, so nothing is learnt from it. */
const MIN_LEARN_BYTES = 200
const MIN_BYTES_PER_TOKEN = 0.5
const MAX_BYTES_PER_TOKEN = 16

export interface TokenRatio {
  /** Estimated tokens of `textBytes` bytes for that model; at least 1. */
  tokens(pool: PoolId, textBytes: number): Tokens
  /** Takes an engine's own count of a prompt. Absurd pairs are ignored. */
  learn(pool: PoolId, textBytes: number, promptTokens: Tokens): void
  /** Bytes per token now, for show. */
  bytesPerToken(pool: PoolId): number
}

/** Starts from 4 bytes a token for every model. Pools come from config, so the map is bounded. */
export function createTokenRatio(): TokenRatio {
  const ratios = new Map<PoolId, number>()
  const bytesPerToken = (pool: PoolId): number => ratios.get(pool) ?? PRIOR_BYTES_PER_TOKEN
  return {
    bytesPerToken,
    tokens: (pool, textBytes) => Math.max(1, Math.ceil(textBytes / bytesPerToken(pool))),
    learn(pool, textBytes, promptTokens) {
      if (textBytes < MIN_LEARN_BYTES || !(promptTokens > 0)) return
      const observed = clamp(textBytes / promptTokens, MIN_BYTES_PER_TOKEN, MAX_BYTES_PER_TOKEN)
      const known = ratios.get(pool)
      ratios.set(pool, known === undefined ? observed : known + LEARN_RATIO * (observed - known))
    },
  }
}
