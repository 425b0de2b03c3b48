/** How long one engine step takes by a profile. */
import type { Ms, Tokens } from '../core/units.ts'
import type { EngineProfile } from './profiles.ts'

/** What a step computes. */
export interface StepWork {
  /** New prompt tokens over all chunks of the step. */
  readonly prefillTokens: Tokens
  /** Sum over the chunks of n * (c + n / 2): n new tokens after c earlier ones of the same sequence. */
  readonly prefillContextTokens: number
  /** Sequences that decode one token each. */
  readonly decodeSequences: number
  /** Context tokens that the decoding sequences read. */
  readonly decodeContextTokens: Tokens
  /** Proposed tokens that are checked besides, over all sequences; default 0. */
  readonly guessedTokens?: Tokens
  /** Cost of proposing them, in plain decode steps of that batch; default 0. */
  readonly draftSteps?: number
}

/**
 * Time of one step in ms by the formulas in `EngineProfile`; a checked guess costs what a prompt token does. A mixed
 * step is never shorter than its decodes alone: the two fits cross for large batches with a small chunk, and more work
 * can't take less time.
 */
export function stepMs(profile: EngineProfile, work: StepWork): Ms {
  const { prefill, decode, stepOverheadMs } = profile
  const { prefillTokens, decodeSequences, guessedTokens = 0, draftSteps = 0 } = work
  const contextMs = decode.perContextTokenMs * work.decodeContextTokens
  const decodeMs = decode.baseMs + decode.perSequenceMs * decodeSequences
  const draftMs = draftSteps * (decodeMs + contextMs)
  const restMs = contextMs + draftMs + stepOverheadMs
  if (prefillTokens + guessedTokens === 0) return decodeMs + restMs
  const linearTokens = prefillTokens + decodeSequences + guessedTokens
  const linearMs = Math.max(prefill.floorMs, prefill.baseMs + prefill.perTokenMs * linearTokens)
  const mixedMs = linearMs + prefill.perTokenContextMs * work.prefillContextTokens
  return (decodeSequences > 0 ? Math.max(decodeMs, mixedMs) : mixedMs) + restMs
}

/** Time of the bare steps of a prompt on an idle engine in ms: its TTFT without the request overhead. */
export function idlePrefillMs(profile: EngineProfile, promptTokens: Tokens, chunkTokens: Tokens): Ms {
  let totalMs = 0
  for (let done = 0; done < promptTokens; ) {
    const tokens = Math.min(chunkTokens, promptTokens - done)
    totalMs += stepMs(profile, {
      prefillTokens: tokens,
      prefillContextTokens: tokens * (done + tokens / 2),
      decodeSequences: 0,
      decodeContextTokens: 0,
    })
    done += tokens
  }
  return totalMs
}
