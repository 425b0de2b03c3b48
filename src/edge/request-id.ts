/** Names requests: the client's own id when it is safe, always unique among those under way and towards the engine. */
import { randomBytes } from 'node:crypto'

/** Characters of an HTTP token, at most 128 of them. */
const SAFE_ID = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/

/** Random bytes are drawn for many ids at once: each draw is a call out of the engine. */
const POOL_BYTES = 4096
const ID_BYTES = 12
/** Tells apart the requests under way whose clients chose one id. */
const OWN_BYTES = 4
let pool = Buffer.alloc(0)
let poolAt = 0

/** That many random bytes as hex digits; at most 4096 bytes. */
export function randomHex(bytes: number): string {
  if (poolAt + bytes > pool.length) {
    pool = randomBytes(POOL_BYTES)
    poolAt = 0
  }
  poolAt += bytes
  return pool.toString('hex', poolAt - bytes, poolAt)
}

/** The id that the client sees: its own when that is safe, else a fresh one. */
export function clientRequestId(offered: string | undefined): string {
  return offered !== undefined && SAFE_ID.test(offered) ? offered : randomHex(ID_BYTES)
}

/** The id under which we know the request: the client's, unless a request under way has it already. */
export function ownRequestId(client: string, isTaken: (id: string) => boolean): string {
  let own = client
  while (isTaken(own)) own = `${client}.${randomHex(OWN_BYTES)}`
  return own
}

/** Tells this process apart from its predecessors in the engine's eyes. */
const BOOT_TAG = randomBytes(3).toString('hex')

/** The id that an engine is given: one per attempt, since engines reject an id that is still running. */
export function engineRequestId(own: string, permitId: number): string {
  return `${own}-${BOOT_TAG}${permitId.toString(36)}`
}
