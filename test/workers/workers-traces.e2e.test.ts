/** Traces of a Sluice with workers: ids and instants arise in workers, the spans in the process that decides. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../support/deadline.ts'
import { type OtlpReceiver, otlpReceiver } from '../support/otlp-receiver.ts'
import type { ScriptedExchange } from '../support/scripted-engine.ts'
import { CHAT, WorkersRig } from './workers-rig.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CLIENT = '00f067aa0ba902b7'
const traced = { traceparent: `00-${TRACE}-${CLIENT}-01`, tracestate: 'vendor=1' }
const SERVER = 'POST /v1/chat/completions'

let receiver: OtlpReceiver
let rig: WorkersRig
beforeEach(async () => {
  receiver = await otlpReceiver()
  rig = new WorkersRig()
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
    OTEL_BSP_SCHEDULE_DELAY: '1',
  }
  await rig.open({ engines: 2, env })
})
afterEach(async () => {
  await rig.close()
  await receiver.close()
})

const toldSpan = ({ request }: ScriptedExchange) => String(request.headers.traceparent).split('-')[2]

describe('with workers', { timeout: 60_000 }, () => {
  it('a rerouted stream is one trace with both attempts, timed by one clock', async () => {
    const beforeMs = Date.now()
    const client = rig.client().send({ body: CHAT, headers: traced })
    const first = await rig.nextExchange()
    first.reset()
    const second = await rig.nextExchange()
    second.head().role().tokens(3).finish().usage(12, 3).done()
    await client.waitComplete()
    const [server] = await receiver.spansNamed(SERVER)
    const attempts = await receiver.spansNamed('dispatch', 2)
    const [stream] = await receiver.spansNamed('stream')
    expect(server).toMatchObject({ traceId: TRACE, parentSpanId: CLIENT, traceState: 'vendor=1', kind: 2 })
    expect(server?.attributes).toMatchObject({
      'http.response.status_code': 200,
      'gen_ai.usage.output_tokens': 3,
      'sluice.verdict': 'admit',
      'sluice.attempts': 2,
    })
    expect(attempts.map(({ spanId }) => spanId)).toEqual([first, second].map(toldSpan))
    expect(attempts.map(({ attributes }) => attributes['sluice.gate'])).toEqual(['ok', 'ok'])
    const replicas = attempts.map(({ attributes }) => attributes['sluice.replica'])
    expect(new Set(replicas)).toEqual(new Set(['tiny-1', 'tiny-2']))
    expect(await receiver.spansNamed('queue', 2)).toHaveLength(2)
    const [one, two] = attempts
    const instants = [beforeMs - 1, server?.startMs, one?.startMs, one?.endMs, two?.startMs, stream?.startMs]
    const inOrder = [...instants, stream?.endMs, Date.now() + 1].map((atMs) => atMs ?? Number.NaN)
    expect(inOrder).toEqual([...inOrder].sort((a, b) => a - b))
    expect(await rig.logged('request')).toMatchObject({ trace_id: TRACE, span_id: server?.spanId })
  })

  it('a request that is refused at once is one span, whichever worker refuses it', async () => {
    for (let turn = 0; turn < 2; turn++)
      await rig
        .client()
        .send({ body: { ...CHAT, model: 'nope' }, headers: traced })
        .waitStatus(404)
    for (const span of await receiver.spansNamed(SERVER, 2))
      expect(span).toMatchObject({ traceId: TRACE, attributes: { 'sluice.reason': 'model_not_found' } })
    expect(receiver.spans).toHaveLength(2)
  })

  it('what a worker decided alone has its spans from the next decider', async () => {
    process.kill(rig.pidOf('decider'), 'SIGKILL')
    await rig.logged('decider_lost', 2)
    const client = rig.client().send({ body: CHAT, headers: traced })
    const exchange = await rig.nextExchange()
    exchange.head().role().tokens(2).finish().done()
    await client.waitComplete()
    await until(() => receiver.spans.length >= 5, 'its spans', 20_000)
    const [dispatch] = await receiver.spansNamed('dispatch')
    expect(dispatch).toMatchObject({ traceId: TRACE, spanId: toldSpan(exchange) })
    expect(dispatch?.attributes['sluice.replica']).toMatch(/^tiny-[12]$/)
    expect(dispatch?.attributes['sluice.gate']).toBeUndefined()
  })
})
