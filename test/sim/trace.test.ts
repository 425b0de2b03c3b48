/** Trace files: three forms give the same rows, wrong lines are named, and a replay keeps what the trace says. */
import { describe, expect, it } from 'vitest'
import { prefixHashes } from '../../src/sim/offer.ts'
import { readStampMs } from '../../src/sim/time-stamp.ts'
import { type Trace, TraceReader, traceRatePerSec, traceSource } from '../../src/sim/trace.ts'

function read(...lines: string[]): Trace {
  const reader = new TraceReader('t.csv', ['chat', 'agent'])
  for (const line of lines) reader.take(line)
  return reader.end()
}

const AZURE = ['TIMESTAMP,ContextTokens,GeneratedTokens', '2023-11-16 18:15:46.6805900,374,44']
const PLAIN = 'arrival_s,prompt_tokens,output_tokens'

describe('a trace', () => {
  it('is read in the Azure form', () => {
    const trace = read(...AZURE, '2023-11-16 18:15:50.9951690,396,109\r', '')
    expect(trace.form).toBe('azure')
    expect(trace.rows.map(({ promptTokens, outputTokens }) => [promptTokens, outputTokens])).toEqual([
      [374, 44],
      [396, 109],
    ])
    expect(trace.rows[0]?.atMs).toBe(0)
    expect(trace.rows[1]?.atMs).toBeCloseTo(4314.579, 2)
  })

  it('is read in the Mooncake form, a tick spread over its time', () => {
    const row = (timestamp: number, hash_ids: number[]) =>
      JSON.stringify({ timestamp, input_length: 1000, output_length: 20, hash_ids })
    const trace = read(row(0, [0, 1]), row(0, [0, 2]), row(0, [0, 3]), row(3000, [0, 1]), row(3000, [4, 5]))
    expect(trace.form).toBe('mooncake')
    expect(trace.rows.map(({ atMs }) => atMs)).toEqual([0, 1000, 2000, 3000, 4500])
    expect(trace.rows[1]?.blocks).toEqual({ names: ['0', '2'], tokens: 512 })
  })

  it('is read as plain CSV, with classes, limits and sessions', () => {
    const trace = read(
      `${PLAIN},class,max_tokens,session,think_s`,
      '1,10,5,agent,50,s1,',
      '2,20,0,,,,',
      '3,30,6,,,s1,1.5',
    )
    expect(trace.failedRows).toBe(1)
    expect(trace.rows).toEqual([
      { atMs: 0, promptTokens: 10, outputTokens: 5, className: 'agent', maxTokens: 50, session: 's1' },
      { atMs: 2000, promptTokens: 30, outputTokens: 6, session: 's1', thinkMs: 1500 },
    ])
  })

  it.each([
    [['a,b,c'], 't.csv:1: expected a header with arrival_s'],
    [[PLAIN, '0,10,5', '1,ten,5'], 't.csv:3: prompt_tokens must be a number, got "ten"'],
    [[PLAIN, '0,10'], 't.csv:2: expected 3 cells as in the header, found 2'],
    [[PLAIN, '0,0,5'], 't.csv:2: prompt_tokens must be a whole number of at least 1, got 0'],
    [
      [PLAIN, '0,10,5', '', '3,1,1', '2,1,1'],
      't.csv:5: it is earlier than the line before; sort the file by time',
    ],
    [[PLAIN, '0,"1",5'], 't.csv:2: quoted cells are not read'],
    [[`${PLAIN},class`, '0,1,5,chta'], 't.csv:2: class "chta" is none of chat, agent'],
    [[AZURE[0] ?? '', 'yesterday,1,2'], 't.csv:2: TIMESTAMP "yesterday" is no time such as'],
    [['{"timestamp":0'], 't.csv:1: this is no JSON'],
    [['{"timestamp":0,"output_length":5}'], 't.csv:1: input_length is missing'],
    [
      ['{"timestamp":0,"input_length":600,"output_length":5,"hash_ids":[1]}'],
      't.csv:1: hash_ids names 1 blocks, but 600 tokens have 2 of 512',
    ],
    [[PLAIN], 't.csv: no requests in it'],
    [[], 't.csv: no requests in it'],
  ])('%j is refused: %s', (lines, message) => {
    expect(() => read(...lines)).toThrow(message)
  })
})

describe('time stamps', () => {
  it('are read by the calendar', () => {
    expect(readStampMs('1970-01-01 00:00:00')).toBe(0)
    expect(readStampMs('2024-02-29T12:00:00.5Z')).toBe(Date.UTC(2024, 1, 29, 12, 0, 0, 500))
    expect(readStampMs('2024-05-10 02:00:00+02:00')).toBe(Date.UTC(2024, 4, 10))
    expect(readStampMs('1999-12-31 23:59:59-0130')).toBe(Date.UTC(2000, 0, 1, 1, 29, 59))
    expect(readStampMs('2024-13-01 00:00:00')).toBeUndefined()
  })
})

describe('a replay', () => {
  const rows = Array.from({ length: 11 }, (_, at) => `${at},${100 + at},${10 + at}`)
  const trace = read(PLAIN, ...rows)
  const source = traceSource(trace, { className: 'chat' })

  it('keeps order and lengths and stretches time to the rate', () => {
    expect(traceRatePerSec(trace)).toBeCloseTo(1, 9)
    const fast = [...source.streamAt(4, 60_000, 1)]
    expect(fast.map(({ atMs }) => atMs)).toEqual(rows.map((_, at) => at * 250))
    expect(fast[3]).toEqual({ id: 't3', atMs: 750, className: 'chat', promptTokens: 103, outputTokens: 13 })
    expect(source.lengthMsAt?.(4)).toBeCloseTo(11 * 250, 9)
    expect([...source.streamAt(4, 1000, 1)]).toHaveLength(4)
    expect(source.meanTokens).toEqual({ prompt: 105, output: 15 })
  })

  it('links the turns of a session behind each other', () => {
    const talks = read(`${PLAIN},session,think_s`, '0,10,5,a,', '1,20,5,b,', '2,30,5,a,7', '3,40,5,a,8')
    const [a, b, ...more] = [...traceSource(talks, { className: 'chat' }).streamAt(4, 60_000, 1)]
    expect(more).toEqual([])
    expect([a?.next?.thinkMs, a?.next?.request.next?.thinkMs, b?.next]).toEqual([7000, 8000, undefined])
    expect(a?.text).toBe(a?.next?.request.text)
    expect(a?.text).not.toBe(b?.text)
  })

  it('gives equal hashes to equal leading blocks only', () => {
    const row = (timestamp: number, hash_ids: number[]) =>
      JSON.stringify({ timestamp, input_length: 1100, output_length: 20, hash_ids })
    const mooncake = read(row(0, [7, 1, 2]), row(1000, [7, 1, 3]), row(2000, [8, 1, 2]))
    const [a, b, c] = [...traceSource(mooncake, { className: 'chat' }).streamAt(1, 60_000, 1)].map(
      (request) => prefixHashes(request),
    )
    const common = (x: readonly string[] = [], y: readonly string[] = []) =>
      x.filter((hash, at) => y[at] === hash).length
    expect(a).toHaveLength(17)
    expect(common(a, b)).toBe(16)
    expect(a?.[0]).not.toBe(c?.[0])
  })
})
