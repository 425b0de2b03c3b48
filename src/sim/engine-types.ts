/** What goes into the engine model and what comes out of it. */
import type { EngineLimits } from '../core/replica.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import type { EngineProfile } from './profiles.ts'

/** The rejections of vLLM's own queue caps, and a prompt that can never fit. */
export type EngineRejection = 'max_num_queued_reqs' | 'max_num_queued_tokens' | 'over_context'

/**
 * Speculative decoding: in each step every decoding sequence proposes some tokens and has them checked at once; it
 * keeps those before the first wrong one, and one more (Leviathan, Kalman, Matias: Fast Inference from Transformers via
 * Speculative Decoding, 2023). Checking costs what as many prompt tokens would.
 */
export interface Speculation {
  /** Proposed per sequence and step, at least 1. */
  readonly draftTokens: Tokens
  /** Chance that a proposed token is right, given that those before it are. */
  readonly acceptanceRatio: Ratio
  /** Time to propose one token for all sequences, in times of the plain decode step of that batch; 0 for n-grams. */
  readonly draftCostRatio: Ratio
}

/** Engines for prompts and engines for answers behind one address; the prompt's KV goes over a link between them. */
export interface Disaggregation {
  readonly prefillEngines: number
  readonly decodeEngines: number
  /** Of one transfer, and for each prompt token; one transfer at a time leaves a prefill engine. */
  readonly transferBaseMs: Ms
  readonly transferPerTokenMs: Ms
}

/** A replica's engine: one, or (disaggregated) several that are each started with these options. */
export interface ReplicaEngineOptions extends EngineOptions {
  readonly disaggregated?: Disaggregation
}

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
  /** Whether a prompt may be computed in several steps, default true; without, a step takes whole prompts only. */
  readonly chunkedPrefill?: boolean
  /**
   * Whether the next step is composed while one runs, as in vLLM since 0.14 (not on CPUs): what arrives during a step
   * then waits for one more. Default false.
   */
  readonly asyncScheduling?: boolean
  /** Default: none. */
  readonly speculative?: Speculation
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
  /** The prompt's KV comes from another engine, all but its last token. */
  readonly remotePrefill?: RemotePrefill
}

/** What another engine did for a request before. */
export interface RemotePrefill {
  readonly cachedTokens: Tokens
  readonly engineMs: Ms
}

/** One sequence of a request. Live: read it when it is shown, not later. */
export interface SequenceView {
  readonly requestId: string
  readonly index: number
  readonly promptTokens: Tokens
  readonly outputTokens: Tokens
  readonly generatedTokens: Tokens
  /** Of those, the ones of the step that has just ended. */
  readonly emittedTokens: Tokens
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
  /** Computed for decodes, wrong guesses included. */
  readonly decodeTokens: Tokens
  /** Sequences that got a token (several under speculation). The first ones when as many are generated in all. */
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

/** Limits as a simulated engine tells them: all, and how many engines compute prompts only where some do. */
export type ToldLimits = Required<Omit<EngineLimits, 'prefillEngines'>> & Pick<EngineLimits, 'prefillEngines'>

/** What a virtual run needs of an engine, whatever is inside. */
export interface SimEngine {
  /** What a server can know of its limits. */
  readonly limits: ToldLimits
  submit(request: EngineRequest, nowMs: Ms): EngineRejection | 'accepted'
  abort(requestId: string): boolean
  engineMsOf(requestId: string): Ms
  nextEventAtMs(): Ms | undefined
  advanceTo(nowMs: Ms, onStep: (report: StepReport) => void): void
  gauges(): EngineGauges
  setSpeed(ratio: Ratio): void
}
