/** Reads and writes the headers of W3C Trace Context, level 1 and what later versions keep of it. */

/** The span on the other side of a `traceparent`. */
export interface RemoteParent {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

/** Version, trace, parent and flags; later versions may add more behind. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/
/** Length of a header of version 00, to which nothing may be added. */
const LENGTH_00 = 55
const SAMPLED = 1

/** The parent that a `traceparent` header names, or undefined when it is none. */
export function parentOf(traceparent: string | undefined): RemoteParent | undefined {
  const match = traceparent === undefined ? null : TRACEPARENT.exec(traceparent)
  if (match === null || traceparent === undefined) return undefined
  const [, version, traceId = '', spanId = '', flags = ''] = match
  if (version === '00' && traceparent.length !== LENGTH_00) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 }
}

/** The header that makes that span the parent of whoever receives it. */
export function traceparentOf({ traceId, spanId, sampled }: RemoteParent): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}
