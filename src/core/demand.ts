/** What is asked of a pool: for each class a rate of offers and the mean size of one, whatever became of it. */
import type { SloClass } from './request.ts'
import type { Tokens } from './units.ts'

export interface OfferedStream {
  readonly slo: SloClass
  /** Offers a second, refused ones included. */
  readonly requestsPerSec: number
  /** Means of one request: its prompt, what of it has to be computed, and what its sequences make together. */
  readonly promptTokens: Tokens
  readonly uncachedTokens: Tokens
  readonly outputTokens: Tokens
  /** Sequences that a request becomes, at least 1. */
  readonly sequences: number
}
