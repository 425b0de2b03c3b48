/** Whose fault an answer is, by status and words, for the shapes that real engines were seen to use. */
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/engines/adapter.ts'
import { saysDraining } from '../../src/engines/failures.ts'
import { vllm } from '../../src/engines/vllm.ts'
import { fixture, VLLM } from './captures.ts'

function classOf(status: number, body: string | Buffer): string {
  return vllm.classify(status, Buffer.from(body as string)).class
}

describe('classify', () => {
  it('knows the answers of a real vLLM', () => {
    const told: [number, string, string][] = [
      [503, 'queue-full-chat', 'full'],
      [503, 'queue-full-messages', 'full'],
      [503, 'queue-full-responses', 'full'],
      [503, 'tokencap-full', 'full'],
      [500, 'sigterm-drain20-new', 'draining'],
      [500, 'kill9-worker-new', 'engine_error'],
      [400, 'err-too-long-chat', 'client_error'],
      [404, 'err-unknown-model', 'client_error'],
      [404, 'not-found', 'client_error'],
      [200, 'chat', 'ok'],
    ]
    for (const [status, name, expected] of told) {
      expect(classOf(status, fixture(`${VLLM}/${name}.json`)), name).toBe(expected)
    }
  })

  it('takes a refused key for our fault, not the client’s', () => {
    expect(classOf(401, fixture(`${VLLM}/queue-err-no-key.json`))).toBe('engine_error')
  })

  it('needs no body, no JSON and no error in it', () => {
    expect(classOf(429, '')).toBe('full')
    expect(classOf(502, '<html>bad gateway</html>')).toBe('engine_error')
    expect(classOf(422, 'null')).toBe('client_error')
    expect(vllm.classify(502, Buffer.from('')).message).toBe('status 502')
  })

  it('lets the message be known for draining again', () => {
    const { message } = vllm.classify(500, fixture(`${VLLM}/sigterm-drain20-new.json`))
    expect(saysDraining(message)).toBe(true)
  })
})

describe('readWhole', () => {
  it('reads whole answers in each dialect', () => {
    const read = (dialect: Dialect, name: string) => vllm.readWhole(dialect, fixture(`${name}.json`))
    const counted = { outputTokens: expect.any(Number), promptTokens: expect.any(Number) }
    expect(read('openai', `${VLLM}/chat`)).toMatchObject({ usage: counted, finishReason: 'length' })
    expect(read('openai', `${VLLM}/completion`)).toMatchObject({ usage: counted, finishReason: 'length' })
    expect(read('anthropic', `${VLLM}/messages`)).toEqual({
      usage: { promptTokens: 13, outputTokens: 8, cachedTokens: 0 },
      finishReason: 'max_tokens',
    })
    expect(read('responses', `${VLLM}/responses`)).toMatchObject({
      usage: counted,
      finishReason: 'max_output_tokens',
    })
    expect(read('tgi', 'tgi-3.3.7/generate')).toEqual({ usage: { outputTokens: 5 }, finishReason: 'length' })
  })

  it.each(['not json', '[]', '{"usage":null,"choices":[{"finish_reason":null}]}'])(
    'finds nothing in %s',
    (text) => {
      expect(vllm.readWhole('openai', Buffer.from(text)).usage).toBeUndefined()
      expect(vllm.readWhole('openai', Buffer.from(text)).finishReason).toBeUndefined()
    },
  )
})
