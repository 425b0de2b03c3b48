/** The stream reader finds first token, count, usage and end in any cut of a stream. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createStreamReader } from '../../src/load/stream-reader.ts'

const role = 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
const token = (text: string) => `data: ${JSON.stringify({ choices: [{ delta: { content: text } }] })}\n\n`
const usage =
  'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}}}\n\n'
const done = 'data: [DONE]\n\n'

describe('stream reader', () => {
  it('takes the first generated token, not the role frame, as the first token', () => {
    const reader = createStreamReader()
    reader.feed(Buffer.from(role), 10)
    expect(reader.view.firstTokenAtMs).toBeUndefined()
    reader.feed(Buffer.from(token('a')), 20)
    reader.feed(Buffer.from(token('b')), 30)
    expect(reader.view).toMatchObject({
      firstTokenAtMs: 20,
      lastTokenAtMs: 30,
      contentEvents: 2,
      done: false,
    })
  })

  it.each([
    ['reasoning', '{"choices":[{"delta":{"reasoning":"hm"}}]}'],
    ['reasoning_content', '{"choices":[{"delta":{"reasoning_content":"hm"}}]}'],
    ['a tool call', '{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}'],
    ['a function call', '{"choices":[{"delta":{"function_call":{"name":"look"}}}]}'],
    ['a refusal', '{"choices":[{"delta":{"refusal":"no"}}]}'],
    ['completion text', '{"choices":[{"text":"x"}]}'],
  ])('counts %s as generated', (_name, frame) => {
    const reader = createStreamReader()
    reader.feed(Buffer.from(`data: ${frame}\n\n`), 5)
    expect(reader.view.contentEvents).toBe(1)
  })

  it.each([
    '{"choices":[]}',
    '{"choices":null}',
    '{"choices":[null]}',
    '{"choices":[{"delta":null}]}',
    '{"choices":[{"text":null,"delta":{"content":null,"tool_calls":[]}}]}',
    '{"object":"ping"}',
  ])('counts nothing in %s, and takes it for no fault', (frame) => {
    const reader = createStreamReader()
    reader.feed(Buffer.from(`data: ${frame}\n\n`), 5)
    expect(reader.view).toEqual({ contentEvents: 0, done: false, finished: false })
  })

  it('knows a generation that has said why it ended, until more of another choice comes', () => {
    const reader = createStreamReader()
    const finish = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    reader.feed(Buffer.from(token('a') + finish), 1)
    expect(reader.view.finished).toBe(true)
    reader.feed(Buffer.from(usage), 1)
    expect(reader.view.finished).toBe(true)
    reader.feed(Buffer.from(token('b')), 1)
    expect(reader.view.finished).toBe(false)
  })

  it('sees the same in any cut, with either line end', () => {
    const text = `: hello\n\n${role}${token('grüße')}${token('b')}${token('c')}${usage}${done}`
    const law = fc.property(fc.array(fc.nat(400), { maxLength: 12 }), fc.boolean(), (cuts, crlf) => {
      const bytes = Buffer.from(crlf ? text.replaceAll('\n', '\r\n') : text)
      const reader = createStreamReader()
      let from = 0
      for (const to of [...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length]) {
        reader.feed(bytes.subarray(from, to), 1)
        from = to
      }
      expect(reader.view).toEqual({
        firstTokenAtMs: 1,
        lastTokenAtMs: 1,
        contentEvents: 3,
        usage: { promptTokens: 7, outputTokens: 3, cachedTokens: 2 },
        done: true,
        finished: false,
      })
    })
    fc.assert(law)
  })

  it('keeps the first error of a stream, with its code', () => {
    const reader = createStreamReader()
    reader.feed(Buffer.from('data: {"error":{"message":"busy","code":503}}\n\ndata: nonsense\n\n'), 1)
    expect(reader.view.error).toEqual({ code: 503, message: 'busy' })
  })
})
