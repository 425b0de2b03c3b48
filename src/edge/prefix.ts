/** Chained hashes of a prompt's blocks: equal chains mean equal beginnings, so that cached prefixes are recognised. */
import { hash } from 'node:crypto'
import { blockEnds, FIRST_BLOCK_TOKENS } from '../core/prefix-blocks.ts'
import type { Tokens } from '../core/units.ts'
import type { RequestShape } from './request-shape.ts'

/** Characters of text in one of the first blocks; how many tokens they are depends on the text. */
const BLOCK_CHARS = 4 * FIRST_BLOCK_TOKENS
/** Characters kept of each hash: 64 bits, so that chance collisions stay out of a map of millions. */
const HASH_CHARS = 16

/** Hashes of whole blocks, first block first. `adapter` and the client's cache salt keep caches apart. */
export function prefixHashes(shape: Pick<RequestShape, 'prefix' | 'cacheSalt'>, adapter: string): string[] {
  const hashes: string[] = []
  let chain = `${adapter}\0${shape.cacheSalt}\0`
  for (const block of blocks(shape.prefix)) {
    chain = hash('sha1', chain + block, 'hex').slice(0, HASH_CHARS)
    hashes.push(chain)
  }
  return hashes
}

/** Tokens of one of the first blocks, as a share of all that the prompt's text makes; a fraction, so that none adds up. */
export function firstBlockTokens(prefix: RequestShape['prefix'], textTokens: Tokens): Tokens {
  if ('ids' in prefix) return FIRST_BLOCK_TOKENS
  return (textTokens * BLOCK_CHARS) / Math.max(BLOCK_CHARS, prefix.text.length)
}

function* blocks(prefix: RequestShape['prefix']): Generator<string> {
  const ids = 'ids' in prefix ? prefix.ids : undefined
  const text = 'ids' in prefix ? '' : prefix.text
  const size = ids === undefined ? BLOCK_CHARS : FIRST_BLOCK_TOKENS
  let from = 0
  for (const end of blockEnds(Math.floor((ids ?? text).length / size))) {
    yield ids?.slice(from, end * size).join(',') ?? text.slice(from, end * size)
    from = end * size
  }
}
