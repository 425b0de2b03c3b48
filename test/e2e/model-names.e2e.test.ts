/** The names of a model: what clients ask for, what engines know, and which of them an answer has. */
import { afterEach, describe, expect, it } from 'vitest'
import { type Rig, startRig } from '../support/edge-rig.ts'

let rig: Rig
afterEach(() => rig.close())

const model = { name: 'tiny', aliases: ['default'], servedName: 'org/tiny-8b', adapters: ['lora-a'] }

async function start(renameAnswers: boolean): Promise<void> {
  rig = await startRig({ settings: { models: [{ ...model, renameAnswers }] } })
}

/** What the engine answers with, whatever it was asked for. */
const chunk = (content: string): object => ({
  object: 'chat.completion.chunk',
  model: 'org/tiny-8b',
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
})
const PHRASE = 'it says "model":"org/tiny-8b" itself'

async function streamed(asked: string, cut: 'whole' | 'bytes' = 'whole'): Promise<string> {
  const client = rig.chat({ model: asked })
  const exchange = await rig.engine.nextRequest()
  expect(exchange.json.model).toBe(asked === 'lora-a' ? 'lora-a' : 'org/tiny-8b')
  exchange.cut = cut
  exchange.head().frame(chunk('one')).frame(chunk(PHRASE)).usage(3, 2).done()
  await client.waitComplete()
  return client.text
}

describe('an answer under another name than was asked for', () => {
  it.each(['tiny', 'default', 'lora-a'])(
    'has the asked name %s in every chunk when that is wanted',
    async (asked) => {
      await start(true)
      for (const cut of ['whole', 'bytes'] as const) {
        const frames = (await streamed(asked, cut)).trim().split('\n\n').slice(0, -1)
        const chunks = frames.map((frame) => JSON.parse(frame.slice(6)))
        expect(chunks.map((one) => one.model)).toEqual([asked, asked])
        expect(chunks[1].choices[0].delta.content).toBe(PHRASE)
      }
    },
  )

  it('keeps what the engine wrote, byte by byte, when it is not', async () => {
    await start(false)
    const frame = (content: string) => `data: ${JSON.stringify(chunk(content))}\n\n`
    expect(await streamed('default')).toBe(`${frame('one')}${frame(PHRASE)}data: [DONE]\n\n`)
  })

  it.each([100, 1_500_000])('is renamed as a whole of %i characters, with its own length', async (length) => {
    await start(true)
    const client = rig.chat({ model: 'default', stream: false })
    const message = { role: 'assistant', content: 'x'.repeat(length) }
    const answer = { model: 'org/tiny-8b', choices: [{ index: 0, message }], usage: { completion_tokens: 4 } }
    ;(await rig.engine.nextRequest()).respondJson(200, answer)
    await client.waitComplete()
    expect(client.json).toEqual({ ...answer, model: 'default' })
    const { 'content-length': told, 'transfer-encoding': framing } = client.headers
    expect(told === undefined ? framing : Number(told)).toBe(
      told === undefined ? 'chunked' : client.body.length,
    )
  })
})

describe('a model that nobody serves', () => {
  it.each([
    [
      '/v1/chat/completions',
      { error: { code: 'model_not_found', message: expect.stringContaining('gpt-9') } },
    ],
    ['/v1/messages', { type: 'error', error: { type: 'not_found_error' } }],
    ['/v1/responses', { error: { code: 'model_not_found' } }],
  ])('is a 404 in the words of %s', async (path, words) => {
    await start(false)
    const client = rig.client().send({ path, body: { model: 'gpt-9', messages: [], input: '' } })
    await client.waitStatus(404)
    expect(client.json).toMatchObject(words)
    expect(rig.engine.requests).toEqual([])
  })
})
