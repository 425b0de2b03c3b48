/** What a prompt's attention amounts to: each new token is compared with every token before it. */
import type { Offer } from './request.ts'
import type { Tokens } from './units.ts'

/**
 * Pairs of a token that has to be computed and a token that it attends to, over the whole prompt: n * (c + n / 2) for n
 * tokens after c cached ones. In chunks it comes to the same, so chunks need not be gone through. At least 0.
 */
export function attentionPairs(promptTokens: Tokens, uncachedTokens: Tokens = promptTokens): number {
  return uncachedTokens * (Math.max(promptTokens, uncachedTokens) - uncachedTokens / 2)
}

/** The same of a request, which may bring several prompts: none of them attends to another. */
export function offerPairs(
  { promptTokens, prompts = 1 }: Offer,
  uncachedTokens: Tokens = promptTokens,
): number {
  return attentionPairs(promptTokens, uncachedTokens) / prompts
}
