/** The contract of an answer's writer: tokens in, frames of one dialect out. */
import type { Tokens } from '../core/units.ts'

export type FinishReason = 'stop' | 'length'

/** One token of one choice. */
export interface AnswerToken {
  readonly choice: number
  readonly text: string
  /** Set on the choice's last token. */
  readonly finish?: FinishReason
}

/** Sizes of the whole request, as `usage` counts them. */
export interface AnswerUsage {
  readonly promptTokens: Tokens
  readonly outputTokens: Tokens
  readonly cachedTokens: Tokens
}

/** What every frame of an answer repeats. */
export interface AnswerHead {
  readonly id: string
  readonly model: string
  /** Unix seconds. */
  readonly created: number
  readonly choices: number
  readonly maxTokens: Tokens
  readonly includeUsage: boolean
  readonly continuousUsage: boolean
  /** As with `--enable-prompt-tokens-details`. */
  readonly promptTokensDetails: boolean
}

/** Writes one streamed answer. Each returned string is one chunk on the wire. */
export interface FrameWriter {
  /** The frames of a token; those of a choice's first one come with its opening. */
  token(token: AnswerToken, usage: AnswerUsage): readonly string[]
  /** The frames after the last token. */
  end(usage: AnswerUsage): readonly string[]
}

/** A finished choice of an answer that does not stream. */
export interface WholeChoice {
  readonly text: string
  readonly finish: FinishReason
}

export const VERSION = '0.32.0'
/** What vLLM calls the build in `system_fingerprint`; ours says that it is none. */
export const FINGERPRINT = `vllm-${VERSION}-emulated`
export const DONE_FRAME = 'data: [DONE]\n\n'
