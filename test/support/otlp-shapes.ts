/** What OTLP said, flat: spans and metric points with plain attributes and milliseconds. */

type Plain = Record<string, unknown>
export type Attributes = Record<string, unknown>

export interface SeenSpan {
  readonly resource: Attributes
  readonly scope: string
  readonly name: string
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly traceState: string
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  /** 0 unset, 2 error. */
  readonly statusCode: number
  readonly statusMessage: string
}

export interface SeenPoint {
  readonly attributes: Attributes
  readonly startMs: number
  readonly timeMs: number
  readonly value: number
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}

export interface SeenMetric {
  readonly resource: Attributes
  readonly name: string
  readonly unit: string
  readonly type: 'gauge' | 'sum' | 'histogram'
  readonly monotonic: boolean
  readonly temporality: number
  readonly points: readonly SeenPoint[]
}

const list = (value: unknown): Plain[] => (Array.isArray(value) ? (value as Plain[]) : [])
const part = (value: unknown): Plain => (typeof value === 'object' && value !== null ? (value as Plain) : {})
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const ms = (nanos: unknown): number => Number(BigInt(String(nanos ?? 0)) / 1000n) / 1000

function plainValue(value: Plain): unknown {
  if (value.arrayValue !== undefined) return list(part(value.arrayValue).values).map(plainValue)
  if (value.intValue !== undefined) return Number(value.intValue)
  return value.stringValue ?? value.boolValue ?? value.doubleValue
}

function attributesOf(holder: unknown): Attributes {
  const pairs = list(part(holder).attributes)
  return Object.fromEntries(pairs.map(({ key, value }) => [text(key), plainValue(part(value))]))
}

export function spansIn(request: Plain): SeenSpan[] {
  return list(request.resourceSpans).flatMap(({ resource, scopeSpans }) =>
    list(scopeSpans).flatMap(({ scope, spans }) =>
      list(spans).map((span) => ({
        resource: attributesOf(resource),
        scope: text(part(scope).name),
        name: text(span.name),
        kind: Number(span.kind ?? 0),
        traceId: text(span.traceId),
        spanId: text(span.spanId),
        parentSpanId: text(span.parentSpanId),
        traceState: text(span.traceState),
        startMs: ms(span.startTimeUnixNano),
        endMs: ms(span.endTimeUnixNano),
        attributes: attributesOf(span),
        statusCode: Number(part(span.status).code ?? 0),
        statusMessage: text(part(span.status).message),
      })),
    ),
  )
}

export function metricsIn(request: Plain): SeenMetric[] {
  return list(request.resourceMetrics).flatMap(({ resource, scopeMetrics }) =>
    list(scopeMetrics).flatMap(({ metrics }) =>
      list(metrics).map((metric) => {
        const type = (['gauge', 'sum', 'histogram'] as const).find((each) => metric[each] !== undefined)
        if (type === undefined) throw new Error(`${text(metric.name)} is of no known type`)
        const held = part(metric[type])
        return {
          resource: attributesOf(resource),
          name: text(metric.name),
          unit: text(metric.unit),
          type,
          monotonic: held.isMonotonic === true,
          temporality: Number(held.aggregationTemporality ?? 0),
          points: list(held.dataPoints).map(pointOf),
        }
      }),
    ),
  )
}

function pointOf(point: Plain): SeenPoint {
  const numbers = (value: unknown) => (Array.isArray(value) ? value.map(Number) : [])
  return {
    attributes: attributesOf(point),
    startMs: ms(point.startTimeUnixNano),
    timeMs: ms(point.timeUnixNano),
    value: Number(point.asDouble ?? point.asInt ?? point.count ?? 0),
    bounds: numbers(point.explicitBounds),
    counts: numbers(point.bucketCounts),
    sum: Number(point.sum ?? 0),
  }
}
