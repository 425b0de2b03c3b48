/** Answers read off a socket: the same however they are cut, and refused where two parsers could disagree. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ResponseHead, UnreadableAnswer } from '../../src/upstream/response-head.ts'
import { HEAD_BYTES, ResponseReader } from '../../src/upstream/response-reader.ts'
import { anyMutations, FUZZ, mutated } from '../support/mutations.ts'

interface Read {
  heads: ResponseHead[]
  body: string
  ends: boolean[]
  error: string | undefined
}

/** Feeds the pieces and, with `eof`, the end of the socket. */
function read(pieces: readonly (string | Buffer)[], eof = false): Read {
  const told: Read = { heads: [], body: '', ends: [], error: undefined }
  const reader = new ResponseReader({
    onHead: (head) => void told.heads.push(head),
    onBody: (bytes) => {
      expect(bytes.length).toBeGreaterThan(0)
      told.body += bytes.toString('latin1')
    },
    onEnd: (clean) => void told.ends.push(clean),
  })
  reader.begin()
  try {
    for (const piece of pieces) reader.feed(Buffer.from(piece as string, 'latin1'))
    if (eof) reader.ended()
  } catch (error) {
    expect(error).toBeInstanceOf(UnreadableAnswer)
    told.error = (error as Error).message
  }
  return told
}

const OK = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`
const STREAM = `${CHUNKED}5;name="v"\r\nhello\r\n00A\r\n0123456789\r\n0\r\nx-sum: 1\r\n\r\n`

describe('an answer', () => {
  it.each<[string, string, boolean, string]>([
    ['in chunks, with extensions and trailers', STREAM, false, 'hello0123456789'],
    ['in no chunk at all', `${CHUNKED}0\r\n\r\n`, false, ''],
    ['with a length', `${OK}content-length: 5\r\n\r\nhello`, false, 'hello'],
    ['with a length of nothing', `${OK}content-length: 0\r\n\r\n`, false, ''],
    ['that ends with its socket', `${OK}\r\nhello`, true, 'hello'],
    ['without a reason', 'HTTP/1.1 200\r\ncontent-length: 1\r\n\r\nx', false, 'x'],
    ['without a body', 'HTTP/1.1 204 No Content\r\ncontent-length: 7\r\n\r\n', false, ''],
    [
      'behind interim ones',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\na: b\r\n\r\n${STREAM}`,
      false,
      'hello0123456789',
    ],
  ])('%s is read once, however it is cut', (_name, text, eof, body) => {
    const whole = read([text], eof)
    expect(whole).toMatchObject({ body, error: undefined, ends: [!eof] })
    expect(whole.heads).toHaveLength(1)
    for (let cut = 1; cut < text.length; cut += 1) {
      expect(read([text.slice(0, cut), text.slice(cut)], eof)).toEqual(whole)
      // Without its last byte it has no end.
      if (!eof) expect(read([text.slice(0, cut)]).ends).toEqual([])
    }
    expect(read([...text], eof)).toEqual(whole)
  })

  it('keeps its headers by lower-case name, without blanks around values, in lists where they repeat', () => {
    const { heads } = read([
      `${OK}X-A: \t one  \r\nx-a:two\r\nconstructor: c\r\n__proto__: p\r\ncontent-length: 0\r\n\r\n`,
    ])
    expect(heads[0]?.headers).toMatchObject({
      'x-a': ['one', 'two'],
      constructor: 'c',
      'content-length': '0',
    })
    expect(Object.keys(heads[0]?.headers ?? {})).toContain('__proto__')
  })

  it.each<[string, boolean, number | undefined]>([
    ['HTTP/1.1 200 OK\r\n', true, undefined],
    ['HTTP/1.1 200 OK\r\nConnection: Close\r\n', false, undefined],
    ['HTTP/1.1 200 OK\r\nconnection: te, close\r\n', false, undefined],
    ['HTTP/1.1 200 OK\r\nkeep-alive: timeout=5, max=100\r\n', true, 5000],
    ['HTTP/1.0 200 OK\r\n', false, undefined],
    ['HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n', true, undefined],
  ])('%j says whether its socket lives on', (head, keepAlive, idleMs) => {
    expect(read([`${head}content-length: 0\r\n\r\n`]).heads[0]).toMatchObject({ keepAlive, idleMs })
  })

  it('with bytes behind it is whole, and its socket is not clean', () => {
    for (const text of [STREAM, `${OK}content-length: 2\r\n\r\nhi`])
      expect(read([`${text}HTTP/1.1 200 OK\r\n`])).toMatchObject({ ends: [false], error: undefined })
  })

  it('is read no further once its reader was stopped', () => {
    let bytes = 0
    const reader = new ResponseReader({
      onHead: () => {},
      onBody: (piece) => {
        bytes += piece.length
        reader.stop()
      },
      onEnd: () => expect.unreachable(),
    })
    reader.begin()
    reader.feed(Buffer.from(STREAM))
    expect([bytes, reader.ended()]).toEqual([5, false])
  })
})

describe('refused is', () => {
  it.each([
    ['what is no HTTP', 'SSH-2.0'],
    ['another version', 'HTTP/2 200 OK\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a change of protocol', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
    ['a length and chunks', `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`],
    ['two lengths', `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\n`],
    ['two lengths in one', `${OK}content-length: 1, 1\r\n\r\n`],
    ['a length with a sign', `${OK}content-length: +1\r\n\r\n`],
    ['a length in hex', `${OK}content-length: 0x1\r\n\r\n`],
    ['a length beyond numbers', `${OK}content-length: 9999999999999999\r\n\r\n`],
    ['a length with a no-break space', `${OK}content-length: 1\u00a0\r\n\r\n`],
    ['an empty length', `${OK}content-length:\r\n\r\n`],
    ['chunks twice', `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n`],
    ['chunks within another encoding', `${OK}transfer-encoding: gzip, chunked\r\n\r\n`],
    ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['a folded header', `${OK}x-a: b\r\n c: d\r\n\r\n`],
    ['a space before the colon', `${OK}content-length : 1\r\n\r\n`],
    ['a header without a name', `${OK}: x\r\n\r\n`],
    ['a header without a colon', `${OK}content-length\r\n\r\n`],
    ['a bare CR', `${OK}x-a: b\rcontent-length: 1\r\n\r\n`],
    ['a bare LF', `${OK}x-a: b\ncontent-length: 1\r\n\r\n`],
    ['a NUL', `${OK}x-a: \0\r\n\r\n`],
    ['a head without end', `${OK}${'x-a: b\r\n'.repeat(HEAD_BYTES / 8)}`],
    ['a chunk without a size', `${CHUNKED}\r\n`],
    ['a chunk of a negative size', `${CHUNKED}-1\r\n`],
    ['a chunk size in another notation', `${CHUNKED}0x5\r\nhello\r\n`],
    ['a chunk size with a blank behind it', `${CHUNKED}5 \r\nhello\r\n`],
    ['a chunk size that ends with LF', `${CHUNKED}5\nhello\r\n`],
    ['a chunk size without end', `${CHUNKED}${'0'.repeat(13)}`],
    ['a chunk longer than it says', `${CHUNKED}4\r\nhello\r\n`],
    ['a chunk shorter than it says', `${CHUNKED}6\r\nhello\r\n0\r\n\r\n`],
    ['an LF in a chunk extension', `${CHUNKED}5;a\nb\r\n`],
    ['chunk extensions without end', `${CHUNKED}5;${'x'.repeat(HEAD_BYTES)}`],
    ['a trailer with a bare LF', `${CHUNKED}0\r\na: b\n\r\n\r\n`],
    ['a trailer with a bare CR', `${CHUNKED}0\r\na: b\rc\r\n\r\n`],
    ['trailers without end', `${CHUNKED}0\r\n${'x-a: b\r\n'.repeat(HEAD_BYTES / 8 + 1)}`],
  ])('%s, in one piece and byte by byte', (_name, text) => {
    for (const told of [read([text]), read([...text])]) {
      expect(told.error).toEqual(expect.any(String))
      expect(told.ends).toEqual([])
    }
  })
})

describe('bytes gone wrong', () => {
  const PIECES = [
    '\r\n',
    '\r',
    '\n',
    '\r\n\r\n',
    '0\r\n\r\n',
    ':',
    ' ',
    '\0',
    'content-length: 3\r\n',
    'transfer-encoding: chunked\r\n',
    'HTTP/1.1 200 OK\r\n',
    'ffffffffffff\r\n',
    ';',
    '5\r\n',
  ]
  const anyAnswer = fc
    .tuple(
      fc.constantFrom(STREAM, `${OK}content-length: 5\r\n\r\nhello`, `${OK}\r\nhello`),
      anyMutations(PIECES, 4),
    )
    .map(([text, mutations]) => mutated(Buffer.from(text, 'latin1'), mutations))

  it('are read the same in one piece and in many: one answer at most, or a refusal', () => {
    let refused = 0
    let whole = 0
    const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 6 })
    const law = fc.property(anyAnswer, cuts, (bytes, wanted) => {
      const at = [...new Set(wanted.filter((cut) => cut > 0 && cut < bytes.length))].sort((a, b) => a - b)
      const pieces = [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length))
      const one = read([bytes])
      const many = read(pieces)
      // What comes behind an answer is seen only when it comes in the same piece.
      expect({ ...many, ends: many.ends.length }).toEqual({ ...one, ends: one.ends.length })
      expect(one.heads.length).toBeLessThanOrEqual(1)
      expect(one.ends.length).toBeLessThanOrEqual(one.error === undefined ? 1 : 0)
      if (one.error !== undefined) refused += 1
      if (one.ends.length > 0) whole += 1
    })
    fc.assert(law, FUZZ.runs(2000))
    expect(refused).toBeGreaterThan(20)
    expect(whole).toBeGreaterThan(20)
  })
})
