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
}

/**
 * Time of one step in ms by the formulas in `EngineProfile`. A mixed step is never shorter than its decodes alone:
 * the two fits cross for large batches with a small chunk, and more work can't take less time.
 */
export function stepMs(profile: EngineProfile, work: StepWork): Ms {
  const { prefill, decode, stepOverheadMs } = profile
  const contextMs = decode.perContextTokenMs * work.decodeContextTokens
  const decodeMs = decode.baseMs + decode.perSequenceMs * work.decodeSequences
  if (work.prefillTokens === 0) return decodeMs + contextMs + stepOverheadMs
  const linearMs = Math.max(
    prefill.floorMs,
    prefill.baseMs + prefill.perTokenMs * (work.prefillTokens + work.decodeSequences),
  )
  const attentionMs = prefill.perTokenContextMs * work.prefillContextTokens
  const mixedMs = linearMs + attentionMs
  return (work.decodeSequences > 0 ? Math.max(decodeMs, mixedMs) : mixedMs) + contextMs + stepOverheadMs
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
