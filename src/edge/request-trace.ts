/** Keeps one request's trace while it is under way: the ids that must be known before they are told, and its attempts. */
import type { IncomingHttpHeaders } from 'node:http'
import type { BounceCause } from '../core/events.ts'
import type { AttemptFacts, TraceFacts } from '../core/trace.ts'
import type { Ms } from '../core/units.ts'
import { headerOf } from './classify.ts'
import { randomHex } from './request-id.ts'
import { parentOf, type RemoteParent, traceparentOf } from './trace-context.ts'

/** Decides which traces are recorded. */
export interface TraceSampler {
  /** `parent` when the client's own span is known. */
  sampled(traceId: string, parent: RemoteParent | undefined): boolean
}

/** What an engine sees in place of the client's own trace headers; an absent `tracestate` takes the client's away. */
export interface TraceHeaders {
  readonly traceparent: string
  readonly tracestate: string | undefined
}

const TRACE_BYTES = 16
const SPAN_BYTES = 8

/** The spans themselves are made at the end, of these facts and of the records. */
export class RequestTrace implements TraceFacts {
  readonly traceId: string
  readonly spanId = randomHex(SPAN_BYTES)
  readonly parentSpanId: string | undefined
  readonly sampled: boolean
  readonly tracestate: string | undefined
  readonly path: string
  readonly arrivedAtMs: Ms
  readonly attempts: AttemptFacts[] = []

  /** Goes on the client's trace, or begins one when the client names none that can be read. */
  constructor(headers: IncomingHttpHeaders, path: string, nowMs: Ms, sampler: TraceSampler) {
    const parent = parentOf(headerOf(headers, 'traceparent'))
    this.traceId = parent?.traceId ?? randomHex(TRACE_BYTES)
    this.parentSpanId = parent?.spanId
    this.tracestate = parent === undefined ? undefined : headerOf(headers, 'tracestate')
    this.sampled = sampler.sampled(this.traceId, parent)
    this.path = path
    this.arrivedAtMs = nowMs
  }

  /** An attempt leaves: what to send along. */
  sent(to: Pick<AttemptFacts, 'attempt' | 'replicaId'>, nowMs: Ms): TraceHeaders {
    const { traceId, sampled, tracestate } = this
    const spanId = randomHex(SPAN_BYTES)
    this.attempts.push({ spanId, sentAtMs: nowMs, ...to })
    return { traceparent: traceparentOf({ traceId, spanId, sampled }), tracestate }
  }

  /** The attempt that left last came back before any content. */
  bounced(cause: BounceCause, nowMs: Ms): void {
    const last = this.attempts.pop()
    if (last !== undefined) this.attempts.push({ ...last, bounce: { atMs: nowMs, cause } })
  }
}
