/** Reads OTLP requests in both encodings into one plain shape; knows the fields of the protocol that Sluice may send. */
import { gunzipSync } from 'node:zlib'

/** What a field holds: a scalar, or a message by its name; `*` marks a repeated one. */
type Fields = Readonly<Record<number, readonly [name: string, type: string]>>

/** From opentelemetry-proto v1: trace.proto, metrics.proto, common.proto and the collector services. */
const MESSAGES: Readonly<Record<string, Fields>> = {
  TraceRequest: { 1: ['resourceSpans', 'ResourceSpans*'] },
  ResourceSpans: { 1: ['resource', 'Resource'], 2: ['scopeSpans', 'ScopeSpans*'] },
  ScopeSpans: { 1: ['scope', 'Scope'], 2: ['spans', 'Span*'] },
  Resource: { 1: ['attributes', 'KeyValue*'] },
  Scope: { 1: ['name', 'string'], 2: ['version', 'string'] },
  Span: {
    1: ['traceId', 'hex'],
    2: ['spanId', 'hex'],
    3: ['traceState', 'string'],
    4: ['parentSpanId', 'hex'],
    5: ['name', 'string'],
    6: ['kind', 'varint'],
    7: ['startTimeUnixNano', 'fixed64'],
    8: ['endTimeUnixNano', 'fixed64'],
    9: ['attributes', 'KeyValue*'],
    15: ['status', 'Status'],
  },
  Status: { 2: ['message', 'string'], 3: ['code', 'varint'] },
  KeyValue: { 1: ['key', 'string'], 2: ['value', 'AnyValue'] },
  AnyValue: {
    1: ['stringValue', 'string'],
    2: ['boolValue', 'bool'],
    3: ['intValue', 'varint'],
    4: ['doubleValue', 'double'],
    5: ['arrayValue', 'ArrayValue'],
  },
  ArrayValue: { 1: ['values', 'AnyValue*'] },
  MetricsRequest: { 1: ['resourceMetrics', 'ResourceMetrics*'] },
  ResourceMetrics: { 1: ['resource', 'Resource'], 2: ['scopeMetrics', 'ScopeMetrics*'] },
  ScopeMetrics: { 1: ['scope', 'Scope'], 2: ['metrics', 'Metric*'] },
  Metric: {
    1: ['name', 'string'],
    2: ['description', 'string'],
    3: ['unit', 'string'],
    5: ['gauge', 'Points'],
    7: ['sum', 'Points'],
    9: ['histogram', 'HistogramPoints'],
  },
  Points: {
    1: ['dataPoints', 'Point*'],
    2: ['aggregationTemporality', 'varint'],
    3: ['isMonotonic', 'bool'],
  },
  Point: {
    2: ['startTimeUnixNano', 'fixed64'],
    3: ['timeUnixNano', 'fixed64'],
    4: ['asDouble', 'double'],
    6: ['asInt', 'fixed64'],
    7: ['attributes', 'KeyValue*'],
  },
  HistogramPoints: { 1: ['dataPoints', 'HistogramPoint*'], 2: ['aggregationTemporality', 'varint'] },
  HistogramPoint: {
    2: ['startTimeUnixNano', 'fixed64'],
    3: ['timeUnixNano', 'fixed64'],
    4: ['count', 'fixed64'],
    5: ['sum', 'double'],
    6: ['bucketCounts', 'packed fixed64'],
    7: ['explicitBounds', 'packed double'],
    9: ['attributes', 'KeyValue*'],
  },
}

type Plain = Record<string, unknown>

class Bytes {
  readonly #view: Buffer
  #at = 0

  constructor(view: Buffer) {
    this.#view = view
  }

  get more(): boolean {
    return this.#at < this.#view.length
  }

  varint(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#view[this.#at++]
      if (byte === undefined) throw new Error('a varint ends behind the message')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asIntN(64, value)
    }
  }

  take(length: number): Buffer {
    const end = this.#at + length
    if (end > this.#view.length) throw new Error('a field ends behind the message')
    const taken = this.#view.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  /** The raw value of a field by its wire type. */
  field(wireType: number): Buffer | bigint {
    if (wireType === 0) return this.varint()
    if (wireType === 1) return this.take(8)
    if (wireType === 2) return this.take(Number(this.varint()))
    if (wireType === 5) return this.take(4)
    throw new Error(`wire type ${wireType} is not used by this protocol`)
  }
}

function scalar(type: string, raw: Buffer | bigint): unknown {
  if (typeof raw === 'bigint') return type === 'bool' ? raw !== 0n : Number(raw)
  if (type === 'string') return raw.toString('utf8')
  if (type === 'hex') return raw.toString('hex')
  if (type === 'double') return raw.readDoubleLE(0)
  if (type === 'fixed64') return String(raw.readBigUInt64LE(0))
  const [, element] = type.split(' ')
  if (element === undefined) throw new Error(`no scalar: ${type}`)
  return Array.from({ length: raw.length / 8 }, (_, at) => scalar(element, raw.subarray(at * 8, at * 8 + 8)))
}

/** One protobuf message; fields that the table lacks are passed over, as a receiver must. */
function decodeMessage(name: string, body: Buffer): Plain {
  const fields = MESSAGES[name] ?? {}
  const message: Plain = {}
  const bytes = new Bytes(body)
  while (bytes.more) {
    const tag = Number(bytes.varint())
    const raw = bytes.field(tag & 7)
    const field = fields[tag >> 3]
    if (field === undefined) continue
    const [key, type] = field
    const inner = type.replace('*', '')
    const value =
      MESSAGES[inner] !== undefined && typeof raw !== 'bigint'
        ? decodeMessage(inner, raw)
        : scalar(inner, raw)
    if (type.endsWith('*')) message[key] = [...((message[key] as unknown[]) ?? []), value]
    else message[key] = value
  }
  return message
}

/** A whole request body. Throws when it is not what its headers say. */
export function decodeRequest(
  signal: 'traces' | 'metrics',
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: Buffer,
): Plain {
  const plain = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
  const type = headers['content-type']
  if (type === 'application/json') return JSON.parse(plain.toString('utf8'))
  if (type !== 'application/x-protobuf') throw new Error(`content-type ${type}`)
  return decodeMessage(signal === 'traces' ? 'TraceRequest' : 'MetricsRequest', plain)
}
