/** Turns a span of plain values into what OpenTelemetry's processors take. */
import {
  type Attributes,
  createTraceState,
  type HrTime,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import type { SpanAttributes, SpanFacts } from './span-facts.ts'

export interface SpanOrigin {
  readonly resource: Resource
  readonly scope: { readonly name: string; readonly version: string }
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const

/** `unixOffsetMs`: what makes Unix time of the span's own clock. */
export function readableSpan(span: SpanFacts, origin: SpanOrigin, unixOffsetMs: number): ReadableSpan {
  const context = contextOf(span, span.spanId, false)
  const { parentSpanId } = span
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => context,
    ...(parentSpanId === undefined
      ? {}
      : { parentSpanContext: contextOf(span, parentSpanId, span.parentIsRemote) }),
    startTime: hrTimeOf(span.startMs + unixOffsetMs),
    endTime: hrTimeOf(Math.max(span.startMs, span.endMs) + unixOffsetMs),
    duration: hrTimeOf(Math.max(0, span.endMs - span.startMs)),
    status:
      span.error === undefined
        ? { code: SpanStatusCode.UNSET }
        : { code: SpanStatusCode.ERROR, message: span.error },
    attributes: attributesOf(span.attributes),
    links: [],
    events: [],
    ended: true,
    resource: origin.resource,
    instrumentationScope: origin.scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

function contextOf({ traceId, tracestate }: SpanFacts, spanId: string, isRemote: boolean): SpanContext {
  return {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  }
}

/** Absent values and numbers that are none stay out. */
function attributesOf(groups: readonly SpanAttributes[]): Attributes {
  const kept: Attributes = {}
  for (const group of groups) {
    for (const [name, value] of Object.entries(group)) {
      if (value === undefined || (typeof value === 'number' && !Number.isFinite(value))) continue
      kept[name] = typeof value === 'object' ? [...value] : value
    }
  }
  return kept
}

/** Milliseconds as whole seconds and nanoseconds. */
export function hrTimeOf(ms: number): HrTime {
  const sec = Math.floor(ms / 1000)
  const nanos = Math.round((ms - sec * 1000) * 1e6)
  return nanos >= 1e9 ? [sec + 1, 0] : [sec, nanos]
}
