/** Chained hashes of a prompt's blocks: equal chains mean equal beginnings, so that cached prefixes are recognised. */
import { hash } from 'node:crypto'
import type { RequestShape } from './request-shape.ts'

/** One hashed block in tokens; engines cache in smaller blocks, so a match is never overstated by more than one. */
export const PREFIX_BLOCK_TOKENS = 256
/** About `PREFIX_BLOCK_TOKENS` of text at four characters a token. */
const BLOCK_CHARS = 1024
/** Blocks hashed at most: 32 000 tokens are recognised, and a record stays small. */
const MAX_BLOCKS = 128
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

function* blocks(prefix: RequestShape['prefix']): Generator<string> {
  if ('ids' in prefix) {
    const whole = Math.min(MAX_BLOCKS, Math.floor(prefix.ids.length / PREFIX_BLOCK_TOKENS))
    for (let at = 0; at < whole; at++) {
      yield prefix.ids.slice(at * PREFIX_BLOCK_TOKENS, (at + 1) * PREFIX_BLOCK_TOKENS).join(',')
    }
    return
  }
  const whole = Math.min(MAX_BLOCKS, Math.floor(prefix.text.length / BLOCK_CHARS))
  for (let at = 0; at < whole; at++) yield prefix.text.slice(at * BLOCK_CHARS, (at + 1) * BLOCK_CHARS)
}
