/**
 * The least engine time that a request can cost, by the step formulas of a profile (`src/sim/profiles.ts`). Pure.
 *
 * What a step needs for context (attention over it) belongs to single requests. The rest is shared: a step of n prompt
 * tokens and b decodes takes at least alpha * n + beta * b for each pair (alpha, beta) that stays below every step the
 * engine can make. More for the one means less for the other, so there are many such pairs, each of them true.
 */

/** Pairs between "decodes are free" and "decodes carry every step". */
const PAIRS = 9

/** `[{ alpha, beta }]` in ms a token. `limits`: most sequences and most tokens of one step. */
export function tokenPrices(profile, limits) {
  const { decode, stepOverheadMs } = profile
  const dearest = decode.perSequenceMs + (decode.baseMs + stepOverheadMs) / limits.maxNumSeqs
  return Array.from({ length: PAIRS }, (_, index) => {
    const beta = (dearest * index) / (PAIRS - 1)
    return { alpha: prefillPrice(profile, limits, beta), beta }
  })
}

/** The largest alpha that no step undercuts once its decodes are paid; 0 when decodes take it all. */
function prefillPrice(profile, { maxNumSeqs, maxNumBatchedTokens }, beta) {
  const { prefill, decode } = profile
  let alpha = Number.POSITIVE_INFINITY
  for (let b = 0; b <= Math.min(maxNumSeqs, maxNumBatchedTokens - 1); b++) {
    const flatMs = Math.max(prefill.floorMs, b === 0 ? 0 : decode.baseMs + decode.perSequenceMs * b)
    // Up to the kink more prompt tokens cost nothing; beyond it each costs the same.
    const kink = Math.floor((flatMs - prefill.baseMs) / prefill.perTokenMs - b)
    for (const n of [1, kink, kink + 1, maxNumBatchedTokens - b]) {
      if (n < 1 || n > maxNumBatchedTokens - b) continue
      const stepMs = Math.max(flatMs, prefill.baseMs + prefill.perTokenMs * (n + b)) + profile.stepOverheadMs
      alpha = Math.min(alpha, (stepMs - beta * b) / n)
    }
  }
  return Math.max(0, alpha)
}

/** Engine time for a prompt of which `cachedTokens` are there already, in ms. */
export function prefillWorkMs(profile, promptTokens, cachedTokens, alpha) {
  const newTokens = promptTokens - cachedTokens
  const contextMs = profile.prefill.perTokenContextMs * newTokens * (cachedTokens + newTokens / 2)
  return alpha * newTokens + contextMs
}

/** Engine time for all tokens of the answer but the first, which the prefill gives, in ms. */
export function decodeWorkMs(profile, promptTokens, outputTokens, beta) {
  const steps = outputTokens - 1
  const contextTokens = steps * (promptTokens + outputTokens / 2)
  return beta * steps + profile.decode.perContextTokenMs * contextTokens
}

/** Tokens under one hash of the simulator's prefix caches. */
const CACHED_TOKENS = 64

/** The most of each prompt that any cache could hold, in order of arrival; at least one token is always new. */
export function cacheableTokens(requests) {
  const seen = new Set()
  return requests.map(({ promptTokens, shared, text, blocks }) => {
    if (text !== undefined) return promptTokens - 1
    if (blocks === undefined) {
      const tokens = Math.floor((shared?.tokens ?? 0) / CACHED_TOKENS) * CACHED_TOKENS
      return Math.min(tokens, promptTokens - 1)
    }
    const fresh = blocks.names.findIndex((name) => !seen.has(name))
    for (const name of blocks.names) seen.add(name)
    const leading = fresh < 0 ? blocks.names.length : fresh
    return Math.min(leading * blocks.tokens, promptTokens - 1)
  })
}
