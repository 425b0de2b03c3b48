/** Estimates prompt tokens from text bytes and media parts, and learns both from what engines report. */
import type { PoolId } from '../core/request.ts'
import type { Tokens } from '../core/units.ts'
import type { TokenRatio } from '../estimate/prompt-tokens.ts'

/** What of a prompt is sized; the estimate is never used to refuse it. */
export interface PromptParts {
  readonly textBytes: number
  readonly mediaParts: number
  readonly exactTokens: Tokens | undefined
}

/** Tokens of an image in a common vision model (24 x 24 patches), until a pool has shown its own. */
const FIRST_MEDIA_TOKENS: Tokens = 576
/** Weight of a new observation of tokens per part. */
const MEDIA_LEARNING_RATIO = 0.2

export class PromptSizer {
  readonly #ratio: TokenRatio
  readonly #mediaTokens = new Map<PoolId, Tokens>()

  constructor(ratio: TokenRatio) {
    this.#ratio = ratio
  }

  /** Prompt tokens, at least 1. */
  tokens(pool: PoolId, parts: PromptParts): Tokens {
    if (parts.exactTokens !== undefined) return Math.max(1, parts.exactTokens)
    const mediaTokens = parts.mediaParts === 0 ? 0 : parts.mediaParts * this.#perPart(pool)
    return Math.max(1, Math.round(this.#ratio.tokens(pool, parts.textBytes) + mediaTokens))
  }

  /** Takes the engine's own count; text teaches from prompts without media, media from the rest. */
  learn(pool: PoolId, parts: PromptParts, promptTokens: Tokens): void {
    if (parts.exactTokens !== undefined || promptTokens <= 0) return
    if (parts.mediaParts === 0) {
      this.#ratio.learn(pool, parts.textBytes, promptTokens)
      return
    }
    const seen = (promptTokens - this.#ratio.tokens(pool, parts.textBytes)) / parts.mediaParts
    const known = this.#perPart(pool)
    this.#mediaTokens.set(pool, Math.max(1, known + MEDIA_LEARNING_RATIO * (seen - known)))
  }

  #perPart(pool: PoolId): Tokens {
    return this.#mediaTokens.get(pool) ?? FIRST_MEDIA_TOKENS
  }
}
