/** Counts and hashes prompts without a tokenizer, and makes up the words of an answer. */
import type { Tokens } from '../core/units.ts'
import { hash32 } from '../sim/rng.ts'

/** One token for every four bytes of text, rounded up: the usual rule of thumb for English. */
export const BYTES_PER_TOKEN = 4
/** What a chat template adds: this for each message, and once more for the answer's beginning. */
export const TEMPLATE_TOKENS: Tokens = 4
/** What a part that is not text (image, audio) counts as. */
export const MEDIA_PART_TOKENS: Tokens = 256
/** Blocks under one prefix hash are the engine's KV blocks. */
const HASHED_BLOCK_TOKENS: Tokens = 16
const VOCABULARY = 32_000

/** A prompt as the emulated engine sees it. */
export interface Prompt {
  readonly tokens: Tokens
  /** Chained hashes of its full blocks of 16 tokens. */
  readonly hashes: readonly string[]
}

/** A prompt given as text; `extraTokens` come from the template and media. */
export function textPrompt(text: string, salt: string, extraTokens: Tokens): Prompt {
  const tokens = Math.max(1, Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN) + extraTokens)
  const blockChars = HASHED_BLOCK_TOKENS * BYTES_PER_TOKEN
  const blocks = Math.min(Math.floor(text.length / blockChars), Math.floor(tokens / HASHED_BLOCK_TOKENS))
  return { tokens, hashes: chain(blocks, salt, (at) => text.slice(at * blockChars, (at + 1) * blockChars)) }
}

/** A prompt given as token ids, counted exactly. */
export function idPrompt(ids: readonly number[], salt: string): Prompt {
  const blocks = Math.floor(ids.length / HASHED_BLOCK_TOKENS)
  const blockText = (at: number) =>
    ids.slice(at * HASHED_BLOCK_TOKENS, (at + 1) * HASHED_BLOCK_TOKENS).join(' ')
  return { tokens: ids.length, hashes: chain(blocks, salt, blockText) }
}

/** Token ids for `/tokenize`: made up, yet the same for the same text. */
export function fakeTokenIds(text: string, count: Tokens): readonly number[] {
  const ids: number[] = []
  for (let at = 0; at < count; at++) {
    ids.push(hash32(text.slice(at * BYTES_PER_TOKEN, (at + 1) * BYTES_PER_TOKEN), at) % VOCABULARY)
  }
  return ids
}

function chain(blocks: number, salt: string, blockText: (at: number) => string): readonly string[] {
  const hashes: string[] = []
  let left = hash32(salt, 1)
  let right = hash32(salt, 2)
  for (let at = 0; at < blocks; at++) {
    const text = blockText(at)
    left = hash32(text, left)
    right = hash32(text, right)
    hashes.push(`${left.toString(36)}.${right.toString(36)}`)
  }
  return hashes
}

/** Words that need no escaping in JSON, each about one token with its space. */
const WORDS =
  'river stone light hand over under time water leaf north quiet long small turn rest warm field open road cloud seed night glass wind rain home walk line made true half soft fire hill near'.split(
    ' ',
  )

/** The text of the n-th token of an answer: a word, with a space unless it is the first. */
export function answerWord(seed: number, index: number): string {
  const word = WORDS[(Math.imul(seed + index, 0x9e3779b1) >>> 16) % WORDS.length] ?? 'river'
  return index === 0 ? word : ` ${word}`
}
