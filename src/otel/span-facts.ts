/** A span as plain values, in the clock of the records: what is exported, before OpenTelemetry is asked to. */
import type { Ms } from '../core/units.ts'

/** Absent values are left out of the span. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>

export interface SpanFacts {
  readonly name: string
  /** `server`: of a request to us; `client`: of one by us; else within. */
  readonly kind: 'server' | 'client' | 'internal'
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string | undefined
  /** Whether the parent is another process's span. */
  readonly parentIsRemote: boolean
  readonly tracestate?: string | undefined
  readonly startMs: Ms
  readonly endMs: Ms
  /** Groups whose members go together; kept apart, since copies of large objects are slow. */
  readonly attributes: readonly SpanAttributes[]
  /** What failed, when it did: the status is an error then. */
  readonly error?: string | undefined
}
