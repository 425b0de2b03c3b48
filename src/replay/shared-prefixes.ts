/** Says how far prompts of a log were alike, by the hashes that their lines carry and by what engines found in their caches. */
import type { Tokens } from '../core/units.ts'
import { EXTENT_TOKENS } from '../sim/offer.ts'
import type { LoggedRequest } from './logged-request.ts'

/** Blocks whose hashes a line carries at most; what follows is known by its length only. */
export const HASHED_BLOCKS = 16

/** Tokens under one name: as many as the simulator looks at together. */
export const RUN_TOKENS: Tokens = EXTENT_TOKENS

/**
 * Equal hashes are equal text. What engines found in their caches beyond hashed blocks is taken for text that requests
 * of the same tenant and class have in common. Where a prompt goes on behind the last hash that fits into a line, all
 * prompts that agree so far go on alike, as far as an engine has found one of them in its cache.
 */
export class SharedPrefixes {
  readonly #longest = new Map<string, Tokens>()

  constructor(requests: readonly LoggedRequest[]) {
    for (const { prefixHashes, cachedTokens = 0 } of requests) {
      const last = prefixHashes[HASHED_BLOCKS - 1]
      if (last !== undefined) this.#longest.set(last, Math.max(this.#longest.get(last) ?? 0, cachedTokens))
    }
  }

  /** Names of the prompt's runs of `RUN_TOKENS`, the last of which stands for all that follows. */
  namesOf(request: LoggedRequest): readonly string[] {
    const { prefixHashes, prefixBlockTokens, cachedTokens = 0, id } = request
    const last = prefixHashes.at(-1)
    const reach = prefixHashes.length < HASHED_BLOCKS ? undefined : this.#longest.get(last ?? '')
    const hashedRuns = Math.floor((prefixHashes.length * prefixBlockTokens) / RUN_TOKENS)
    const alikeRuns = Math.floor((reach ?? cachedTokens) / RUN_TOKENS)
    const names: string[] = []
    for (let run = 0; run < hashedRuns; run++)
      names.push(prefixHashes[Math.floor((run * RUN_TOKENS) / prefixBlockTokens)] ?? id)
    const behind = last ?? `${request.model}/${request.tenant}/${request.className}`
    for (let run = hashedRuns; run < alikeRuns; run++) names.push(`${behind}+`)
    return [...names, `own ${id}`]
  }
}
