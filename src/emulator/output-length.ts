/** Decides how long an answer becomes when the client leaves it to the model. */
import type { Tokens } from '../core/units.ts'
import type { Rng } from '../sim/rng.ts'
import type { Generation } from './generation.ts'

/** Mean of a free answer: that many tokens, or that share of the client's cap when it is less. */
const MEAN_TOKENS: Tokens = 250
const MEAN_OF_CAP = 0.25
/** Deviation of the logarithm, as in public conversation traces (p90 over p50 about 3.3). */
const SIGMA = 0.93

/** Tokens of one sequence: all of the cap under `ignore_eos`, else what the load planned, else a seeded draw between `min_tokens` and the cap. */
export function drawOutputTokens(generation: Generation, rng: Rng): Tokens {
  const { maxTokens, minTokens, capped, ignoreEos, plannedTokens } = generation
  if (ignoreEos) return maxTokens
  if (plannedTokens !== undefined) return Math.max(plannedTokens, minTokens)
  const mean = capped ? Math.min(MEAN_TOKENS, MEAN_OF_CAP * maxTokens) : MEAN_TOKENS
  return Math.max(1, minTokens, Math.min(Math.round(rng.logNormal(mean, SIGMA)), maxTokens))
}
