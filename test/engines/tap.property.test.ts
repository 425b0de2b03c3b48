/** Laws of the tap over captured streams, cut anywhere, with any line ends. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTap } from '../../src/engines/tap.ts'
import { type Capture, captures, cutAt, runTap } from './captures.ts'

const all = captures()
const anyCapture = fc.constantFrom(...all)
const anyCuts = fc.array(fc.nat({ max: 1 << 20 }), { maxLength: 60 })
const anyLineEnd = fc.constantFrom('\n', '\r\n', '\r')
/** Where comments are put between frames, and which. */
const anyComments = fc.array(fc.nat({ max: 40 }), { maxLength: 4 })

function withLineEnds(bytes: Buffer, lineEnd: string): Buffer {
  return Buffer.from(bytes.toString('latin1').replaceAll('\n', lineEnd), 'latin1')
}

function withComments(bytes: Buffer, places: readonly number[], lineEnd: string): Buffer {
  const end = lineEnd + lineEnd
  const frames = bytes.toString('latin1').split(end)
  for (const place of places) frames.splice(place % frames.length, 0, ': keep-alive')
  return Buffer.from(frames.join(end), 'latin1')
}

function variant(capture: Capture, lineEnd: string, comments: readonly number[]): Buffer {
  return withComments(withLineEnds(capture.bytes, lineEnd), comments, lineEnd)
}

/** The same stream without its usage-only frame, by a plain reading that knows nothing of cuts. */
function withoutUsageFrame(bytes: Buffer, lineEnd: string): Buffer {
  const end = lineEnd + lineEnd
  const frames = bytes.toString('latin1').split(end)
  return Buffer.from(frames.filter((frame) => !isUsageOnly(frame)).join(end), 'latin1')
}

function isUsageOnly(frame: string): boolean {
  const data = /^data: ?(\{.*\})$/s.exec(frame)?.[1]
  if (data === undefined) return false
  const value = JSON.parse(data) as { choices?: unknown[]; usage?: unknown }
  return (
    Array.isArray(value.choices) &&
    value.choices.length === 0 &&
    typeof value.usage === 'object' &&
    value.usage !== null
  )
}

describe('a tap', () => {
  it('passes the very bytes and sees the same whatever the cut, the line ends and the comments', () => {
    fc.assert(
      fc.property(anyCapture, anyLineEnd, anyComments, anyCuts, (capture, lineEnd, comments, cuts) => {
        const bytes = variant(capture, lineEnd, comments)
        const options = { dialect: capture.dialect, stripUsage: false }
        const { out: whole, ...plain } = runTap(createTap(options), [capture.bytes])
        const { out, ...seen } = runTap(createTap(options), cutAt(bytes, cuts))
        expect(whole.equals(capture.bytes)).toBe(true)
        expect(out.equals(bytes)).toBe(true)
        expect(seen).toEqual(plain)
      }),
      { numRuns: 250 },
    )
  })

  it('takes out exactly the usage frame, whatever the cut, the line ends and the comments', () => {
    fc.assert(
      fc.property(anyCapture, anyLineEnd, anyComments, anyCuts, (capture, lineEnd, comments, cuts) => {
        const bytes = variant(capture, lineEnd, comments)
        const { out, ...seen } = runTap(
          createTap({ dialect: capture.dialect, stripUsage: true }),
          cutAt(bytes, cuts),
        )
        const { out: _out, ...plain } = runTap(createTap({ dialect: capture.dialect, stripUsage: false }), [
          capture.bytes,
        ])
        expect(out.toString('latin1')).toBe(withoutUsageFrame(bytes, lineEnd).toString('latin1'))
        expect(seen).toEqual(plain)
      }),
      { numRuns: 250 },
    )
  })

  it('keeps both laws at every pair of cuts of a short stream', () => {
    const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}'
    const frames = ['data: {"choices":[{"text":"a"}]}', ': hi', usage, 'data: [DONE]', '']
    for (const lineEnd of ['\n', '\r\n', '\r']) {
      const bytes = Buffer.from(frames.join(lineEnd + lineEnd))
      const stripped = frames.filter((frame) => frame !== usage).join(lineEnd + lineEnd)
      for (let first = 0; first <= bytes.length; first += 1) {
        for (let second = first; second <= bytes.length; second += first % 5 === 0 ? 1 : 7) {
          const pieces = cutAt(bytes, [first, second])
          for (const stripUsage of [false, true]) {
            const seen = runTap(createTap({ dialect: 'openai', stripUsage }), pieces)
            if (seen.out.toString() !== (stripUsage ? stripped : bytes.toString())) {
              expect.fail(
                `cut at ${first} and ${second} with ${JSON.stringify(lineEnd)}: ${seen.out.toString()}`,
              )
            }
            expect([seen.contentEvents, seen.done, seen.usage?.outputTokens]).toEqual([1, true, 2])
          }
        }
      }
    }
  })

  it('says truly when a comment may be put between frames', () => {
    fc.assert(
      fc.property(anyCapture, fc.boolean(), anyLineEnd, anyCuts, (capture, stripUsage, lineEnd, cuts) => {
        const bytes = withLineEnds(capture.bytes, lineEnd)
        const tap = createTap({ dialect: capture.dialect, stripUsage })
        const passed: Uint8Array[] = []
        for (const piece of cutAt(bytes, cuts)) {
          passed.push(...tap.feed(piece).pass)
          if (!tap.betweenFrames) continue
          const text = Buffer.concat(passed).toString('latin1')
          expect(text === '' || text.endsWith(lineEnd + lineEnd)).toBe(true)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('hands back the same buffer when whole frames came and none was taken out', () => {
    for (const stripUsage of [false, true]) {
      const piece = Buffer.from('data: {"choices":[{"delta":{"content":"hi"}}]}\n\n')
      const { pass } = createTap({ dialect: 'openai', stripUsage }).feed(piece)
      expect(pass).toHaveLength(1)
      expect(pass[0]).toBe(piece)
    }
  })

  it('passes the LF of a CRLF that was cut in two at once', () => {
    const tap = createTap({ dialect: 'openai', stripUsage: true })
    tap.feed(Buffer.from('data: {"choices":[{"delta":{"content":"hi"}}]}\r\n\r'))
    expect(tap.betweenFrames).toBe(false)
    expect(Buffer.concat(tap.feed(Buffer.from('\n')).pass).toString()).toBe('\n')
    expect(tap.betweenFrames).toBe(true)
  })

  it('survives any bytes, and passes them', () => {
    const anyBytes = fc.array(
      fc.oneof(
        fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
        fc
          .constantFrom(
            'data: null\n\n',
            'data: 5\n\n',
            'data:{\n\n',
            '\r\n\r\n',
            '\n',
            '\r',
            'data: {"choices":null}\n\n',
            'event: error\n',
          )
          .map((text) => Buffer.from(text)),
      ),
      { maxLength: 12 },
    )
    const anyDialect = fc.constantFrom('openai', 'responses', 'anthropic', 'tgi')
    fc.assert(
      fc.property(anyBytes, anyDialect, fc.boolean(), (pieces, dialect, stripUsage) => {
        const { out } = runTap(createTap({ dialect, stripUsage, frameCapBytes: 64 }), pieces)
        expect(out.equals(Buffer.concat(pieces))).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})
