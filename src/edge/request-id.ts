/** Names requests: the client's own id when it is safe, always unique among those under way and towards the engine. */
import { randomBytes } from 'node:crypto'

/** Characters of an HTTP token, at most 128 of them. */
const SAFE_ID = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/

export interface RequestIds {
  /** What the client sees and the log says; `isTaken` tells of ids under way. */
  make(offered: string | undefined, isTaken: (id: string) => boolean): { client: string; own: string }
}

export function createRequestIds(): RequestIds {
  const fresh = () => randomBytes(12).toString('hex')
  return {
    make(offered, isTaken) {
      const client = offered !== undefined && SAFE_ID.test(offered) ? offered : fresh()
      const own = isTaken(client) ? `${client}.${randomBytes(4).toString('hex')}` : client
      return { client, own }
    },
  }
}

/** Tells this process apart from its predecessors in the engine's eyes. */
const BOOT_TAG = randomBytes(3).toString('hex')

/** The id that an engine is given: one per attempt, since engines reject an id that is still running. */
export function engineRequestId(own: string, permitId: number): string {
  return `${own}-${BOOT_TAG}${permitId.toString(36)}`
}
