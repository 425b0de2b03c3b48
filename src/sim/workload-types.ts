/** What a workload is, as plain values, and the requests that it becomes. */
import type { Offer } from '../core/request.ts'
import type { Ms, Ratio, Tokens } from '../core/units.ts'
import type { Arrivals } from './arrivals.ts'
import type { LengthLaw, TimeLaw } from './lengths.ts'

/** A workload: what comes, and in what rhythm. How fast and for how long is up to the run. */
export interface Workload {
  readonly name: string
  /** One after the other over the length of the run; most workloads have one. */
  readonly phases: readonly WorkloadPhase[]
  /** Default: Poisson at a steady rate. */
  readonly arrivals?: Arrivals
}

/** A stretch of a workload with one mix. */
export interface WorkloadPhase {
  /** Weight among the phases, by time; default 1. */
  readonly timeShare?: number
  /** Its rate relative to the other phases'; default 1. */
  readonly rateRatio?: number
  readonly classes: readonly WorkloadClass[]
}

/** How one class of requests behaves; its name is the SLO class that it asks for. */
export interface WorkloadClass {
  readonly name: string
  /** Weight in the mix, by count of requests (all turns of a session count). */
  readonly share: number
  /** Of a session: its first prompt. */
  readonly prompt: LengthLaw
  readonly output: LengthLaw
  /** The client's `max_tokens`; outputs are cut there. */
  readonly maxTokens: Tokens
  /** Prompts are cut there, default 16 384; a session that would grow past it ends. */
  readonly longestPromptTokens?: Tokens
  /** Prompts begin with one of `families` texts of that length; absent: prompts share nothing. */
  readonly shared?: { readonly families: number; readonly tokens: Tokens }
  /** Absent: single requests. */
  readonly session?: SessionLaw
  /** Absent: clients wait for ever and never come back. */
  readonly client?: ClientModel
  /** What the engine is told under its `priority` policy, lower sooner; default 0. */
  readonly priority?: number
}

/** Conversations: each prompt is all that was said before plus something new. */
export interface SessionLaw {
  /** Mean number of turns, at least 1; geometric. */
  readonly meanTurns: number
  /** What a later turn adds to the text. */
  readonly added: LengthLaw
  /** From the end of an answer to the next turn. */
  readonly think: TimeLaw
}

export interface ClientModel {
  /** Leaves when no token has come that long after it sent. Absent: stays. */
  readonly patience?: TimeLaw
  /** Sends a refused or failed request again. Absent: never. */
  readonly retry?: RetryLaw
}

export interface RetryLaw {
  /** Attempts after the first. */
  readonly limit: number
  /** First pause without advice; it doubles with each attempt, up to `longestBackoffMs`, less up to a quarter. */
  readonly backoffMs: Ms
  readonly longestBackoffMs: Ms
  /** Share of clients that do as told: wait for `Retry-After`, and stay away when no retry can help. */
  readonly honourRatio: Ratio
}

/** One client's way of coming back. */
export interface RetryPlan extends Omit<RetryLaw, 'honourRatio'> {
  readonly honoursAdvice: boolean
}

/** One request of a stream. */
export interface WorkloadRequest extends UnsentRequest {
  /** After the start of the stream. */
  readonly atMs: Ms
}

/** A request whose instant is not known yet. */
export interface UnsentRequest {
  /** Unique in the stream. */
  readonly id: string
  readonly className: string
  /** Whose request it is; default: `default`. */
  readonly tenant?: string
  readonly promptTokens: Tokens
  /** What it will generate, over all its sequences; no scheduler may see this. */
  readonly outputTokens: Tokens
  /** The client's `max_tokens`; traces do not tell it. */
  readonly maxTokens?: Tokens
  /** The prompt's first tokens, common to all requests of the same key. */
  readonly shared?: { readonly key: string; readonly tokens: Tokens }
  /** The text (prompt and answer) that follows the shared part, common to all turns of a session; default: its own. */
  readonly text?: string
  /** The whole prompt as names of fixed runs of tokens; takes the place of `shared` and `text` (trace files). */
  readonly blocks?: { readonly names: readonly string[]; readonly tokens: Tokens }
  readonly priority?: number
  /** What the edge knows of it, where that differs from a streamed chat request of one sequence. */
  readonly told?: Told
  readonly patienceMs?: Ms
  readonly retry?: RetryPlan
  /** The session's next turn, sent that long after this one's answer is complete. Without an answer it never comes. */
  readonly next?: { readonly thinkMs: Ms; readonly request: UnsentRequest }
}

/** Parts of an offer that a recorded request brings with it. */
export type Told = Partial<
  Pick<
    Offer,
    | 'pool'
    | 'product'
    | 'route'
    | 'streamed'
    | 'sequences'
    | 'promptTokens'
    | 'promptTokensExact'
    | 'minOutputTokens'
    | 'bodyBytes'
    | 'steerTtftMs'
    | 'steerTpotMs'
    | 'retryCount'
  >
>
