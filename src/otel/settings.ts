/** Reads what is to be exported, and how, from the standard OTEL_* variables. Loads nothing of OpenTelemetry. */

export type Env = Readonly<Record<string, string | undefined>>

const OTLP_PROTOCOLS = ['http/protobuf', 'http/json'] as const
export type OtlpProtocol = (typeof OTLP_PROTOCOLS)[number]

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
export type SamplerName = (typeof SAMPLERS)[number]

export interface TraceSettings {
  readonly protocol: OtlpProtocol
  readonly sampler: SamplerName
  /** Share of traces that the two ratio samplers record, 0 to 1. */
  readonly sampleRatio: number
  /** How long spans are gathered before they are sent, in ms. */
  readonly batchDelayMs: number
  readonly exportTimeoutMs: number
  /** Spans that wait to be sent; further ones are dropped. */
  readonly queueSpans: number
  /** Spans sent at once. */
  readonly batchSpans: number
}

export interface MetricSettings {
  readonly protocol: OtlpProtocol
  readonly intervalMs: number
  /** At most the interval. */
  readonly timeoutMs: number
}

export interface OtelSettings {
  readonly traces?: TraceSettings
  readonly metrics?: MetricSettings
  /** What was asked for and is not done, each a sentence that says what to do. */
  readonly warnings: readonly string[]
}

/** Smaller than the 512 of the specification: a batch is put into bytes in one go, and streams stand still meanwhile. */
const BATCH_SPANS = 128

/** What to export; neither signal when nothing is turned on. Other defaults are those of the OpenTelemetry specification. */
export function otelSettings(env: Env): OtelSettings {
  const warnings: string[] = []
  const read = new Reader(env, warnings)
  if (read.text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return { warnings }
  const traces = read.protocol('TRACES')
  const metrics = read.protocol('METRICS')
  return {
    ...(traces === undefined ? {} : { traces: traceSettings(traces, read) }),
    ...(metrics === undefined ? {} : { metrics: metricSettings(metrics, read) }),
    warnings,
  }
}

function traceSettings(protocol: OtlpProtocol, read: Reader): TraceSettings {
  const queueSpans = read.count('OTEL_BSP_MAX_QUEUE_SIZE', 2048)
  return {
    protocol,
    sampler: read.word('OTEL_TRACES_SAMPLER', SAMPLERS, 'parentbased_always_on'),
    sampleRatio: read.ratio('OTEL_TRACES_SAMPLER_ARG', 1),
    batchDelayMs: read.count('OTEL_BSP_SCHEDULE_DELAY', 5000),
    exportTimeoutMs: read.count('OTEL_BSP_EXPORT_TIMEOUT', 30_000),
    queueSpans,
    batchSpans: Math.min(queueSpans, read.count('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', BATCH_SPANS)),
  }
}

function metricSettings(protocol: OtlpProtocol, read: Reader): MetricSettings {
  const intervalMs = read.count('OTEL_METRIC_EXPORT_INTERVAL', 60_000)
  const timeoutMs = Math.min(intervalMs, read.count('OTEL_METRIC_EXPORT_TIMEOUT', 30_000))
  return { protocol, intervalMs, timeoutMs }
}

/** Reads single variables; an empty one counts as not set, one that can't be used is a warning and its default. */
class Reader {
  readonly #env: Env
  readonly #warnings: string[]

  constructor(env: Env, warnings: string[]) {
    this.#env = env
    this.#warnings = warnings
  }

  text(name: string): string | undefined {
    const text = this.#env[name]?.trim()
    return text === '' ? undefined : text
  }

  /** The protocol of a signal that is to be exported. */
  protocol(signal: 'TRACES' | 'METRICS'): OtlpProtocol | undefined {
    if (!this.#wanted(signal)) return undefined
    const own = `OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`
    const name = this.text(own) === undefined ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : own
    const protocol = this.text(name) ?? 'http/protobuf'
    const known = OTLP_PROTOCOLS.find((each) => each === protocol)
    if (known === undefined) {
      const what = `${name}=${protocol} is not spoken here, so no ${signal.toLowerCase()} are exported`
      this.#warnings.push(`${what}: set ${OTLP_PROTOCOLS.join(' or ')}, and the collector's HTTP port (4318)`)
    }
    return known
  }

  /** An endpoint turns a signal on, as its exporter does when it is named; `none` turns it off. */
  #wanted(signal: 'TRACES' | 'METRICS'): boolean {
    const name = `OTEL_${signal}_EXPORTER`
    const exporters = (this.text(name) ?? '').split(',').map((each) => each.trim())
    const others = exporters.filter((each) => each !== '' && each !== 'otlp' && each !== 'none')
    if (others.length > 0)
      this.#warnings.push(`${name}: ${others.join(', ')} is not there, only otlp and none are`)
    if (exporters.includes('otlp')) return true
    if (exporters.some((each) => each !== '')) return false
    return ['', `${signal}_`].some((part) => this.text(`OTEL_EXPORTER_OTLP_${part}ENDPOINT`) !== undefined)
  }

  word<T extends string>(name: string, words: readonly T[], fallback: T): T {
    const text = this.text(name)
    const known = words.find((word) => word === text)
    if (text !== undefined && known === undefined) this.#useless(name, text, words.join(', '), fallback)
    return known ?? fallback
  }

  /** A whole number above 0. */
  count(name: string, fallback: number): number {
    const text = this.text(name)
    if (text === undefined) return fallback
    if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
    this.#useless(name, text, 'a whole number above 0', fallback)
    return fallback
  }

  ratio(name: string, fallback: number): number {
    const text = this.text(name)
    if (text === undefined) return fallback
    const ratio = Number(text)
    if (ratio >= 0 && ratio <= 1) return ratio
    this.#useless(name, text, 'a number from 0 to 1', fallback)
    return fallback
  }

  #useless(name: string, text: string, wanted: string, fallback: string | number): void {
    this.#warnings.push(`${name}=${text} is ignored, ${fallback} is used: give ${wanted}`)
  }
}
