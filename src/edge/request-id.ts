/** Names requests: the client's own id when it is safe, always unique among those under way and towards the engine. */
import { randomBytes } from 'node:crypto'

/** Characters of an HTTP token, at most 128 of them. */
const SAFE_ID = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/

/** Random bytes are drawn for many ids at once: each draw is a call out of the engine. */
const POOLED_IDS = 256
const ID_BYTES = 12
let pool = Buffer.alloc(0)
let poolAt = 0

function freshId(): string {
  if (poolAt >= pool.length) {
    pool = randomBytes(POOLED_IDS * ID_BYTES)
    poolAt = 0
  }
  poolAt += ID_BYTES
  return pool.toString('hex', poolAt - ID_BYTES, poolAt)
}

/** The id that the client sees: its own when that is safe, else a fresh one. */
export function clientRequestId(offered: string | undefined): string {
  return offered !== undefined && SAFE_ID.test(offered) ? offered : freshId()
}

/** The id under which we know the request: the client's, unless a request under way has it already. */
export function ownRequestId(client: string, isTaken: (id: string) => boolean): string {
  return isTaken(client) ? `${client}.${randomBytes(4).toString('hex')}` : client
}

/** Version, trace, parent and flags as W3C Trace Context has them; later versions may add more behind. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/

/** The trace that a `traceparent` header names, or undefined when it is none. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return traceparent === undefined ? undefined : TRACEPARENT.exec(traceparent)?.[1]
}

/** Tells this process apart from its predecessors in the engine's eyes. */
const BOOT_TAG = randomBytes(3).toString('hex')

/** The id that an engine is given: one per attempt, since engines reject an id that is still running. */
export function engineRequestId(own: string, permitId: number): string {
  return `${own}-${BOOT_TAG}${permitId.toString(36)}`
}
