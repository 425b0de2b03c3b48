/** Carries instants from one process to another: on the wire they are of the monotonic clock that the machine has. */
import type { ExchangeFacts, SettleReport } from '../core/records.ts'
import type { Offer } from '../core/request.ts'
import type { TraceFacts } from '../core/trace.ts'
import type { Ms } from '../core/units.ts'
import type { PermitEvent } from './wire.ts'

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
export function shiftEvent(event: PermitEvent, byMs: Ms): PermitEvent {
  if (event.kind === 'settle') return { ...event, report: shiftReport(event.report, byMs) }
  return event
}

/** The same trace with its instants `byMs` later. */
export function shiftTrace(trace: TraceFacts, byMs: Ms): TraceFacts {
  const attempts = trace.attempts.map(({ bounce, ...attempt }) => ({
    ...attempt,
    sentAtMs: attempt.sentAtMs + byMs,
    ...(bounce === undefined ? {} : { bounce: { ...bounce, atMs: bounce.atMs + byMs } }),
  }))
  return { ...trace, arrivedAtMs: trace.arrivedAtMs + byMs, attempts }
}

/** The same facts with the instants of their trace `byMs` later. */
export function shiftExchange(exchange: ExchangeFacts, byMs: Ms): ExchangeFacts {
  const { trace } = exchange
  return trace === undefined ? exchange : { ...exchange, trace: shiftTrace(trace, byMs) }
}
