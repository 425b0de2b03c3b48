/** Loads the OTLP exporter of a protocol. Endpoints, headers, TLS, timeouts and compression it reads from OTEL_* itself. */
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import type { OtlpProtocol } from './settings.ts'

export async function spanExporter(protocol: OtlpProtocol): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto')
  return new OTLPTraceExporter()
}

export async function metricExporter(protocol: OtlpProtocol): Promise<PushMetricExporter> {
  const { OTLPMetricExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-metrics-otlp-http')
      : await import('@opentelemetry/exporter-metrics-otlp-proto')
  return new OTLPMetricExporter()
}
