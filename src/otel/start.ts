/** Starts OpenTelemetry's exporters for the signals that are turned on; only ever loaded by a dynamic import. */
import { randomUUID } from 'node:crypto'
import { DiagLogLevel, diag } from '@opentelemetry/api'
import { detectResources, envDetector, type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, RandomIdGenerator } from '@opentelemetry/sdk-trace'
import { bounded, type Log } from '../telemetry/log.ts'
import type { EndedRequest, RequestSink } from '../telemetry/request-sink.ts'
import { metricExporter, spanExporter } from './exporters.ts'
import { GenerationMetrics } from './generation-metrics.ts'
import { MetricBridge } from './metric-bridge.ts'
import { readableSpan } from './readable-span.ts'
import { type SampleDecision, samplerOf } from './sampler.ts'
import type { MetricSettings, OtelSettings, TraceSettings } from './settings.ts'
import type { SpanFacts } from './span-facts.ts'
import { rejectedSpan, spansOf } from './spans.ts'

export interface OtelPorts {
  readonly version: string
  readonly log: Log
  /** The page of all metrics, in Prometheus' text format. */
  page(): Promise<string>
  nameOf(replicaId: string): string
  engineOf(replicaId: string): string | undefined
  /** Monotonic, in ms, the clock of the records. */
  nowMs(): number
  /** Wall clock in Unix ms. */
  unixMs(): number
}

export interface Otel {
  /** Absent when no traces are kept. */
  readonly sampler?: { readonly sampled: SampleDecision }
  readonly sink: RequestSink
  /** Sends what is gathered, for at most `limitMs`. Never rejects. Idempotent. */
  close(limitMs: number): Promise<void>
}

type Scope = { readonly name: string; readonly version: string }
type Part = Pick<Otel, 'sampler' | 'sink'> & { close(): Promise<void> }

/** Rejects when a package of OpenTelemetry is not installed. */
export async function startOtel(settings: OtelSettings, ports: OtelPorts): Promise<Otel> {
  tellTroubles(ports.log)
  const scope = { name: 'sluice', version: ports.version }
  const resource = resourceOf(ports.version)
  const { traces, metrics } = settings
  const parts: Part[] = []
  if (traces !== undefined) parts.push(await tracePart(traces, resource, scope, ports))
  if (metrics !== undefined) parts.push(await metricPart(metrics, resource, scope, ports))
  const sampler = parts.find((part) => part.sampler !== undefined)?.sampler
  let closed: Promise<unknown> | undefined
  return {
    ...(sampler === undefined ? {} : { sampler }),
    sink: {
      ended: (request) => {
        for (const { sink } of parts) sink.ended(request)
      },
      rejected: (request) => {
        for (const { sink } of parts) sink.rejected(request)
      },
    },
    close: async (limitMs) => {
      closed ??= Promise.allSettled(parts.map((part) => part.close()))
      await within(closed, limitMs)
    },
  }
}

/** The name and attributes of the environment win over ours. */
function resourceOf(version: string): Resource {
  const own = {
    'service.name': 'sluice',
    'service.version': version,
    'service.instance.id': randomUUID(),
  }
  return resourceFromAttributes(own).merge(detectResources({ detectors: [envDetector] }))
}

async function tracePart(
  settings: TraceSettings,
  resource: Resource,
  scope: Scope,
  ports: OtelPorts,
): Promise<Part> {
  const processor = new BatchSpanProcessor({
    exporter: await spanExporter(settings.protocol),
    maxQueueSize: settings.queueSpans,
    maxExportBatchSize: settings.batchSpans,
    scheduledDelayMillis: settings.batchDelayMs,
    exportTimeoutMillis: settings.exportTimeoutMs,
  })
  const ids = new RandomIdGenerator()
  const spanPorts = {
    newSpanId: () => ids.generateSpanId(),
    nameOf: ports.nameOf,
    engineOf: ports.engineOf,
  }
  const add = (spans: readonly SpanFacts[]) => {
    const unixOffsetMs = ports.unixMs() - ports.nowMs()
    for (const span of spans) processor.onEnd(readableSpan(span, { resource, scope }, unixOffsetMs))
  }
  return {
    sampler: { sampled: samplerOf(settings) },
    sink: {
      ended: (request) => add(spansOf(request, spanPorts)),
      rejected: (request) => {
        const span = rejectedSpan(request, ports.nowMs())
        if (span !== undefined) add([span])
      },
    },
    close: () => processor.shutdown(),
  }
}

async function metricPart(
  settings: MetricSettings,
  resource: Resource,
  scope: Scope,
  ports: OtelPorts,
): Promise<Part> {
  const reader = new PeriodicExportingMetricReader({
    exporter: await metricExporter(settings.protocol),
    exportIntervalMillis: settings.intervalMs,
    exportTimeoutMillis: settings.timeoutMs,
    metricProducers: [new MetricBridge(ports, scope)],
  })
  const provider = new MeterProvider({ resource, readers: [reader] })
  const generation = new GenerationMetrics(provider.getMeter(scope.name, scope.version))
  const engineOf = ({ settlement: { replicaId } }: EndedRequest) =>
    replicaId === undefined ? undefined : ports.engineOf(replicaId)
  return {
    sink: {
      ended: (request) => generation.ended(request, engineOf(request)),
      rejected: () => {},
    },
    close: () => provider.shutdown(),
  }
}

/** What the exporters complain of is a line of our log, and not one for each batch. */
function tellTroubles(log: Log): void {
  const tell = (level: 'warn' | 'error') => (message: string) => {
    log.often('otel', level, 'otel_trouble', { message: bounded(plainMessage(message)) })
  }
  const silent = () => {}
  const logger = { error: tell('error'), warn: tell('warn'), info: silent, debug: silent, verbose: silent }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
}

/** The SDK tells errors as JSON with their stack; their message is enough. */
function plainMessage(message: string): string {
  try {
    const told: unknown = JSON.parse(message)
    if (typeof told !== 'object' || told === null) return message
    const { message: text, code } = told as { readonly message?: unknown; readonly code?: unknown }
    return [text, code].filter((part) => typeof part === 'string' && part !== '').join(' ') || message
  } catch {
    return message
  }
}

/** Waits for `done`, but no longer than that; its timer keeps no process alive. */
async function within(done: Promise<unknown>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs)
  })
  await Promise.race([done, limit])
  clearTimeout(timer)
}
