/** Laws of the body splice: means the same as an edit of the parsed value, and leaves every other byte alone. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BodyEdits } from '../../src/engines/adapter.ts'
import { spliceBody } from '../../src/engines/splice.ts'

const KEYS = ['model', 'stream_options', 'priority', 'messages', 'a"b', 'q\\', 'ключ', '']
const anyKey = fc
  .oneof(fc.constantFrom(...KEYS), fc.string({ maxLength: 6 }))
  .filter((key) => key !== '__proto__')
const anyText = fc.oneof(fc.string(), fc.constantFrom('"', '\\', '\\"', '{"model":"x"}', '],}', '\u2028😀'))
const anyValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    anyText,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(true, false, null, 0, -1.5e-7, 1e21),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyKey, tie('value'), { maxKeys: 4 }),
  ),
})).value
const anyMembers = fc.array(fc.tuple(anyKey, anyValue), { maxLength: 8 })
const anySpace = fc.constantFrom('', ' ', '\n', '\t', '\r\n  ')
const anyEdits = fc.dictionary(anyKey, fc.option(anyValue, { nil: undefined }), { maxKeys: 4 })

/** JSON text with repeated keys, odd spaces and escaped keys, as clients may send it. */
function render(
  members: readonly (readonly [string, unknown])[],
  space: string,
  escapeKeys: boolean,
): string {
  const key = (text: string): string =>
    escapeKeys && /^[a-z]/.test(text)
      ? `"\\u00${text.charCodeAt(0).toString(16)}${JSON.stringify(text.slice(1)).slice(1)}`
      : JSON.stringify(text)
  const body = members.map(
    ([name, value]) =>
      `${space}${key(name)}${space}:${space}${JSON.stringify(value, null, space === '' ? 0 : 1)}${space}`,
  )
  return `${space}{${body.join(',')}${members.length === 0 ? space : ''}}${space}`
}
function edit(value: Record<string, unknown>, edits: BodyEdits): Record<string, unknown> {
  const out = { ...value }
  for (const [key, text] of Object.entries(edits)) {
    if (text === undefined) delete out[key]
    else out[key] = JSON.parse(text)
  }
  return out
}
function texts(edits: Readonly<Record<string, unknown>>): BodyEdits {
  return Object.fromEntries(
    Object.entries(edits).map(([key, value]) => [
      key,
      value === undefined ? undefined : JSON.stringify(value),
    ]),
  )
}
function spliced(body: string, edits: BodyEdits): string {
  return Buffer.concat(spliceBody(Buffer.from(body), edits)).toString('utf8')
}

describe('spliceBody', () => {
  it('means what the same edit of the parsed body means', () => {
    fc.assert(
      fc.property(anyMembers, anySpace, fc.boolean(), anyEdits, (members, space, escapeKeys, raw) => {
        const body = render(members, space, escapeKeys)
        const edits = texts(raw)
        expect(JSON.parse(spliced(body, edits))).toEqual(
          edit(JSON.parse(body) as Record<string, unknown>, edits),
        )
      }),
      { numRuns: 600 },
    )
  })

  it('hands on slices of the very bytes it was given, in order, and between them the new texts alone', () => {
    fc.assert(
      fc.property(anyMembers, anySpace, anyEdits, (members, space, raw) => {
        // In memory of its own, so that slices can be told from new buffers.
        const body = Buffer.from(new TextEncoder().encode(render(members, space, false)).slice().buffer)
        const edits = texts(raw)
        const repeats = Math.max(1, members.length)
        const longest = Object.entries(edits).map(([key, text]) =>
          text === undefined ? '' : `${JSON.stringify(key)}:${text},`,
        )
        let at = 0
        let added = 0
        for (const piece of spliceBody(body, edits)) {
          if (piece.buffer === body.buffer) {
            expect(piece.byteOffset).toBeGreaterThanOrEqual(at)
            at = piece.byteOffset + piece.length
          } else added += piece.length
        }
        expect(added).toBeLessThanOrEqual(Buffer.byteLength(longest.join('')) * repeats)
      }),
    )
  })

  it('changes every occurrence of a repeated key', () => {
    expect(spliced('{"model":"a","x":1,"mod\\u0065l":"b"}', { model: '"c"' })).toBe(
      '{"model":"c","x":1,"mod\\u0065l":"c"}',
    )
    expect(spliced('{"priority":1,"x":1,"priority":2}', { priority: undefined })).toBe('{"x":1}')
  })

  it('leaves all else as it was written', () => {
    const body = '{ "temperature" : 1.0, "model":"m" ,"big":12345678901234567890,"text":"\\u00e9\\/" }\n'
    expect(spliced(body, { model: '"n"', stream_options: '{"include_usage":true}' })).toBe(
      '{"stream_options":{"include_usage":true}, "temperature" : 1.0, "model":"n" ,"big":12345678901234567890,"text":"\\u00e9\\/" }\n',
    )
  })

  it('gives back the same bytes when there is nothing to change', () => {
    const body = Buffer.from('{"a":1}')
    expect(spliceBody(body, {})).toEqual([body])
    expect(spliceBody(body, { b: undefined })[0]).toBe(body)
  })

  it('refuses what is no object', () => {
    for (const text of ['[]', '5', '', '{"a" 1}', '{"a":', '{"a":"x', '{a:1}', '{"a":,"b":1}']) {
      expect(() => spliced(text, { model: '1' }), text).toThrow(RangeError)
    }
  })
})
