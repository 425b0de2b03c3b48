/** What the numbers of an engine say of its settings and of the promises that it is to keep. */
import type { Ms, Ratio, Tokens } from './units.ts'

/** The state that advice is given for. */
export interface AdvisedState {
  /** Token budget of a step: `max_num_batched_tokens`, decodes included. */
  readonly budgetTokens: Tokens
  /** Sequences that decode at once, and the context of each. */
  readonly sequences: number
  readonly contextTokens: Tokens
}

export interface ClassAdvice {
  readonly className: string
  /** Targets that one request alone on a replica misses: the typical prompt for TTFT, a decode step for TPOT. */
  readonly unmet: readonly ('ttft' | 'tpot')[]
  /** The prompt that is typical of the class, where one is known: what of it has to be computed. */
  readonly typicalPromptTokens?: Tokens
  /** The largest prompt whose first token comes in time on an idle replica, 0 for none; absent when any is in time. */
  readonly longestPromptTokens?: Tokens
  /** Sequences that may decode at once within the TPOT target, 0 for none; this and what follows only with a target. */
  readonly largestBatch?: number
  /** Absent, as the next, where prompts have engines of their own. Largest token budget with which each step keeps the TPOT target, whatever prefills in it; 0 for none. */
  readonly largestBudgetTokens?: Tokens
  /** Share of steps that may take a full chunk at the present budget while the mean pace keeps the target, 0 to 1. */
  readonly prefillDutyRatio?: Ratio
}

export interface EngineAdvice {
  readonly state: AdvisedState
  /** A decode step of one sequence. */
  readonly loneStepMs: Ms
  readonly classes: readonly ClassAdvice[]
  /** From so many sequences on guessing tokens costs more time than it saves; Infinity when it always saves. */
  readonly speculationCostsFrom: number
}
