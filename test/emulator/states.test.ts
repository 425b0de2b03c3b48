/** The states that a real server shows: full, draining, asleep, crashed, stopped, killed, left by its clients. */
import { afterEach, describe, expect, it } from 'vitest'
import { type EngineServerOptions, type RunningEngine, startEngine } from '../../src/emulator/start.ts'
import { vllm } from '../../src/engines/vllm.ts'
import { until, within } from '../support/deadline.ts'
import { RawClient } from '../support/raw-client.ts'

const engines: RunningEngine[] = []
const clients: RawClient[] = []

async function start(options: Partial<EngineServerOptions> = {}): Promise<RunningEngine> {
  const engine = await startEngine({ profile: 'demo/slow', speed: 10, ...options })
  engines.push(engine)
  return engine
}

function post(engine: RunningEngine, body: object, path = '/v1/completions'): RawClient {
  const client = new RawClient(engine.port)
  clients.push(client)
  return client.send({ path, body: { prompt: 'the river bends', ignore_eos: true, ...body } })
}

function get(engine: RunningEngine, path: string): Promise<RawClient> {
  const client = new RawClient(engine.port)
  clients.push(client)
  return client.send({ method: 'GET', path }).waitComplete(`GET ${path}`)
}

afterEach(async () => {
  for (const client of clients.splice(0)) client.leave()
  for (const engine of engines.splice(0)) {
    await within(engine.close(), 'the engine to close')
    expect(engine.openRequests()).toBe(0)
  }
})

describe('a client that leaves', () => {
  it('frees its place in every phase', async () => {
    const engine = await start({ maxNumSeqs: 1 })
    const streaming = post(engine, { stream: true, max_tokens: 8000 })
    await streaming.waitText('"text"')
    const queued = post(engine, { stream: true, max_tokens: 8000 })
    await queued.waitStatus(200)
    const whole = post(engine, { max_tokens: 8000 })
    await until(() => engine.openRequests() === 3, 'three requests to be open')
    queued.leave()
    await until(() => engine.openRequests() === 2, 'the queued one to go')
    whole.leave()
    await until(() => engine.openRequests() === 1, 'the whole one to go')
    streaming.leave()
    await until(() => engine.openRequests() === 0, 'the streaming one to go')
    await until(() => engine.gauges().runningSequences === 0, 'the batch to be empty')
  })
})

describe('full', () => {
  it('refuses by status, and inside the stream what slipped through a burst', async () => {
    const engine = await start({ maxNumQueuedReqs: 4 })
    const burst = Array.from({ length: 24 }, () => post(engine, { stream: true, max_tokens: 200 }))
    await until(() => burst.every((client) => client.status !== 0), 'every answer to begin')
    await until(
      () =>
        burst.filter((client) => client.text.includes('"code":503') || client.text.includes('"code": 503'))
          .length === 20,
      'twenty refusals',
    )
    for (const client of burst) {
      if (!client.text.includes('Service Unavailable')) continue
      if (client.status === 200) expect(client.text.endsWith('data: [DONE]\n\n')).toBe(true)
      else expect(client.status).toBe(503)
    }
    const page = (await get(engine, '/metrics')).text
    expect(page).toContain('reason="max_num_queued_reqs"} 20.0')
    expect((await get(engine, '/health')).status).toBe(200)
  })
})

describe('draining', () => {
  it('finishes streams, refuses new ones with 500, stays healthy, then closes', async () => {
    const engine = await start()
    const running = post(engine, { stream: true, max_tokens: 40 })
    await running.waitText('"text"')
    const drained = engine.drain()
    const late = await post(engine, { max_tokens: 1 }).waitComplete()
    expect([late.status, late.text]).toEqual([
      500,
      '{"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError","param":null,"code":500}}',
    ])
    expect((await get(engine, '/health')).status).toBe(200)
    await running.waitComplete()
    expect(running.text.match(/"text"/g)).toHaveLength(40)
    clients.map((client) => client.leave())
    await within(drained, 'the drain')
    await expect(get(engine, '/health')).rejects.toThrow()
  })
})

describe('asleep', () => {
  it('stands still, sends nobody a byte, and goes on where it was', async () => {
    const engine = await start()
    const running = post(engine, { stream: true, max_tokens: 30 })
    await running.waitText('"text"')
    engine.sleep()
    const held = post(engine, { stream: true, max_tokens: 3 })
    const page = (await get(engine, '/metrics')).text
    const bytes = running.receivedBytes
    expect(vllm.parseLoad(page)?.asleep).toBe(true)
    expect((await get(engine, '/health')).status).toBe(200)
    expect([running.receivedBytes, held.receivedBytes]).toEqual([bytes, 0])
    engine.wake()
    await running.waitComplete()
    await held.waitComplete()
    expect(running.text.match(/"text"/g)).toHaveLength(30)
  })

  it('forgets who left meanwhile', async () => {
    const engine = await start()
    engine.sleep()
    const held = await post(engine, { max_tokens: 3 }).connected()
    await get(engine, '/health')
    held.leave()
    engine.wake()
    await get(engine, '/health')
    expect(engine.openRequests()).toBe(0)
  })
})

describe('crashed', () => {
  it('ends streams with an error event, answers 500 for a moment, then closes its port', async () => {
    const engine = await start({ crashLingerMs: 400 })
    const running = post(engine, { stream: true, max_tokens: 4000 })
    const whole = post(engine, { max_tokens: 4000 })
    await running.waitText('"text"')
    await until(() => engine.openRequests() === 2, 'both to be open')
    const crashed = engine.crash()
    await running.waitComplete()
    expect(running.text).toMatch(
      /data: \{"error": \{"message": "EngineCore .*"code": 500\}\}\n\ndata: \[DONE\]\n\n$/,
    )
    await whole.waitStatus(500)
    await post(engine, { max_tokens: 1 }).waitStatus(500)
    await within(crashed, 'the end of the crash')
    await expect(get(engine, '/health')).rejects.toThrow()
  })
})

describe('stopped', () => {
  it('closes its port and leaves open streams silent', async () => {
    const engine = await start()
    const running = post(engine, { stream: true, max_tokens: 4000 })
    await running.waitText('"text"')
    engine.stopSilently()
    await expect(get(engine, '/health')).rejects.toThrow()
    const bytes = running.receivedBytes
    await expect(get(engine, '/health')).rejects.toThrow()
    expect([running.ended, running.receivedBytes]).toEqual([false, bytes])
  })
})

describe('killed', () => {
  it('resets its connections, and its port can be taken again', async () => {
    const engine = await start()
    const running = post(engine, { stream: true, max_tokens: 4000 })
    await running.waitText('"text"')
    await engine.kill()
    await running.waitEnded()
    expect(running.complete).toBe(false)
    const again = await start({ port: engine.port })
    expect((await get(again, '/health')).status).toBe(200)
  })
})

describe('options', () => {
  it('that make no sense are refused', async () => {
    await expect(startEngine({ profile: 'nope' })).rejects.toThrow(/unknown profile "nope"/)
    await expect(startEngine({ profile: 'demo/slow', speed: 0 })).rejects.toThrow(/speed must be above 0/)
    const engine = await start()
    await expect(startEngine({ profile: 'demo/slow', port: engine.port })).rejects.toThrow(/EADDRINUSE/)
  })

  it('give the same answer lengths for the same seed', async () => {
    const lengths = async (seed: number) => {
      const engine = await start({ seed, speed: 50 })
      const usage: unknown[] = []
      for (let at = 0; at < 4; at++) {
        const client = await post(engine, { max_tokens: 60, ignore_eos: false }).waitComplete()
        usage.push((client.json.usage as Record<string, unknown>).completion_tokens)
      }
      return usage
    }
    const once = await lengths(5)
    expect(await lengths(5)).toEqual(once)
    expect(await lengths(6)).not.toEqual(once)
  })
})
