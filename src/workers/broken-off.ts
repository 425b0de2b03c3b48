/** What becomes of the streams of a worker that is gone: ended by us, as far as the books had seen them come. */
import type { InFlight } from '../core/ledger.ts'
import type { SettleReport } from '../core/records.ts'
import type { Ms } from '../core/units.ts'

/** The report that the worker can't make any more. `decoding` is its entry in the books once a token had come. */
export function brokenOffReport(decoding: InFlight | undefined, nowMs: Ms): SettleReport {
  if (decoding === undefined) return { outcome: 'draining', endedAtMs: nowMs, contentEvents: 0 }
  const { firstTokenAtMs, lastTokenAtMs, contentEvents } = decoding
  return {
    outcome: 'truncated',
    endedAtMs: nowMs,
    contentEvents,
    ...(firstTokenAtMs === undefined ? {} : { firstTokenAtMs }),
    ...(lastTokenAtMs === undefined ? {} : { lastTokenAtMs }),
  }
}
