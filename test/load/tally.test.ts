/** Sums by phase and class add up, and percentiles are samples. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JudgeFacts, SloVerdict } from '../../src/core/records.ts'
import type { LoadResult } from '../../src/load/outcome.ts'
import { createTally } from '../../src/load/tally.ts'

const result = (
  phase: string,
  name: string,
  kind: SloVerdict['kind'],
  extra: Partial<LoadResult> = {},
): LoadResult => {
  const slo = { name, ttftPer1kTokensMs: 0, weight: 1, overload: 'shed', maxWaitMs: 0 } as const
  return {
    planned: { id: 'r', atMs: 0, phase, slo, promptTokens: 1, maxTokens: 1, outputTokens: 1 },
    facts: { outcome: 'completed', outputTokens: 2, ttftMs: 10 } as JudgeFacts,
    verdict: { kind },
    retries: 0,
    endedAtMs: 0,
    ...extra,
  }
}

describe('tally', () => {
  it('keeps attainment over offered requests, so that shedding can not flatter it', () => {
    const tally = createTally()
    const shed = {
      refusal: { reason: 'waiting_full', retryAfterMs: 1000 },
      verdict: { kind: 'bad', cause: 'shed' },
    } as const
    for (const each of [
      result('1x', 'chat', 'good'),
      result('1x', 'chat', 'bad', shed),
      result('1x', 'batch', 'excluded'),
    ]) {
      tally.offered(each.planned)
      tally.settled(each)
    }
    expect(tally.summary()).toMatchObject({
      offeredRequests: 3,
      settledRequests: 3,
      attainmentRatio: 0.5,
      admittedAttainmentRatio: 1,
      shedRequests: 1,
      sheds: { waiting_full: 1 },
      retryAfterMs: { p50: 1000 },
    })
  })

  it('splits into phases and classes without losing any', () => {
    const name = fc.constantFrom('a', 'b', 'c')
    const kind = fc.constantFrom('good', 'bad', 'excluded')
    const law = fc.property(fc.array(fc.tuple(name, name, kind)), (rows) => {
      const tally = createTally()
      for (const [phase, className, each] of rows) tally.settled(result(phase, className, each))
      const parts = tally
        .phases()
        .flatMap((phase) => tally.classes().map((className) => tally.summary({ phase, className })))
      expect(parts.reduce((sum, part) => sum + part.goodRequests, 0)).toBe(tally.summary().goodRequests)
      expect(tally.summary().settledRequests).toBe(rows.length)
    })
    fc.assert(law)
  })

  it('has no percentile without samples and no share when nothing counts', () => {
    const empty = createTally().summary()
    expect(empty.ttftMs).toEqual({})
    expect(empty.attainmentRatio).toBeUndefined()
  })
})
