/** What goes into the engine model and what comes out of it. */
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import type { EngineProfile } from './profiles.ts'

/** The rejections of vLLM's own queue caps, and a prompt that can never fit. */
export type EngineRejection = 'max_num_queued_reqs' | 'max_num_queued_tokens' | 'over_context'

/** How the modelled engine is started; absent fields take what the profile says vLLM would choose. */
export interface EngineOptions {
  readonly profile: EngineProfile
  readonly maxNumSeqs?: number
  readonly maxNumBatchedTokens?: Tokens
  /** KV blocks of `blockTokens` each; default: the profile's capacity. */
  readonly kvBlocks?: number
  readonly blockTokens?: Tokens
  /** Longest prompt plus output; default: all of the KV cache, at most 131 072. */
  readonly maxModelLenTokens?: Tokens
  readonly policy?: 'fcfs' | 'priority'
  readonly prefixCaching?: boolean
  /** vLLM's `--max-num-queued-reqs`: in-flight sequences allowed, n counting n times. */
  readonly maxNumQueuedReqs?: number
  /** vLLM's `--max-num-queued-tokens`: full prompt tokens of everything still in prefill; an empty backlog takes any prompt. */
  readonly maxNumQueuedTokens?: Tokens
  /** Relative deviation of step times, e.g. 0.05; 0 makes them exact. */
  readonly jitterRatio?: Ratio
  readonly seed?: number
  /** Steps run this many times as fast as the profile says; default 1. */
  readonly speedRatio?: number
}

/** One request as the engine sees it. */
export interface EngineRequest {
  readonly id: string
  readonly promptTokens: Tokens
  /** Tokens that each sequence generates before it stops, at least 1; one entry per sequence. */
  readonly outputTokens: readonly Tokens[]
  /** Chained hashes of the prompt's extents, in order; entries past the prompt name content generated later. */
  readonly prefixHashes?: readonly string[]
  /** Tokens under one hash, a multiple of the block size; default: one block. */
  readonly prefixExtentTokens?: Tokens
  /** Lower runs sooner; only heeded under the `priority` policy. */
  readonly priority?: number
}

/** One sequence of a request. Live: read it when it is shown, not later. */
export interface SequenceView {
  readonly requestId: string
  readonly index: number
  readonly promptTokens: Tokens
  readonly outputTokens: Tokens
  readonly generatedTokens: Tokens
  /** Prompt tokens found in the prefix cache at first scheduling. */
  readonly cachedTokens: Tokens
  readonly submittedAtMs: Ms
  /** When it first got a place in a step. */
  readonly scheduledAtMs: Ms | undefined
  readonly firstTokenAtMs: Ms | undefined
  readonly preemptions: number
  /** Its share of the engine's time so far, by tokens scheduled in each step. */
  readonly engineMs: Ms
  /** Sequences of its request that have not finished. */
  readonly unfinishedSiblings: number
}

/** One step that has ended. */
export interface StepReport {
  readonly startedAtMs: Ms
  readonly endedAtMs: Ms
  readonly prefillTokens: Tokens
  readonly decodeTokens: Tokens
  /** Sequences that got a token, one each. Its first one when `generatedTokens` is 1. */
  readonly emitted: readonly SequenceView[]
  /** Those of `emitted` that are complete with it. */
  readonly finished: readonly SequenceView[]
  /** Sequences thrown back to the queue for want of KV when the step was composed. */
  readonly preempted: readonly SequenceView[]
}

/** Gauges and counters as the engine would publish them: refreshed at the end of each step only. */
export interface EngineGauges {
  readonly runningSequences: number
  readonly waitingSequences: number
  readonly kvUsageRatio: Ratio
  readonly preemptionsTotal: number
  readonly promptTokensTotal: Tokens
  readonly generationTokensTotal: Tokens
  readonly prefixQueryTokensTotal: Tokens
  readonly prefixHitTokensTotal: Tokens
  readonly stepsTotal: number
  readonly busyMsTotal: Ms
}
