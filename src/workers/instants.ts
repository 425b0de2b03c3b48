/** Carries instants from one process to another: on the wire they are of the monotonic clock that the machine has. */

import type { SettleReport } from '../core/records.ts'
import type { Offer } from '../core/request.ts'
import type { Ms } from '../core/units.ts'
import type { WorkerEvent } from './wire.ts'

/** Where `performance.now()` of this process began on the machine's clock, in ms. */
export const OWN_ORIGIN_MS: Ms = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** The same offer with its instants `byMs` later. */
export function shiftOffer(offer: Offer, byMs: Ms): Offer {
  const { receivedAtMs, clientDeadlineAtMs } = offer
  const deadline = clientDeadlineAtMs === undefined ? {} : { clientDeadlineAtMs: clientDeadlineAtMs + byMs }
  return { ...offer, receivedAtMs: receivedAtMs + byMs, ...deadline }
}

function shiftReport(report: SettleReport, byMs: Ms): SettleReport {
  const { endedAtMs, firstTokenAtMs, lastTokenAtMs } = report
  return {
    ...report,
    endedAtMs: endedAtMs + byMs,
    ...(firstTokenAtMs === undefined ? {} : { firstTokenAtMs: firstTokenAtMs + byMs }),
    ...(lastTokenAtMs === undefined ? {} : { lastTokenAtMs: lastTokenAtMs + byMs }),
  }
}

/** The same event with its instants `byMs` later. */
export function shiftEvent(event: WorkerEvent, byMs: Ms): WorkerEvent {
  if (event.kind === 'offer') return { ...event, offer: shiftOffer(event.offer, byMs) }
  if (event.kind === 'settle') return { ...event, report: shiftReport(event.report, byMs) }
  return event
}
