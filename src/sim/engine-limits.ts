/** The limits that an engine runs under: what it is told, else what its profile says it would choose. */
import type { Tokens } from '../core/units.ts'
import type { EngineOptions, ToldLimits } from './engine-types.ts'

/** Block size of vLLM on CUDA, in tokens. */
export const DEFAULT_BLOCK_TOKENS: Tokens = 16
const LARGEST_DEFAULT_MODEL_LEN: Tokens = 131_072

export interface ResolvedLimits extends ToldLimits {
  readonly kvBlocks: number
  readonly blockTokens: Tokens
}

/** Throws a RangeError when the options contradict each other. */
export function resolveLimits(options: EngineOptions): ResolvedLimits {
  const { profile, chunkedPrefill = true } = options
  const blockTokens = options.blockTokens ?? DEFAULT_BLOCK_TOKENS
  const kvBlocks = options.kvBlocks ?? Math.floor(profile.kvCapacityTokens / blockTokens)
  const kvCapacityTokens = kvBlocks * blockTokens
  const maxModelLenTokens = options.maxModelLenTokens ?? Math.min(kvCapacityTokens, LARGEST_DEFAULT_MODEL_LEN)
  const maxNumSeqs = options.maxNumSeqs ?? profile.defaults.maxNumSeqs
  const smallestBatch = Math.max(
    maxNumSeqs * (1 + (options.speculative?.draftTokens ?? 0)),
    chunkedPrefill ? 0 : maxModelLenTokens,
  )
  const maxNumBatchedTokens =
    options.maxNumBatchedTokens ?? Math.max(profile.defaults.maxNumBatchedTokens, smallestBatch)
  const limits = {
    maxNumSeqs,
    maxNumBatchedTokens,
    maxModelLenTokens,
    kvCapacityTokens,
    kvBlocks,
    blockTokens,
  }
  checkLimits(limits, options)
  return limits
}

function checkLimits(limits: ResolvedLimits, { chunkedPrefill = true, speculative }: EngineOptions): void {
  const { maxNumSeqs, maxNumBatchedTokens, maxModelLenTokens, kvCapacityTokens } = limits
  if (maxNumSeqs < 1) throw new RangeError(`maxNumSeqs must be at least 1, got ${maxNumSeqs}`)
  if (maxNumBatchedTokens < maxNumSeqs) {
    throw new RangeError(
      `maxNumBatchedTokens (${maxNumBatchedTokens}) must be at least maxNumSeqs (${maxNumSeqs}), or decodes starve`,
    )
  }
  if (maxModelLenTokens > kvCapacityTokens) {
    throw new RangeError(
      `maxModelLenTokens (${maxModelLenTokens}) must fit into the KV cache of ${kvCapacityTokens} tokens`,
    )
  }
  if (!chunkedPrefill && maxNumBatchedTokens < maxModelLenTokens) {
    throw new RangeError(
      `without chunked prefill maxNumBatchedTokens (${maxNumBatchedTokens}) must be at least maxModelLenTokens (${maxModelLenTokens}), or long prompts never start`,
    )
  }
  if (speculative === undefined) return
  const { draftTokens, acceptanceRatio, draftCostRatio } = speculative
  if (Number.isInteger(draftTokens) && draftTokens >= 1 && isRatio(acceptanceRatio) && draftCostRatio >= 0)
    return
  throw new RangeError(
    'speculation needs at least 1 draft token, an acceptance of 0 to 1 and a draft cost of 0 or more',
  )
}

function isRatio(value: number): boolean {
  return value >= 0 && value <= 1
}
