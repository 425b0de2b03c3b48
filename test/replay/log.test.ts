/** What is read of a log: every request that a line tells whole, in whatever order, and an account of the rest. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JudgeFacts } from '../../src/core/records.ts'
import { judgedAnew, loggedEndings } from '../../src/replay/endings.ts'
import { LogBook } from '../../src/replay/log-book.ts'
import { READABLE_VERSIONS, readLine } from '../../src/replay/logged-request.ts'
import { HASHED_BLOCKS } from '../../src/replay/shared-prefixes.ts'
import { MAX_PREFIX_BLOCKS, REQUEST_LINE_VERSION } from '../../src/telemetry/request-line.ts'
import { anyFacts, settlementOf } from '../slo/facts.ts'
import { decisionOf, good, shed } from '../telemetry/rig.ts'
import { lineOf, START_UNIX_MS, simulatedLog } from './simulated-log.ts'

function requestOf(line: string) {
  const read = readLine(line)
  if (read.kind !== 'request') throw new Error(JSON.stringify(read))
  return read.request
}

function bookOf(lines: readonly string[], most?: number) {
  const book = new LogBook({}, most)
  for (const [at, line] of lines.entries()) book.take(line, `log:${at + 1}`)
  return book.close()
}

/** A line has three decimals: finer than that it can't tell which side of a target a span lies on. */
function inWholeMs(facts: JudgeFacts): JudgeFacts {
  const { ttftMs, tpotMs, e2eMs } = facts
  return {
    ...facts,
    e2eMs: Math.round(e2eMs),
    ...(ttftMs === undefined ? {} : { ttftMs: Math.round(ttftMs) }),
    ...(tpotMs === undefined ? {} : { tpotMs: Math.round(tpotMs) }),
  }
}

const LINE = lineOf(good())

describe('the line of a request', () => {
  it('is of a version, and names as many blocks of a prompt, as serve writes now', () => {
    expect(READABLE_VERSIONS).toContain(REQUEST_LINE_VERSION)
    expect(HASHED_BLOCKS).toBe(MAX_PREFIX_BLOCKS)
  })

  it('tells when the request came, what it asked for and how it ended', () => {
    const offer = { receivedAtMs: 1500, maxOutputTokens: 64, sequences: 2, retryCount: 1, steerTtftMs: 90 }
    const settlement = { ...good(offer), cachedTokens: 150, replicaId: 'r1' }
    expect(requestOf(lineOf(settlement, decisionOf(settlement.offer)))).toMatchObject({
      id: 'r1',
      arrivedAtMs: START_UNIX_MS + 1500,
      model: 'm',
      className: 'chat',
      tenant: 't',
      streamed: true,
      sequences: 2,
      retryCount: 1,
      promptTokens: 200,
      cachedTokens: 150,
      uncachedTokens: 50,
      outputTokens: 50,
      maxOutputTokens: 64,
      steerTtftMs: 90,
      outcome: 'completed',
      replica: 'r1',
      ttftMs: 300,
      tpotMs: 30,
      verdict: 'good',
    })
  })

  it('believes the decision about the cache where the engine said nothing', () => {
    const settlement = { ...good(), replicaId: 'r1' }
    const decision = decisionOf(settlement.offer)
    const candidates = decision.candidates.map((candidate) => ({ ...candidate, uncachedTokens: 70 }))
    expect(requestOf(lineOf(settlement, { ...decision, candidates })).uncachedTokens).toBe(70)
    expect(requestOf(lineOf(settlement)).uncachedTokens).toBe(200)
  })

  it('is found behind what a collector puts before it, and with a carriage return', () => {
    expect(requestOf(`2026-01-31T12:00:01Z stdout F ${LINE}\r`)).toEqual(requestOf(LINE))
  })

  it.each([
    ['no JSON', 'sluice 0.1.0'],
    ['no whole JSON object', LINE.slice(0, -20)],
    ['version 7 of the line; known here: 1', LINE.replace('"v":1', '"v":7')],
    ['no `model`', LINE.replace('"model":"m"', '"model":""')],
    ['`prompt_tokens` is no number of at least 0', LINE.replace('"prompt_tokens":200', '"prompt_tokens":-3')],
    ['`time` is no time such as 2026-01-31T12:00:00.000Z', LINE.replace(/"time":"[^"]*"/, '"time":"noon"')],
    ['`slo` is none of good, bad, excluded', LINE.replace('"slo":"good"', '"slo":"fine"')],
  ])('is refused with "%s"', (why, line) => {
    expect(line).not.toBe(LINE)
    expect(readLine(line)).toEqual({ kind: 'bad', why })
  })

  it('never throws, whatever the line is', () => {
    const mutated = fc
      .tuple(fc.nat(LINE.length), fc.string(), fc.nat(12))
      .map(([at, text, cut]) => LINE.slice(0, at) + text + LINE.slice(at + cut))
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json(), mutated), (line) => void readLine(line)))
  })

  it('is judged by its own promise as it was', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const settlement = settlementOf(inWholeMs(facts))
        const request = requestOf(lineOf(settlement))
        const slow = settlement.verdict.cause === 'slow_reader'
        fc.pre(facts.slowReader === slow)
        const endings = judgedAnew([request], () => facts.offer.slo)
        expect(endings.verdict(0)).toBe(loggedEndings([request]).verdict(0))
      }),
    )
  })
})

describe('a log', () => {
  const lines = simulatedLog(6, 5000)

  it('is the same whatever order its lines are in', () => {
    const whole = bookOf(lines)
    expect(whole.requests.length).toBeGreaterThan(20)
    fc.assert(
      fc.property(fc.shuffledSubarray([...lines], { minLength: lines.length }), (shuffled) => {
        expect(bookOf(shuffled).requests).toEqual(whole.requests)
      }),
      { numRuns: 10 },
    )
  })

  it('counts a line once that comes twice', () => {
    const { requests, repeated } = bookOf([...lines, ...lines])
    expect(requests).toEqual(bookOf(lines).requests)
    expect(repeated).toBe(lines.length)
  })

  it('passes over other events and counts what can’t be read, with the place of the first ones', () => {
    const other = '{"level":"info","time":"2026-01-31T12:00:00.000Z","event":"config_loaded"}'
    const { requests, badLines, badExamples } = bookOf([other, '', LINE, 'x', LINE.replace('"v":1', '"v":2')])
    expect(requests).toHaveLength(1)
    expect(badLines).toBe(2)
    expect(badExamples.map(({ at }) => at)).toEqual(['log:4', 'log:5'])
    expect(bookOf(Array.from({ length: 100 }, () => 'x')).badExamples).toHaveLength(5)
  })

  it('keeps what came within a span and knows when the others came', () => {
    const book = new LogBook({ fromMs: START_UNIX_MS + 1000, toMs: START_UNIX_MS + 2000 })
    for (const line of lines) book.take(line, 'log')
    const { requests, outsideSpan, seen } = book.close()
    expect(requests.length + outsideSpan).toBe(lines.length)
    for (const { arrivedAtMs } of requests) {
      expect(arrivedAtMs).toBeGreaterThanOrEqual(START_UNIX_MS + 1000)
      expect(arrivedAtMs).toBeLessThan(START_UNIX_MS + 2000)
    }
    expect(seen.toMs).toBeGreaterThan(START_UNIX_MS + 3000)
  })

  it('does not grow beyond what memory is for', () => {
    expect(() => bookOf(lines, 10)).toThrow('choose a stretch with --from and --to')
  })

  it('tells under which configurations it was decided', () => {
    const decided = (configDigest: string) => lineOf(shed(), decisionOf(shed().offer, { configDigest }))
    expect(bookOf([decided('b'), decided('a')]).configDigests).toEqual(['a', 'b'])
  })
})
