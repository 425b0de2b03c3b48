/** Frames of every make pass as they came and are accounted for alike. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Settlement } from '../../src/core/records.ts'
import { until } from '../support/deadline.ts'
import { type Rig, startRig } from '../support/edge-rig.ts'
import { type EngineScript, play } from '../support/engine-script.ts'
import type { RawClient } from '../support/raw-client.ts'
import { chatChunk } from '../support/scripted-engine.ts'
import type { ScriptedExchange } from '../support/scripted-exchange.ts'

let rig: Rig
beforeEach(async () => {
  rig = await startRig()
})
afterEach(() => rig.close())

/** Another rig, whose heartbeat comes soon. */
async function beatSoon(): Promise<void> {
  await rig.close()
  rig = await startRig({ settings: { timeouts: { heartbeatAfterMs: 60 } } })
}

const ASKS_USAGE = { stream_options: { include_usage: true } }

/** One request from offer to settlement. */
async function served(
  answer: EngineScript | ((exchange: ScriptedExchange) => void),
  fields: object = {},
): Promise<{ readonly client: RawClient; readonly settlement: Settlement }> {
  const count = rig.settlements.length
  const client = rig.chat(fields)
  const exchange = await rig.engine.nextRequest()
  if (typeof answer === 'function') answer(exchange)
  else play(answer)(exchange)
  await client.waitComplete()
  await rig.settled(count + 1)
  const settlement = rig.settlements[count]
  if (settlement === undefined) throw new Error('nothing was settled')
  return { client, settlement }
}

const accounts = ({ outcome, promptTokens, outputTokens, countedBy, verdict }: Settlement) => ({
  outcome,
  promptTokens,
  outputTokens,
  countedBy,
  verdict: verdict.kind,
})

describe('accounting', () => {
  it('is the same however a stream is cut, its bytes too', async () => {
    const plain = await served({}, ASKS_USAGE)
    expect(accounts(plain.settlement)).toMatchObject({
      outcome: 'completed',
      outputTokens: 3,
      countedBy: 'usage',
    })
    const cuts: EngineScript[] = [{ cut: 'bytes' }, { cut: [1, 300, 7] }, { together: true }]
    for (let size = 2; size < 200; size += 13) cuts.push({ cut: [size] })
    for (const script of cuts) {
      const { client, settlement } = await served(script, ASKS_USAGE)
      expect(client.text).toBe(plain.client.text)
      expect(accounts(settlement)).toEqual(accounts(plain.settlement))
    }
  })

  it.each<[string, EngineScript]>([
    ['CRLF', { style: { lineEnd: '\r\n' } }],
    ['CR', { style: { lineEnd: '\r' } }],
    ['data: without a space', { style: { space: '' } }],
    ['CRLF and no space', { style: { lineEnd: '\r\n', space: '' }, cut: [5] }],
    ['ids', { style: { ids: true } }],
    ['ids and CR', { style: { ids: true, lineEnd: '\r' }, cut: [7] }],
    ['an event name', { style: { event: 'message' } }],
    ['data over two lines', { style: { twoLines: true } }],
    [
      'all of it',
      { style: { lineEnd: '\r\n', space: '', ids: true, event: 'message', twoLines: true }, cut: [9] },
    ],
  ])('is the same for a stream with %s', async (_name, script) => {
    for (const usage of ['asked', 'none', 'continuous'] as const) {
      const plain = await served({ usage })
      const odd = await served({ ...script, usage })
      expect(accounts(odd.settlement)).toEqual(accounts(plain.settlement))
      expect(odd.client.text.includes('total_tokens')).toBe(usage === 'continuous')
    }
  })

  it('takes the first token for the first token, whatever came before it and however much comes after', async () => {
    let wroteAtMs = 0
    await beatSoon()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.head().comment().role().frame('{"choices":[]}').frame('{}', { event: 'tool.progress' })
    await client.waitText(': sluice\n')
    wroteAtMs = performance.now()
    exchange.token(' first')
    await client.waitText(' first')
    const seenAtMs = performance.now()
    exchange.tokens(20).finish().usage(8, 21).done()
    await client.waitComplete()
    await rig.settled()
    const { ttftMs = Number.NaN, offer } = rig.settlement
    expect(offer.receivedAtMs + ttftMs).toBeGreaterThanOrEqual(wroteAtMs)
    expect(offer.receivedAtMs + ttftMs).toBeLessThanOrEqual(seenAtMs)
  })
})

describe('a frame of many bytes', () => {
  it.each([64, 256, 4096])('passes at %i KiB and is counted', async (kib) => {
    const { client, settlement } = await served((exchange) => {
      exchange
        .head()
        .role()
        .token(' a')
        .huge(kib * 1024)
      exchange.token(' b').finish().usage(8, 40).done()
    })
    expect(client.body.length).toBeGreaterThan(kib * 1024)
    expect(client.text).toMatch(/" b"[\s\S]*\[DONE\]\n\n$/)
    expect(accounts(settlement)).toMatchObject({ outcome: 'completed', outputTokens: 40, countedBy: 'usage' })
    expect(settlement.oversizedFrames ?? 0).toBe(kib > 1024 ? 1 : 0)
  })

  it('passes as the first content, too', async () => {
    const { client, settlement } = await served((exchange) => {
      exchange
        .head()
        .huge(3 * 1024 * 1024)
        .done()
    })
    expect(client.body.length).toBeGreaterThan(3 * 1024 * 1024)
    expect(settlement).toMatchObject({ outcome: 'completed', outputTokens: 1, oversizedFrames: 1 })
  })
})

describe('a comment', () => {
  it('of the engine passes as a comment and is no token', async () => {
    const { client, settlement } = await served((exchange) => {
      exchange.head().comment(' PROCESSING').token(' a').comment(' PROCESSING').token(' b').done()
    })
    expect(client.text.match(/^: PROCESSING$/gm)).toHaveLength(2)
    expect(client.text).not.toContain('data: PROCESSING')
    expect(settlement).toMatchObject({ outcome: 'completed', outputTokens: 2, countedBy: 'events' })
  })

  it('of ours ends no event, not even for a decoder that emits empty ones once it has seen an id', async () => {
    await beatSoon()
    const client = rig.chat()
    const exchange = await rig.engine.nextRequest()
    exchange.style = { ids: true }
    exchange.head().role().token(' a')
    await client.waitText(' a')
    await until(() => (client.text.match(/: sluice/g)?.length ?? 0) >= 2, 'two heartbeats')
    exchange.token(' b').finish().done()
    await client.waitComplete()
    expect(eagerlyDecoded(client.text)).toEqual(['role', ' a', ' b', 'stop', '[DONE]'])
    await rig.settled()
  })
})

/** What each event says, by the rule of OpenAI's Python SDK: a blank line ends an event as soon as an id is known. */
function eagerlyDecoded(text: string): string[] {
  const said: string[] = []
  let data: string[] = []
  let idSeen = false
  for (const line of text.split('\n').slice(0, -1)) {
    if (line.startsWith('id:')) idSeen = true
    else if (line.startsWith('data: ')) data.push(line.slice(6))
    else if (line === '' && (data.length > 0 || idSeen)) {
      const payload = data.join('\n')
      data = []
      if (payload === '[DONE]') said.push(payload)
      else {
        const [choice] = (
          JSON.parse(payload) as { choices: { delta: Record<string, string>; finish_reason: string }[] }
        ).choices
        said.push(
          choice?.finish_reason ??
            (choice?.delta.role === undefined ? (choice?.delta.content ?? '') : 'role'),
        )
      }
    }
  }
  return said
}

describe('a frame that is no chunk', () => {
  const odd = [
    '{"choices":[]}',
    '{}',
    '{"choices":null}',
    '{"choices":[null]}',
    '{"choices":[{"delta":null}]}',
  ]
  const payloads = [...odd, 'null', '5', '"text"', '[]', 'not json', '{"usage":null}', '{"usage":"x"}', '']

  it('passes, before content and after, and is no token', async () => {
    const { client, settlement } = await served((exchange) => {
      exchange.head()
      for (const payload of payloads) exchange.frame(payload)
      exchange.token(' a')
      for (const payload of payloads) exchange.frame(payload)
      exchange.done()
    })
    expect(client.text.split('\n\n').filter((frame) => frame === 'data: not json')).toHaveLength(2)
    expect(settlement).toMatchObject({ outcome: 'completed', outputTokens: 1, countedBy: 'events' })
  })

  it('is no token when its event has another name, or when it speaks of content itself', async () => {
    const progress = { text: 'loading', content: 'loading' }
    const { client, settlement } = await served((exchange) => {
      exchange.head().frame(progress, { event: 'tool.progress' }).token(' a')
      exchange.frame(progress, { event: 'tool.progress' }).frame(progress)
      exchange.token(' b').done()
    })
    expect(client.text.match(/event: tool\.progress/g)).toHaveLength(2)
    expect(settlement).toMatchObject({ outcome: 'completed', outputTokens: 2, countedBy: 'events' })
  })
})

describe('an error event after content', () => {
  it.each<[string, (exchange: ScriptedExchange) => void, string]>([
    ['as a frame', (e) => e.error(500, 'worker died', 'WorkerError'), 'WorkerError'],
    [
      'by name',
      (e) => e.frame({ error: { message: 'worker died', type: 'WorkerError' } }, { event: 'error' }),
      'WorkerError',
    ],
    ['by name alone', (e) => e.frame('worker died', { event: 'error' }), 'error'],
    ['by name alone, without spaces', (e) => e.write('event:error\ndata:worker died\n\n'), 'error'],
    ['behind an id', (e) => e.frame('worker died', { event: 'error', ids: true }), 'error'],
    ["in TGI's shape", (e) => e.frame({ error: 'worker died', error_type: 'generation' }), 'generation'],
  ])('%s is passed on, fails the request and is recorded', async (_name, fail, type) => {
    const { client, settlement } = await served((exchange) => {
      exchange.head().role().tokens(3)
      fail(exchange)
      exchange.done()
    })
    expect(client.text).toContain('worker died')
    expect(settlement).toMatchObject({ outcome: 'truncated', engineError: type, verdict: { kind: 'bad' } })
    expect(rig.told).toEqual(['status'])
  })
})

describe('the usage frame', () => {
  it.each([
    ['says nothing of it', {}, false],
    ['refuses it', { stream_options: { include_usage: false } }, false],
    ['has no options', { stream_options: null }, false],
    ['asks for it', ASKS_USAGE, true],
    ['asks for it in the words of a lax parser', { stream_options: { include_usage: 'true' } }, true],
  ])('is there for a client that %s: %j → %s', async (_name, fields, wanted) => {
    const usage = { prompt_tokens: 8, completion_tokens: 3, total_tokens: 11 }
    const { client, settlement } = await served((exchange) => {
      exchange.head().delta({ role: 'assistant', content: '' }, { usage: null }).tokens(3).finish()
      exchange.frame({ ...chatChunk({}), choices: [], usage }).done()
    }, fields)
    expect(client.text.includes('"completion_tokens":3')).toBe(wanted)
    expect(client.text).toContain('"usage":null')
    expect(settlement).toMatchObject({ outputTokens: 3, countedBy: 'usage' })
  })

  it('is not put into every frame for a client that did not ask for usage at all', async () => {
    const client = rig.chat({ stream_options: { continuous_usage_stats: true } })
    const exchange = await rig.engine.nextRequest()
    expect(exchange.json.stream_options).toEqual({ include_usage: true, continuous_usage_stats: false })
    exchange.head().token().done()
    await client.waitComplete()
    await rig.settled()
  })
})
