/** What the log is told of an exchange, whatever way it ended: status, finish reason, trace. */
import { afterEach, describe, expect, it } from 'vitest'
import { createLeastOutstanding } from '../../src/policies/plain/least-outstanding.ts'
import { createConcurrencyLimit } from '../../src/policies/rivals/concurrency-limit.ts'
import { until } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'

let rig: Rig
afterEach(() => rig.close())

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const traced = { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` }

describe('the log is told', () => {
  it('the reason of the engine and the trace of the client, for streams and whole answers', async () => {
    rig = await startRig()
    const streaming = rig.chat({}, traced)
    ;(await rig.engine.nextRequest()).head().tokens(2).finish('length').done()
    await streaming.waitComplete()
    const whole = rig.chat({ stream: false })
    const choices = [{ message: { content: 'hi' }, finish_reason: 'stop' }]
    ;(await rig.engine.nextRequest()).respondJson(200, { choices })
    await whole.waitComplete()
    await rig.settled(2)
    expect(rig.exchanges).toEqual([
      { status: 200, finishReason: 'length', traceId: TRACE },
      { status: 200, finishReason: 'stop', traceId: undefined },
    ])
  })

  it('the status that the client got, be the refusal ours or the engine’s', async () => {
    rig = await startRig({ scheduler: createConcurrencyLimit({ maxInFlight: 1, queueMs: 0 }) })
    const invalid = rig.chat()
    const exchange = await rig.engine.nextRequest()
    await rig.chat({}, traced).waitStatus(429)
    exchange.respondJson(400, { error: { message: 'no', type: 'BadRequestError', code: 400 } })
    await invalid.waitStatus(400)
    await rig.settled(2)
    expect(rig.exchanges.map(({ status }) => status)).toEqual([429, 400])
    expect(rig.exchanges[0]?.traceId).toBe(TRACE)
  })

  it('no status when the client left before the first byte, and 200 after a heartbeat', async () => {
    rig = await startRig({ settings: { timeouts: { heartbeatAfterMs: 50 } } })
    const quick = rig.chat({ stream: false })
    await rig.engine.nextRequest()
    quick.leave()
    await rig.settled(1)
    const patient = rig.chat()
    await rig.engine.nextRequest()
    await patient.waitText(': sluice\n')
    patient.leave()
    await rig.settled(2)
    expect(rig.exchanges.map(({ status }) => status)).toEqual([undefined, 200])
  })

  it('nothing when the gate fails at the end, and no story stays open', async () => {
    const scheduler = createLeastOutstanding()
    const settled = () => {
      throw new Error('broken')
    }
    rig = await startRig({ scheduler: { ...scheduler, settled } })
    const client = rig.chat()
    ;(await rig.engine.nextRequest()).head().token().done()
    await client.waitComplete()
    await until(() => rig.edge.underWay === 0, 'the story to be closed')
    expect(rig.faults.splice(0).map(String)).toEqual(['Error: broken'])
  })
})
