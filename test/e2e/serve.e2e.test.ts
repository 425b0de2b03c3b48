/** The whole of Sluice as `serve` starts it: both ports, modes, reload, the SDK that people use. */
import OpenAI from 'openai'
import { afterEach, describe, expect, it } from 'vitest'
import { healthcheckCommand } from '../../src/cli/healthcheck.ts'
import { until } from '../support/deadline.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { type SluiceRig, type SluiceRigOptions, startSluiceRig } from '../support/sluice-rig.ts'

let rig: SluiceRig
const start = async (options: SluiceRigOptions = {}) => {
  rig = await startSluiceRig(options)
  return rig
}
afterEach(() => rig.close())

const adminJson = async (path: string) =>
  (await (await fetch(`${rig.adminUrl}${path}`)).json()) as Record<string, never>

describe('a whole Sluice', () => {
  it('serves a stream and accounts for it on the admin port', async () => {
    await start({ yaml: 'mode: enforce\nauth: none\ndefault_class: chat\n' })
    const client = rig.chat({}, { 'x-request-id': 'seen-1' })
    const exchange = await rig.engine.nextRequest()
    expect(exchange.json.model).toBe('org/tiny')
    exchange.head().role().tokens(3).finish().usage(12, 3).done()
    await client.waitComplete()
    expect(client.status).toBe(200)
    await until(() => rig.running.runtime.gate.counts.settled === 1, 'the settlement')
    const metrics = await (await fetch(`${rig.adminUrl}/metrics`)).text()
    expect(metrics).toMatch(/sluice_slo_events_total\{.*model="tiny".*\} 1/)
    expect(metrics).toMatch(/^sluice_client_connections 1$/m)
    expect(metrics).toMatch(/^sluice_upstream_connections\{replica="tiny-1"\} [1-9]$/m)
    expect(metrics).toMatch(/^sluice_buffered_bytes 0$/m)
    const { decisions } = await adminJson('/decisions?request_id=seen-1')
    expect(decisions).toMatchObject([{ request_id: 'seen-1', settlement: { outcome: 'completed' } }])
    const { replicas } = await adminJson('/replicas')
    expect(replicas).toMatchObject([{ name: 'tiny-1', state: 'live', ledger: { in_flight_requests: 0 } }])
  })

  it.each(['enforce', 'shadow', 'off'])('serves in mode %s', async (mode) => {
    await start({ yaml: `mode: ${mode}\nauth: none\n` })
    const client = rig.chat()
    ;(await rig.engine.nextRequest()).head().token().done()
    await client.waitComplete()
    expect(client.status).toBe(200)
    expect((await adminJson('/slo')).mode).toBe(mode)
  })

  it('answers healthcheck with 0 while it lives and with 1 when nothing is there', async () => {
    await start()
    const codes: number[] = []
    const terminal = {
      out: () => {},
      err: () => {},
      readStdin: async () => '',
      env: {},
      colors: false,
      exitWith: (code: number) => void codes.push(code),
    }
    const ask = (...args: string[]) => healthcheckCommand(terminal).parseAsync(args, { from: 'user' })
    await ask('--url', rig.adminUrl)
    await ask('--ready', '--url', rig.adminUrl)
    await ask('--url', 'http://127.0.0.1:1')
    expect(codes).toEqual([0, 0, 1])
  })

  it('watches over its promises until it drains', async () => {
    const clock = new ManualClock()
    await start({ clock })
    expect(clock.pending).toBe(2)
    await rig.running.drain()
    expect(clock.pending).toBe(0)
  })

  it('takes a changed file without touching what runs, and keeps the old one when the new one is bad', async () => {
    await start()
    const running = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().token(' one')
    await running.waitText(' one')
    await rig.rewrite('mode: enforce\nauth: none\nlimits: { body: 1KiB }\n')
    const good = await fetch(`${rig.adminUrl}/-/reload`, { method: 'POST' })
    expect(good.status).toBe(200)
    await rig.chat({ user: 'x'.repeat(2000) }).waitStatus(413)
    await rig.rewrite('mode: enforce\nauth: none\nlimits: { bdy: 1MiB }\n')
    const bad = await fetch(`${rig.adminUrl}/-/reload`, { method: 'POST' })
    expect(bad.status).toBe(422)
    await rig.chat({ user: 'x'.repeat(2000) }).waitStatus(413)
    exchange.token(' two').done()
    await running.waitComplete()
    expect(running.text).toContain(' two')
  })

  it('sheds what no replica is there for, with advice', async () => {
    await start({
      yaml: 'mode: enforce\nauth: none\ndefault_class: chat\nclasses: { chat: { ttft: 200ms } }\n',
    })
    rig.engine.resetAll()
    await rig.engine.close()
    await until(
      () => rig.running.runtime.fleet.reports().every(({ state }) => state !== 'live' && state !== 'ramping'),
      'the replica to be known as down',
      15_000,
    )
    const client = rig.chat()
    await client.waitComplete('an answer', 10_000)
    expect([429, 502, 503]).toContain(client.status)
    expect(client.headers['x-sluice-reason']).toBeDefined()
    expect((await fetch(`${rig.adminUrl}/readyz`)).status).toBe(503)
  })
})

describe('the OpenAI SDK', () => {
  const sdk = () => new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const messages = [{ role: 'user' as const, content: 'Hello' }]

  it('reads a stream through heartbeats and a reroute', async () => {
    await start({ engines: 2, yaml: 'mode: enforce\nauth: none\ntimeouts: { heartbeat_after: 1s }\n' })
    const streaming = sdk().chat.completions.create({ model: 'tiny', messages, stream: true })
    const requests = rig.engines.map((engine) => engine.nextRequest('a request', 10_000))
    const first = await Promise.race(requests)
    await new Promise((resolve) => setTimeout(resolve, 1300))
    first.reset()
    const second = (await Promise.all(requests)).find((exchange) => exchange !== first)
    if (second === undefined) throw new Error('the reroute went nowhere')
    second.head().role().token(' a').token(' b').finish().usage(3, 2).done()
    const texts: string[] = []
    for await (const chunk of await streaming) texts.push(chunk.choices[0]?.delta.content ?? '')
    expect(texts.join('')).toBe(' a b')
  })

  it('gets whole answers, errors with their status, and error events as errors', async () => {
    await start()
    const whole = sdk().chat.completions.create({ model: 'tiny', messages })
    ;(await rig.engine.nextRequest()).respondJson(200, {
      id: 'x',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
    })
    expect((await whole).choices[0]?.message.content).toBe('hi')

    await expect(sdk().chat.completions.create({ model: 'nope', messages })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    })

    const broken = sdk().chat.completions.create({ model: 'tiny', messages, stream: true })
    const exchange = await rig.engine.nextRequest()
    exchange.head().role().token(' a')
    const stream = await broken
    const read = (async () => {
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content === ' a') exchange.reset()
    })()
    await expect(read).rejects.toThrow(/tiny-1/)
  })

  it('lets go of its replica when its user aborts', async () => {
    await start()
    const streaming = sdk().chat.completions.create({ model: 'tiny', messages, stream: true })
    const exchange = await rig.engine.nextRequest()
    exchange.head().role().token(' a')
    const stream = await streaming
    for await (const _ of stream) break
    stream.controller.abort()
    await exchange.waitClosed()
    await until(() => rig.running.runtime.gate.inFlight === 0, 'the permit to come back')
  })
})
