/** Holds the comparison of two judges to its words: it can fail, and fails for each thing that it is there for. */
import { describe, expect, it } from 'vitest'

interface Comparison {
  readonly requests: number
  readonly unmatched: number
  readonly goodByClient: number
  readonly goodBySluice: number
  readonly differencePercent: number
  readonly disagreements: readonly { readonly distanceMs: number }[]
  readonly ttftLaterMs: { readonly p50?: number }
}
interface Judges {
  compare(records: readonly object[], lines: readonly object[], targets: object): Comparison
  faultsOf(comparison: Comparison): readonly string[]
}

const file = new URL('./compare.mjs', import.meta.url).href
const { compare, faultsOf } = (await import(file)) as Judges

const lagFile = new URL('./lag/lag.mjs', import.meta.url).href
const { whatCameMeanwhile } = (await import(lagFile)) as {
  whatCameMeanwhile(lagMs: number): readonly number[]
}

const TARGETS = { ttftMs: 500, tpotMs: 50 }
const record = (id: number, ttftMs: number, tpotMs = 20) => ({
  id: `r${id}`,
  completed: true,
  good: ttftMs <= 500 && tpotMs <= 50,
  ttftMs,
  tpotMs,
})
const line = (id: number, ttft_ms: number, tpot_ms = 20) => ({
  request_id: `r${id}`,
  outcome: 'completed',
  slo: ttft_ms <= 500 && tpot_ms <= 50 ? 'good' : 'bad',
  ttft_ms,
  tpot_ms,
})
const many = Array.from({ length: 200 }, (_, id) => id)
const records = many.map((id) => record(id, 301))
const lines = many.map((id) => line(id, 300))

describe('two judges over the same requests', () => {
  it('agree when each request has the same verdict', () => {
    const found = compare(records, lines, TARGETS)
    expect(found).toMatchObject({ requests: 200, unmatched: 0, goodByClient: 200, goodBySluice: 200 })
    expect(found.ttftLaterMs.p50).toBe(1)
    expect(faultsOf(found)).toEqual([])
  })

  it('may differ over a request that is near a target by both clocks', () => {
    const near = compare([...records, record(900, 503)], [...lines, line(900, 499)], TARGETS)
    expect(near.disagreements.map(({ distanceMs }) => distanceMs)).toEqual([3])
    expect(faultsOf(near)).toEqual([])
  })

  it('are told apart by a request that is far from its target by either clock', () => {
    const far = compare([...records, record(900, 506)], [...lines, line(900, 499)], TARGETS)
    expect(faultsOf(far)).toHaveLength(1)
    const pace = compare([...records, record(900, 300, 56)], [...lines, line(900, 300, 49)], TARGETS)
    expect(faultsOf(pace)).toHaveLength(1)
  })

  it('are told apart by another end of the request, whatever its times', () => {
    const broken = { ...record(900, 499), completed: false, good: false }
    expect(faultsOf(compare([...records, broken], [...lines, line(900, 499)], TARGETS))).toHaveLength(1)
  })

  it('are told apart when more than one in a hundred differs, though each is near', () => {
    const shifted = records.map((each, place) => (place < 3 ? record(place, 501) : each))
    const found = compare(
      shifted,
      lines.map((each, place) => (place < 3 ? line(place, 499) : each)),
      TARGETS,
    )
    expect(found.differencePercent).toBeCloseTo(-1.5)
    expect(faultsOf(found)).toHaveLength(1)
  })

  it('must both know each request, and must have served some', () => {
    expect(faultsOf(compare(records, lines.slice(1), TARGETS))).toHaveLength(1)
    expect(faultsOf(compare(records.slice(1), lines, TARGETS))).toHaveLength(1)
    expect(faultsOf(compare([], [], TARGETS))).toHaveLength(1)
  })
})

describe('the lag of a client', () => {
  it('counts a stall for all that could have come during it', () => {
    expect(whatCameMeanwhile(0.4)).toEqual([0.4])
    expect(whatCameMeanwhile(35)).toEqual([35, 25, 15, 5])
  })
})
