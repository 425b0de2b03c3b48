/** Which signals the standard variables turn on, how they are tuned, and what is said of values that can't be used. */
import { describe, expect, it } from 'vitest'
import { type Env, otelSettings } from '../../src/otel/settings.ts'

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }
const on = (env: Env) => {
  const { traces, metrics } = otelSettings(env)
  return [traces && 'traces', metrics && 'metrics'].filter((each) => each !== undefined)
}

describe('a signal', () => {
  it.each<[string, Env, string[]]>([
    ['nothing at all', {}, []],
    ['an empty endpoint', { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, []],
    ['tuning alone', { OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }, []],
    ['an endpoint', ENDPOINT, ['traces', 'metrics']],
    ['an endpoint of its own', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://x/t' }, ['traces']],
    ['its exporter', { OTEL_METRICS_EXPORTER: 'otlp' }, ['metrics']],
    ['all but one', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, ['metrics']],
    ['the kill switch', { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }, []],
    ['gRPC, for one of them', { ...ENDPOINT, OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'grpc' }, ['traces']],
  ])('is turned on by %s', (_what, env, signals) => {
    expect(on(env)).toEqual(signals)
  })

  it('has the defaults of the specification, but for smaller batches', () => {
    expect(otelSettings(ENDPOINT)).toEqual({
      traces: {
        protocol: 'http/protobuf',
        sampler: 'parentbased_always_on',
        sampleRatio: 1,
        batchDelayMs: 5000,
        exportTimeoutMs: 30_000,
        queueSpans: 2048,
        batchSpans: 128,
      },
      metrics: { protocol: 'http/protobuf', intervalMs: 60_000, timeoutMs: 30_000 },
      warnings: [],
    })
  })

  it('is tuned by the variables', () => {
    const { traces, metrics, warnings } = otelSettings({
      ...ENDPOINT,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/protobuf',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      OTEL_BSP_MAX_QUEUE_SIZE: '100',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
    })
    expect(warnings).toEqual([])
    expect(traces).toMatchObject({
      protocol: 'http/json',
      sampleRatio: 0.25,
      queueSpans: 100,
      batchSpans: 100,
    })
    expect(traces).toMatchObject({ sampler: 'parentbased_traceidratio', batchDelayMs: 50 })
    expect(metrics).toEqual({ protocol: 'http/protobuf', intervalMs: 1000, timeoutMs: 1000 })
  })

  it('says what to do about values that it can’t use, and goes on without them', () => {
    const { traces, warnings } = otelSettings({
      ...ENDPOINT,
      OTEL_METRICS_EXPORTER: 'prometheus',
      OTEL_TRACES_SAMPLER: 'jaeger_remote',
      OTEL_TRACES_SAMPLER_ARG: '2',
      OTEL_BSP_SCHEDULE_DELAY: '-1',
    })
    expect(traces).toMatchObject({ sampler: 'parentbased_always_on', sampleRatio: 1, batchDelayMs: 5000 })
    expect(warnings).toHaveLength(4)
    expect(warnings.join('\n')).toMatch(/METRICS_EXPORTER: prometheus.*only otlp and none/)
    expect(warnings.join('\n')).toMatch(/SAMPLER=jaeger_remote is ignored, parentbased_always_on is used/)
    expect(otelSettings({ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }).warnings[0]).toMatch(/4318/)
  })
})
