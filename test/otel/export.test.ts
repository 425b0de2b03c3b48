/** A whole Sluice that exports to a receiver which decodes what comes, in both encodings. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { until } from '../support/deadline.ts'
import { type OtlpReceiver, otlpReceiver } from '../support/otlp-receiver.ts'
import { type SluiceRig, startSluiceRig } from '../support/sluice-rig.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CLIENT = '00f067aa0ba902b7'
const traced = { traceparent: `00-${TRACE}-${CLIENT}-01`, tracestate: 'vendor=1' }
const PATH = 'POST /v1/chat/completions'

let receiver: OtlpReceiver
let rig: SluiceRig | undefined
beforeEach(async () => {
  receiver = await otlpReceiver()
})
afterEach(async () => {
  await rig?.close()
  rig = undefined
  await receiver.close()
  vi.unstubAllEnvs()
})

/** With batches that leave at once. The exporters read the environment of the process. */
async function start(env: Readonly<Record<string, string>> = {}, engines = 1): Promise<SluiceRig> {
  const all = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_BSP_SCHEDULE_DELAY: '1',
    OTEL_METRIC_EXPORT_INTERVAL: '60000',
    ...env,
  }
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value)
  rig = await startSluiceRig({ env: all, engines, yaml: 'mode: enforce\nauth: none\ndefault_class: chat\n' })
  return rig
}

describe.each(['http/protobuf', 'http/json'])('over %s', (protocol) => {
  it('a stream is a server span with its wait, its attempt, prefill and stream', async () => {
    const sluice = await start({
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=blue',
      OTEL_SERVICE_NAME: 'gate',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    })
    const beforeMs = Date.now()
    const client = sluice.chat({}, traced)
    const exchange = await sluice.engine.nextRequest()
    exchange.head().role().tokens(3).finish().usage(12, 3).done()
    await client.waitComplete()
    const [server] = await receiver.spansNamed(PATH)
    const [dispatch] = await receiver.spansNamed('dispatch')
    const [queue] = await receiver.spansNamed('queue')
    const [prefill] = await receiver.spansNamed('prefill')
    const [stream] = await receiver.spansNamed('stream')
    if (server === undefined || dispatch === undefined) throw new Error('spans are missing')
    expect(server).toMatchObject({ traceId: TRACE, parentSpanId: CLIENT, traceState: 'vendor=1', kind: 2 })
    expect(server.resource).toMatchObject({
      'service.name': 'gate',
      'deployment.environment.name': 'test',
      'service.instance.id': expect.any(String),
    })
    expect(server.attributes).toMatchObject({
      'http.response.status_code': 200,
      'gen_ai.provider.name': 'vllm',
      'gen_ai.usage.input_tokens': 12,
      'gen_ai.usage.output_tokens': 3,
      'gen_ai.response.finish_reasons': ['stop'],
      'sluice.verdict': 'admit',
    })
    expect(exchange.request.headers).toMatchObject({
      traceparent: `00-${TRACE}-${dispatch.spanId}-01`,
      tracestate: 'vendor=1',
    })
    expect([queue?.parentSpanId, dispatch.parentSpanId]).toEqual([server.spanId, server.spanId])
    expect([prefill?.parentSpanId, stream?.parentSpanId]).toEqual([dispatch.spanId, dispatch.spanId])
    expect(server.startMs).toBeGreaterThan(beforeMs - 1000)
    expect(server.endMs).toBeLessThan(Date.now() + 1000)
    const inOrder = [server.startMs, dispatch.startMs, prefill?.endMs ?? 0, stream?.endMs ?? 0, server.endMs]
    expect(inOrder).toEqual([...inOrder].sort((a, b) => a - b))
    expect(receiver.headers.every((headers) => headers['x-tenant'] === 'blue')).toBe(true)
  })

  it('metrics are those of the page, and the ones of the conventions', async () => {
    const sluice = await start({ OTEL_EXPORTER_OTLP_PROTOCOL: protocol, OTEL_TRACES_EXPORTER: 'none' })
    const client = sluice.chat()
    ;(await sluice.engine.nextRequest()).head().role().tokens(3).finish().usage(12, 3).done()
    await client.waitComplete()
    await until(() => sluice.running.runtime.gate.counts.settled === 1, 'the settlement')
    // What is gathered leaves when Sluice closes.
    await sluice.running.close()
    const events = receiver.metric('sluice_slo_events_total')
    expect(events).toMatchObject({ type: 'sum', monotonic: true, temporality: 2, unit: '{event}' })
    expect(events.points.map(({ value }) => value)).toContain(1)
    expect(events.resource['service.name']).toBe('sluice')
    const ttft = receiver.metric('sluice_time_to_first_token_seconds')
    expect(ttft).toMatchObject({ type: 'histogram', unit: 's', temporality: 2 })
    const counted = ttft.points.filter(({ value }) => value > 0)
    expect(counted).toHaveLength(1)
    expect(counted[0]?.counts).toHaveLength((counted[0]?.bounds.length ?? 0) + 1)
    expect(counted[0]?.counts.reduce((sum, count) => sum + count, 0)).toBe(1)
    expect(receiver.metric('sluice_waiting_requests').type).toBe('gauge')
    const duration = receiver.metric('gen_ai.server.request.duration')
    expect(duration.points[0]?.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'vllm',
      'gen_ai.request.model': 'tiny',
    })
    expect(receiver.metric('gen_ai.server.time_to_first_token').points[0]?.value).toBe(1)
    expect(receiver.metric('gen_ai.server.time_per_output_token').points[0]?.value).toBe(1)
    expect(receiver.spans).toEqual([])
  })
})

describe('a trace', () => {
  it('shows both attempts of a reroute, each with the span that its engine was told', async () => {
    const sluice = await start({}, 2)
    const requests = sluice.engines.map((engine) => engine.nextRequest())
    const client = sluice.chat({}, traced)
    const first = await Promise.race(requests)
    first.reset()
    const second = (await Promise.all(requests)).find((exchange) => exchange !== first)
    if (second === undefined) throw new Error('the reroute went nowhere')
    second.head().role().token(' a').finish().usage(3, 1).done()
    await client.waitComplete()
    const attempts = await receiver.spansNamed('dispatch', 2)
    expect(attempts.map(({ attributes }) => attributes['sluice.attempt'])).toEqual([1, 2])
    expect(attempts.map(({ statusMessage }) => statusMessage)).toEqual(['reset', ''])
    const replicas = attempts.map(({ attributes }) => attributes['sluice.replica'])
    expect(new Set(replicas)).toEqual(new Set(['tiny-1', 'tiny-2']))
    const told = [first, second].map(({ request }) => String(request.headers.traceparent).split('-')[2])
    expect(told).toEqual(attempts.map(({ spanId }) => spanId))
    expect(await receiver.spansNamed('queue', 2)).toHaveLength(2)
  })

  it('of a request that can’t be read is one span, in a new trace when the client’s is none', async () => {
    const sluice = await start()
    const bad = { traceparent: '00-not-a-trace', tracestate: 'vendor=1' }
    await sluice.chat({ model: 'nope' }, bad).waitStatus(404)
    const [server] = await receiver.spansNamed(PATH)
    expect(server).toMatchObject({ parentSpanId: '', traceState: '', statusCode: 0 })
    expect(server?.attributes).toMatchObject({
      'http.response.status_code': 404,
      'sluice.reason': 'model_not_found',
    })
    expect(receiver.spans).toHaveLength(1)
  })

  it('that the client does not record is passed on and not exported', async () => {
    const sluice = await start()
    const client = sluice.chat({}, { traceparent: `00-${TRACE}-${CLIENT}-00` })
    const exchange = await sluice.engine.nextRequest()
    exchange.head().token().done()
    await client.waitComplete()
    await sluice.running.close()
    expect(exchange.request.headers.traceparent).toMatch(
      new RegExp(`^00-${TRACE}-(?!${CLIENT})[0-9a-f]{16}-00$`),
    )
    expect(receiver.spans).toEqual([])
  })

  it('is the client’s own business while nothing is exported', async () => {
    const sluice = await start({ OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' })
    const odd = { ...traced, traceparent: 'left as it is' }
    const client = sluice.chat({}, odd)
    const exchange = await sluice.engine.nextRequest()
    exchange.head().token().done()
    await client.waitComplete()
    expect(exchange.request.headers).toMatchObject(odd)
    expect(receiver.requests).toBe(0)
  })

  it('that is sampled by ratio is recorded by its id alone', async () => {
    const sluice = await start({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' })
    const client = sluice.chat({}, traced)
    const exchange = await sluice.engine.nextRequest()
    exchange.head().token().done()
    await client.waitComplete()
    expect(exchange.request.headers.traceparent).toMatch(/-00$/)
  })
})
