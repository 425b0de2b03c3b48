/** Writes prompt text of a wanted token count, by the rule of four bytes a token, shared where prefixes are shared. */
import type { Tokens } from '../core/units.ts'
import { hash32, Rng } from '../sim/rng.ts'

/** Bytes of English text per token, the usual rule of thumb; the engine's own `usage` says what it really was. */
export const BYTES_PER_TOKEN = 4

/** Four bytes each with their space, so that a word is about one token. */
const WORDS =
  'the and for you any can had her was one our out day get has him his how man new now old see two way who boy did its let put say she too use dad mom ran red sun'.split(
    ' ',
  )

/** Words written once and sliced ever after; longer prompts repeat it. */
const POOL_WORDS = 65_536

export interface PromptWriter {
  /**
   * Text of about `tokens` tokens. Its first `sharedTokens` tokens are the same for every prompt with that
   * `sharedKey`; the rest is unlike any other prompt's, so that no prefix cache can answer it.
   */
  write(tokens: Tokens, unique: string, shared?: { readonly key: string; readonly tokens: Tokens }): string
}

/** Makes a writer; the same seed writes the same prompts. */
export function createPromptWriter(seed: number): PromptWriter {
  const pool = wordPool(seed)
  return {
    write(tokens, unique, shared) {
      const sharedBytes = Math.min(shared?.tokens ?? 0, tokens) * BYTES_PER_TOKEN
      const head = shared === undefined ? '' : slice(pool, hash32(shared.key), sharedBytes)
      const ownBytes = Math.max(Math.round(tokens * BYTES_PER_TOKEN) - head.length, 0)
      return head + `${unique} ${slice(pool, hash32(unique), ownBytes)}`.slice(0, Math.max(ownBytes, 1))
    },
  }
}

function wordPool(seed: number): string {
  const rng = new Rng(seed)
  const words: string[] = []
  for (let index = 0; index < POOL_WORDS; index++) words.push(WORDS[rng.integer(WORDS.length)] ?? 'the')
  return `${words.join(' ')} `
}

/** `length` characters of the pool from a place that the key chooses, going round at its end. */
function slice(pool: string, key: number, length: number): string {
  const start = (key % POOL_WORDS) * BYTES_PER_TOKEN
  let text = pool.slice(start, start + length)
  while (text.length < length) text += pool.slice(0, length - text.length)
  return text
}
