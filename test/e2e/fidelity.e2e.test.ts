/** What an engine sends is what the client gets, however it was cut, ended or decorated. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Rig, startRig } from '../support/edge-rig.ts'
import { chatChunk } from '../support/scripted-engine.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig()
})
afterAll(() => rig.close())

const anyPayload = fc.oneof(
  fc.string({ maxLength: 40 }).map((content) => JSON.stringify(chatChunk({ content }))),
  fc.string({ maxLength: 40 }).map((content) => JSON.stringify(chatChunk({ reasoning_content: content }))),
  fc.constantFrom('{"choices":[]}', '{"choices":null}', 'null', '5', 'not json', '{"object":"odd"}'),
)
const anyFrame = (end: string) =>
  fc.oneof(
    { weight: 6, arbitrary: anyPayload.map((payload) => `data: ${payload}${end}${end}`) },
    { weight: 1, arbitrary: anyPayload.map((payload) => `data:${payload}${end}${end}`) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        `: keep-alive${end}${end}`,
        `event: tool.progress${end}data: {}${end}${end}`,
      ),
    },
  )
const anyStream = fc.constantFrom('\n', '\r\n').chain((end) =>
  fc.array(anyFrame(end), { maxLength: 12 }).map((frames) => {
    const token = `data: ${JSON.stringify(chatChunk({ content: 'x' }))}${end}${end}`
    return `${token}${frames.join('')}data: [DONE]${end}${end}`
  }),
)
const anyCut = fc.oneof(
  fc.constant('whole' as const),
  fc.array(fc.integer({ min: 1, max: 97 }), { minLength: 1, maxLength: 5 }),
)

it('passes any stream on byte by byte, with and without the usage frame that it asks for itself', async () => {
  const law = fc.asyncProperty(anyStream, anyCut, fc.boolean(), async (stream, cut, usageAsked) => {
    const before = rig.settlements.length
    const client = rig.chat(usageAsked ? { stream_options: { include_usage: true } } : {}, {
      connection: 'close',
    })
    const exchange = await rig.engine.nextRequest()
    const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } })}\n\n`
    const at = stream.indexOf('data: [DONE]')
    exchange.cut = cut
    exchange
      .head()
      .write(`${stream.slice(0, at)}${usage}${stream.slice(at)}`)
      .end()
    await client.waitEnded('the stream to end')
    const wanted = usageAsked ? `${stream.slice(0, at)}${usage}${stream.slice(at)}` : stream
    expect(client.text).toBe(wanted)
    expect(client.complete).toBe(true)
    await rig.settled(before + 1)
    expect(rig.settlements.at(-1)?.outcome).toBe('completed')
  })
  await fc.assert(law, { numRuns: 40 })
})
